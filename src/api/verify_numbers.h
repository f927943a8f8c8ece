// verify_numbers.h - the numbers of a comparison: random tensors, and how far two tensors are apart.
#pragma once
#include "api/internal.h"

namespace tonnx::v1 {

/// How much rounding a value has behind it.
struct Depth {
  double layers = 0;   // that add up many numbers
  double numbers = 0;  // that these add up for one element, together
};

/// What rounding does to the values of a model: by its depth, and the coarsest type that it computes in.
struct Rounding {
  Depth depth;
  core::DType precision = core::DType::Float32;
  bool is_quantised = false;
};
Rounding rounding_of(const core::Model& model);

/// A random tensor; `draw` says of which kind.
Tensor random_tensor(DType dtype, const std::vector<int64_t>& dims, int draw, uint64_t seed);
/// As far off as rounding could make it: what a model makes of that says how it magnifies errors.
Tensor perturbed(const Tensor& tensor);
/// The same numbers in another type.
Tensor converted(const Tensor& tensor, DType dtype);

/// `near`: what the reference makes of perturbed inputs; null where that was not asked.
OutputComparison compared(std::string name, const Tensor& a, const Tensor& b, const Tensor* near,
                          const Rounding& rounding, const VerifyOptions& options);

}  // namespace tonnx::v1
