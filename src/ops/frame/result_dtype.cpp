// result_dtype.cpp - the element type that an elementwise aten operator gives.
#include "ops/frame/result_dtype.h"

#include "ops/frame/op_def.h"

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

const Value* operand(const Node& node, const AttrValue& argument) {
  const auto* at = argument.get<Operand>();
  return at ? node.input(at->index) : nullptr;
}

/// The arguments that elementwise operators compute with.
constexpr std::string_view kOperands[] = {"self",    "input", "other", "exponent", "end", "tensor1",
                                          "tensor2", "min",   "max",   "weight",   "x",   "n"};

Elementwise kind_of(const Node& node) {
  const AtenOpEntry* entry = find_aten_op(node);
  return entry ? entry->op->elementwise : Elementwise::No;
}

}  // namespace

bool is_elementwise(const Node& node) { return kind_of(node) != Elementwise::No; }

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

DType joint_dtype(const Node& node, std::span<const std::string_view> arguments) {
  DType tensors = DType::Undefined, scalars = DType::Undefined, numbers = DType::Undefined;
  const auto join = [](DType& all, DType one) {
    all = all == DType::Undefined ? one : one == DType::Undefined ? all : promoted(all, one);
  };
  for (const std::string_view name : arguments) {
    const Attribute* given = node.find_attribute(name);
    if (given == nullptr) continue;
    const Value* value = operand(node, given->value);
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

DType joint_dtype(const Type& a, const Type& b) {
  if ((a.rank() == 0) == (b.rank() == 0)) return promoted(a.dtype, b.dtype);
  return a.rank() == 0 ? combined(b.dtype, a.dtype) : combined(a.dtype, b.dtype);
}

DType result_dtype(const Node& node, DType otherwise) {
  const Elementwise kind = kind_of(node);
  if (kind == Elementwise::Flags) return DType::Bool;
  if (const Attribute* given = node.find_attribute("dtype")) {
    if (const auto* dtype = given->value.get<DType>()) return *dtype;
  }
  if (kind == Elementwise::Doubles) return is_complex(otherwise) ? otherwise : DType::Float64;
  if (kind == Elementwise::No || kind == Elementwise::Kept) return otherwise;
  const DType common = joint_dtype(node, kOperands);
  if (common == DType::Undefined) return otherwise;
  if (kind == Elementwise::Promoted || is_float(common) || is_complex(common)) return common;
  const Attribute* rounding = node.find_attribute("rounding_mode");
  const bool rounds = kind == Elementwise::Quotient && rounding != nullptr && !rounding->value.is_none();
  return rounds ? common : DType::Float32;
}

}  // namespace tonnx
