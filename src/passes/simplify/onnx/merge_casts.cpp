// merge_casts.cpp - a Cast on the way to another one goes away where it loses nothing.
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

struct Form {
  int digits;    // binary ones that integers up to that many have exactly
  int exponent;  // of the largest number; 0 for integers
};

std::optional<Form> form_of(DType dtype) {
  switch (dtype) {
    case DType::Bool: return Form{1, 0};
    case DType::Float16: return Form{11, 15};
    case DType::BFloat16: return Form{8, 127};
    case DType::Float32: return Form{24, 127};
    case DType::Float64: return Form{53, 1023};
    default: break;
  }
  if (is_unsigned(dtype)) return Form{info(dtype).bits, 0};
  if (is_signed_int(dtype)) return Form{info(dtype).bits - 1, 0};
  return std::nullopt;
}

/// Whether the type has every number of the other one.
bool holds(DType wide, DType narrow) {
  if (wide == narrow) return true;
  const auto a = form_of(wide), b = form_of(narrow);
  if (!a || !b) return false;
  if (is_float(narrow)) return is_float(wide) && a->digits >= b->digits && a->exponent >= b->exponent;
  if (wide == DType::Bool) return false;
  if (is_signed_int(narrow) && is_unsigned(wide)) return false;
  return a->digits >= b->digits;
}

/// Whether the last type makes the same of a number, whichever of the other types it comes from.
bool is_same_from(DType first, DType middle, DType last) {
  if (last == first) return true;
  if (!form_of(last)) return false;
  // a negative float is no number of an unsigned type, and a negative integer wraps around
  if (is_signed_int(first) && is_float(middle) && (is_unsigned(last) || info(last).bits < info(first).bits))
    return false;
  if (is_unsigned(first) && is_float(middle) && is_integer(last)) return holds(last, first);
  // a runtime may round twice on the way to 16 bits
  const bool is_half = last == DType::Float16 || last == DType::BFloat16;
  return !is_half || holds(DType::Float32, first);
}

}  // namespace

/// 1. Cast of a Cast whose type has every number that it is given.
bool merge_casts(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kCast) || node.input(0) == nullptr || node.output(0) == nullptr) return false;
  const Node* before = producer_of(node.input(0), kCast);
  if (before == nullptr || before->input(0) == nullptr || !before->input(0)->type.is_tensor()) return false;
  Value *x = before->input(0), *y = node.output(0);
  const DType first = x->type.dtype, middle = node.input(0)->type.dtype, last = y->type.dtype;
  if (!holds(middle, first) || !is_same_from(first, middle, last)) return false;
  if (last == first) return rewriter.replace(y, x);
  rewriter.set_input(node, 0, x);
  return true;
}

}  // namespace tonnx
