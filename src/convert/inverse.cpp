// inverse.cpp - undoes sums, products and functions of one number.
#include "convert/inverse.h"

#include <cmath>
#include <limits>

#include "ops/frame/eval.h"

namespace tonnx {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // no number will do

using Unary = double (*)(double y);
using Binary = double (*)(double y, double other, double before);

Unary find_unary(std::string_view op) {
  if (op == "Cast" || op == "Identity") return [](double y) { return y; };
  if (op == "Neg") return [](double y) { return -y; };
  if (op == "Reciprocal") return [](double y) { return 1 / y; };
  if (op == "Sqrt") return [](double y) { return y < 0 ? kNone : y * y; };
  if (op == "Exp") return [](double y) { return y < 0 ? kNone : std::log(y); };
  if (op == "Log") return [](double y) { return std::exp(y); };
  if (op == "Tanh") return [](double y) { return std::atanh(y); };
  if (op == "Sigmoid") return [](double y) { return std::log(y / (1 - y)); };
  return nullptr;
}

/// A factor of 0 hides what it is multiplied by.
double quotient(double y, double other, double before) {
  if (other != 0) return y / other;
  return y == 0 ? before : kNone;
}

Binary find_binary(std::string_view op, bool is_first) {
  if (op == "Add" || op == "Sum") return [](double y, double other, double) { return y - other; };
  if (op == "Sub" && is_first) return [](double y, double other, double) { return y + other; };
  if (op == "Sub") return [](double y, double other, double) { return other - y; };
  if (op == "Mul") return quotient;
  if (op == "Div" && is_first) return [](double y, double other, double) { return y * other; };
  if (op == "Div") return [](double y, double other, double before) { return quotient(other, y, before); };
  if (op == "Pow" && is_first) {
    return [](double y, double other, double) { return y < 0 || other == 0 ? kNone : std::pow(y, 1 / other); };
  }
  return nullptr;
}

}  // namespace

std::optional<std::vector<double>> solve_for_input(const Origin& origin, size_t input, const Tensors& inputs,
                                                   const Tensor& wanted) {
  const TensorPtr& before = inputs[input];
  if (before == nullptr || before->count() != wanted.count() || inputs.size() > 2) return std::nullopt;
  const TensorPtr other = inputs.size() == 2 && origin.op != "CastLike" ? inputs[1 - input] : nullptr;
  std::vector<double> result;
  result.reserve(static_cast<size_t>(wanted.count()));
  if (other == nullptr) {
    const Unary inverse = find_unary(origin.op);
    if (inverse == nullptr) return std::nullopt;
    for (int64_t i = 0; i < wanted.count(); ++i) result.push_back(inverse(element_as_double(wanted, i)));
  } else {
    const Binary inverse = find_binary(origin.op, input == 0);
    if (inverse == nullptr || !broadcast_dims(other->dims, wanted.dims)) return std::nullopt;
    const TensorPtr wide = strided(*other, wanted.dims, broadcast_strides(other->dims, wanted.dims));
    for (int64_t i = 0; i < wanted.count(); ++i)
      result.push_back(
          inverse(element_as_double(wanted, i), element_as_double(*wide, i), element_as_double(*before, i)));
  }
  for (size_t i = 0; i < result.size(); ++i) {
    if (std::isnan(result[i]) && !std::isnan(element_as_double(wanted, static_cast<int64_t>(i)))) return std::nullopt;
  }
  return result;
}

}  // namespace tonnx
