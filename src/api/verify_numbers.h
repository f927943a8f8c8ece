// verify_numbers.h - the numbers of a comparison: random tensors, and how far two tensors are apart.
#pragma once
#include <unordered_map>

#include "api/internal.h"
#include "api/verify_hints.h"

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
  std::unordered_map<std::string, Depth> depths = {};  // of values inside, by name

  /// The same for one of these.
  Rounding at(const std::string& value) const;
};
Rounding rounding_of(const core::Model& model);

/// How an input is drawn.
struct Draw {
  int number = 0;  // which says of which kind
  uint64_t seed = 0;
  int64_t length = 1;        // of a sequence
  bool is_cautious = false;  // integers are 1: more models can run with them
};
/// A random tensor for an input of which this is known.
Tensor random_tensor(DType dtype, const std::vector<int64_t>& dims, const InputHint& hint, const Draw& draw);
/// The elements as numbers, of a tensor that holds such.
std::vector<double> numbers_of(const Tensor& tensor);
bool holds_numbers(const Tensor& tensor);
/// As far off as rounding could make it: what a model makes of that says how it magnifies errors.
Tensor perturbed(const Tensor& tensor);
/// The same numbers in another type.
Tensor converted(const Tensor& tensor, DType dtype);

/// `near`: what the reference makes of perturbed inputs; null where that was not asked. `noise`: how much more rounding
/// is to be expected than in a value of this size.
OutputComparison compared(std::string name, const Tensor& a, const Tensor& b, const Tensor* near,
                          const Rounding& rounding, const VerifyOptions& options, double noise = 1);

}  // namespace tonnx::v1
