// types.cpp - types of new tensors.
#include <cmath>

#include "ops/create/rows.h"

namespace tonnx {

namespace {

/// A whole number, which may be written as a float.
std::optional<Dim> whole_number(const TypeNode& n, std::string_view argument) {
  const auto* real = n.args().constant(argument)->get<double>();
  if (real == nullptr) return n.size(argument);
  return std::trunc(*real) == *real && std::abs(*real) < 0x1p52 ? std::optional(Dim(static_cast<int64_t>(*real)))
                                                                : std::nullopt;
}

}  // namespace

void types_arange(TypeNode& n) {
  const ParsedSignature& signature = n.args().signature();
  const bool has_start = signature.find_input("start") >= 0, has_step = signature.find_input("step") >= 0;
  const auto start = has_start ? whole_number(n, "start") : Dim(0), end = whole_number(n, "end");
  const auto step = has_step ? whole_number(n, "step") : Dim(1);
  const auto is_float = [&](std::string_view name) {
    const AttrValue* given = n.args().constant(name);
    const Value* value = n.args().value(name);
    return given->get<double>() != nullptr || (value != nullptr && value->type.kind == Type::Kind::Float);
  };
  bool floats = is_float("end") || (has_start && is_float("start"));
  if (has_step) floats = floats || is_float("step");
  const DType dtype = n.given_dtype().value_or(floats ? DType::Float32 : DType::Int64);
  const auto is_signed = [&](std::string_view name) { return is_of_tensor(n.args().value(name)); };
  // the count is as a size only where neither end is a number that may be negative
  const bool is_open = is_signed("end") || (has_start && is_signed("start")) || (has_step && is_signed("step"));
  if (is_open || !start || !end || !step || step->is(0)) return n.set(dtype, Shape{n.fresh()});
  n.set(dtype, Shape{max(ceil_div(*end - *start, *step), Dim(0))});
}

void types_full(TypeNode& n) {
  const AttrValue* value = n.args().constant("fill_value");
  DType dtype = DType::Float32;
  if (value->get<int64_t>()) dtype = DType::Int64;
  if (value->get<bool>()) dtype = DType::Bool;
  n.set(n.given_dtype().value_or(dtype), n.sizes("size"));
}

void types_of_size(TypeNode& n) { n.set(n.given_dtype().value_or(DType::Float32), n.sizes("size")); }
void types_scalar_tensor(TypeNode& n) { n.set(n.given_dtype().value_or(DType::Float32), Shape()); }

void types_eye(TypeNode& n) {
  const auto rows = n.size("n");
  const auto columns = n.args().signature().find_input("m") >= 0 ? n.size("m") : rows;
  n.set(n.given_dtype().value_or(DType::Float32), rows && columns ? MaybeShape(Shape{*rows, *columns}) : std::nullopt);
}

void types_window(TypeNode& n) {
  const auto length = n.size("window_length");
  n.set(n.given_dtype().value_or(DType::Float32), Shape{length ? *length : n.fresh()});
}

void types_new(TypeNode& n) { n.set(n.given_dtype().value_or(n.dtype("self")), n.sizes("size")); }
void types_linspace(TypeNode& n) {
  const auto steps = n.size("steps");
  n.set(n.given_dtype().value_or(DType::Float32), steps ? MaybeShape(Shape{*steps}) : std::nullopt);
}

void types_triangle(TypeNode& n) { n.set(n.given_dtype().value_or(DType::Int64), Shape{Dim(2), n.fresh()}); }

}  // namespace tonnx
