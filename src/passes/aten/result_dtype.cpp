// result_dtype.cpp - the element type that an elementwise aten operator gives.
#include "passes/aten/result_dtype.h"

#include <algorithm>
#include <unordered_set>

#include "passes/aten/match.h"

namespace tonnx {
namespace {

/// bool, integer, float, complex, in the order in which one gives way to the next.
int category(DType dtype) {
  if (dtype == DType::Undefined) return -1;
  if (is_complex(dtype)) return 3;
  if (is_float(dtype)) return 2;
  return dtype == DType::Bool ? 0 : 1;
}

DType promoted_integers(DType a, DType b) {
  if (is_unsigned(a) == is_unsigned(b)) return info(a).bits >= info(b).bits ? a : b;
  const DType with_sign = is_unsigned(a) ? b : a, without = is_unsigned(a) ? a : b;
  if (info(with_sign).bits > info(without).bits) return with_sign;
  switch (info(without).bits) {
    case 8: return DType::Int16;
    case 16: return DType::Int32;
    default: return DType::Int64;
  }
}

DType promoted_floats(DType a, DType b) {
  if (info(a).bits != info(b).bits) return info(a).bits > info(b).bits ? a : b;
  return DType::Float32;  // float16 and bfloat16
}

/// What tensors of a higher rank of priority, and those of a lower one, give together.
DType combined(DType higher, DType lower) {
  if (is_complex(higher) || lower == DType::Undefined) return higher;
  if (higher == DType::Undefined) return lower;
  if (is_float(higher) && is_complex(lower)) return higher == DType::Float64 ? DType::Complex128 : DType::Complex64;
  return category(higher) >= category(lower) ? higher : promoted(higher, lower);
}

DType scalar_dtype(const AttrValue& value) {
  if (value.get<bool>()) return DType::Bool;
  if (value.get<int64_t>()) return DType::Int64;
  return value.get<double>() ? DType::Float32 : DType::Undefined;
}

/// By the arguments that elementwise operators compute with: tensors, then tensors of rank 0, then plain numbers.
DType common_dtype(const Node& node) {
  DType tensors = DType::Undefined, scalars = DType::Undefined, numbers = DType::Undefined;
  const auto join = [](DType& all, DType one) {
    all = all == DType::Undefined ? one : one == DType::Undefined ? all : promoted(all, one);
  };
  for (const std::string_view name :
       {"self", "input", "other", "exponent", "end", "tensor1", "tensor2", "min", "max"}) {
    const Attribute* given = node.find_attribute(name);
    if (given == nullptr) continue;
    const Value* value = operand(node, name);
    if (value == nullptr) {
      join(numbers, scalar_dtype(given->value));
    } else if (!value->type.is_tensor()) {
      join(numbers, value->type.kind == Type::Kind::Float ? DType::Float32 : DType::Int64);
    } else {
      join(value->type.rank() == 0 ? scalars : tensors, value->type.dtype);
    }
  }
  return combined(tensors, combined(scalars, numbers));
}

bool tells(const Node& node) {
  static const std::unordered_set<std::string_view> names = {
      "eq",       "ne",          "lt",          "le",         "gt",          "ge",       "isclose",
      "isfinite", "isin",        "isinf",       "isnan",      "isneginf",    "isposinf", "isreal",
      "signbit",  "logical_and", "logical_not", "logical_or", "logical_xor",
  };
  return names.contains(node.op.view());
}

bool gives_floats(const Node& node) {
  static const std::unordered_set<std::string_view> names = {
      "acos",      "acosh",    "asin",      "asinh",   "atan",       "atan2",  "atanh",   "cos",    "cosh",
      "deg2rad",   "div",      "digamma",   "erf",     "erfc",       "erfinv", "exp",     "exp2",   "expm1",
      "i0",        "igamma",   "log",       "igammac", "log10",      "log1p",  "log2",    "lgamma", "logit",
      "logaddexp", "mvlgamma", "polygamma", "rad2deg", "reciprocal", "rsqrt",  "sigmoid", "sin",    "sinc",
      "sinh",      "sqrt",     "tan",       "tanh",    "xlogy",
  };
  if (node.op.view().starts_with("special_")) return true;
  return names.contains(node.op.view()) && node.find_attribute("rounding_mode") == nullptr;
}

bool promotes(const Node& node) {
  static const std::unordered_set<std::string_view> names = {
      "add",
      "sub",
      "mul",
      "rsub",
      "pow",
      "fmod",
      "remainder",
      "floor_divide",
      "maximum",
      "minimum",
      "fmax",
      "fmin",
      "clamp",
      "clamp_min",
      "clamp_max",
      "addcmul",
      "addcdiv",
      "where",
      "hypot",
      "copysign",
      "nextafter",
      "gcd",
      "lcm",
      "bitwise_and",
      "bitwise_or",
      "bitwise_xor",
      "bitwise_left_shift",
      "bitwise_right_shift",
      "heaviside",
      "ldexp",
      "square",
      "abs",
      "neg",
      "sign",
      "sgn",
      "floor",
      "ceil",
      "round",
      "trunc",
      "frac",
      "relu",
      "bitwise_not",
      "div",
  };
  return names.contains(node.op.view());
}

}  // namespace

bool is_elementwise(const Node& node) {
  static const Symbol aten("aten");
  static const std::unordered_set<std::string_view> others = {
      "clone",     "to",        "_to_copy",   "type_as",     "empty_like", "zeros_like",  "ones_like",
      "full_like", "rand_like", "randn_like", "gelu",        "silu",       "elu",         "celu",
      "selu",      "mish",      "softplus",   "hardtanh",    "hardswish",  "hardsigmoid", "leaky_relu",
      "relu6",     "threshold", "lerp",       "masked_fill", "nan_to_num", "dropout",     "float_power",
  };
  return node.domain == aten &&
         (promotes(node) || tells(node) || gives_floats(node) || others.contains(node.op.view()));
}

DType promoted(DType a, DType b) {
  if (a == b || category(b) < category(a)) {
    const bool needs_wider = is_complex(a) && b == DType::Float64;
    return needs_wider ? DType::Complex128 : a;
  }
  if (category(a) < category(b)) return promoted(b, a);
  switch (category(a)) {
    case 1: return promoted_integers(a, b);
    case 2: return promoted_floats(a, b);
    default: return info(a).bits >= info(b).bits ? a : b;
  }
}

DType result_dtype(const Node& node, DType otherwise) {
  if (tells(node)) return DType::Bool;
  if (const Attribute* given = node.find_attribute("dtype")) {
    if (const auto* dtype = given->value.get<DType>()) return *dtype;
  }
  if (node.op == Symbol("float_power")) return is_complex(otherwise) ? otherwise : DType::Float64;
  const bool floats = gives_floats(node);
  if (!floats && !promotes(node)) return otherwise;
  const DType common = common_dtype(node);
  if (common == DType::Undefined) return otherwise;
  return floats && !is_float(common) && !is_complex(common) ? DType::Float32 : common;
}

}  // namespace tonnx
