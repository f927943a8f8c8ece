// numbers.h - elements of tensors as numbers, and how far those of two tensors are apart.
#pragma once
#include <span>
#include <string>

#include "ir/tensor.h"
#include "verify/rounding.h"

namespace tonnx::judge {

/// Floats, integers and bool.
bool is_number(DType dtype);
bool holds_floats(const Tensor& tensor);
/// The elements from `first` on.
void read_numbers(const Tensor& tensor, int64_t first, std::span<double> numbers);
std::vector<double> numbers_of(const Tensor& tensor);
TensorPtr tensor_of(DType dtype, std::vector<int64_t> dims, const std::vector<double>& numbers);

/// As far off as rounding could make it: what a model makes of that says how it magnifies errors.
TensorPtr perturbed(const TensorPtr& tensor);
std::vector<TensorPtr> perturbed(const std::vector<TensorPtr>& tensors);
/// The same numbers in another type; within the range of an integer type.
TensorPtr converted(const TensorPtr& tensor, DType dtype);
/// The same elements in other sizes, which are as many.
TensorPtr reshaped(const TensorPtr& tensor, const std::vector<int64_t>& dims);
/// A tensor in the shape of another, where it has as many elements: sizes of one come and go.
TensorPtr alike(const TensorPtr& tensor, const Tensor& like);

/// How far one tensor is from another.
struct Measured {
  std::string type;  // `float32[1, 1000]` of the first
  int64_t elements = 0;
  int64_t wrong = 0;  // elements further off than they may be
  double max_abs = 0, max_rel = 0, mse = 0, cosine = 1;
  double rtol = 0, atol = 0;  // |b - a| may be atol + rtol * |a|
  bool is_same = true;
  std::string why = {};  // where it is not a matter of numbers: another shape
};

/// What is known of two values that are compared.
struct Expected {
  Depth depth = {};
  double noise = 1;                    // how much more rounding there is than in a value of this size
  const Tensor* near = nullptr;        // what the first model makes of inputs as far off as rounding could make them
  std::pair<int, int> steps = {0, 0};  // how often each was quantised on the way, each time off by a step at most
};
Measured measured(const Tensor& a, const Tensor& b, const Tolerance& tolerance, const Expected& expected);

/// `float32[1, 1000]`.
std::string type_of(const Tensor& tensor);

}  // namespace tonnx::judge
