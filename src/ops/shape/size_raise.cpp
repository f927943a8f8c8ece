// size_raise.cpp - PyTorch's numbers that do not follow from sizes, as ONNX.
#include "ops/frame/aten_types.h"
#include "ops/move/rows.h"
#include "ops/shape/rows.h"
#include "ops/shape/script.h"

namespace tonnx {
namespace {

bool is_int(const AtenNode& n) { return n.output_type().kind == Type::Kind::Int; }

Value* as_float(const AtenNode& n, std::string_view name) { return n.input_as(name, DType::Float32); }

}  // namespace

/// Of integers, or of floats where one of the two is a float.
Values raise_number_op(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  if (is_int(n)) return onnx(op, {onnx.list(n.int_arg("a")), onnx.list(n.int_arg("b"))});
  return onnx(op, {as_float(n, "a"), as_float(n, "b")});
}

Values raise_number_floor_div(const AtenNode& n, OnnxBuilder& onnx) {
  if (!is_int(n)) return onnx("Floor", {onnx("Div", {as_float(n, "a"), as_float(n, "b")})});
  const IntArg a = n.int_arg("a"), b = n.int_arg("b");
  // Div goes towards zero: (a - a mod b) is divided without a rest, and Mod has the sign of b
  Value* rest = onnx("Mod", {onnx.list(a), onnx.list(b)});
  return onnx("Div", {onnx("Sub", {onnx.list(a), rest}), onnx.list(b)});
}

Values raise_number_mod(const AtenNode& n, OnnxBuilder& onnx) {
  if (is_int(n)) return onnx("Mod", {onnx.list(n.int_arg("a")), onnx.list(n.int_arg("b"))});
  Value *a = as_float(n, "a"), *b = as_float(n, "b");
  return onnx("Sub", {a, onnx("Mul", {onnx("Floor", {onnx("Div", {a, b})}), b})});
}

Values raise_number_neg(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx("Neg", {is_int(n) ? onnx.list(n.int_arg("a")) : as_float(n, "a")});
}

Values raise_number_true_div(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx("Div", {as_float(n, "a"), as_float(n, "b")});
}

/// Whether a relation holds: a boolean without dimensions.
Values raise_number_compare(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  const bool negated = op == "NotEqual";
  const bool is_float = n.dtype("a") == DType::Float32 || n.dtype("b") == DType::Float32;
  const DType dtype = is_float ? DType::Float32 : DType::Int64;
  Value* y = onnx(negated ? "Equal" : op, {n.input_as("a", dtype), n.input_as("b", dtype)});
  return negated ? onnx("Not", {y}) : y;
}

/// math.floor and math.ceil give integers.
Values raise_rounded_size(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  return at_least_1d(onnx, onnx.cast(onnx(op, {as_float(n, "a")}), DType::Int64));
}

Values raise_sym_size(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx.list(onnx.size(n.input("self"), n.dim("dim", "self")));
}

Values raise_sym_numel(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx.reshape(onnx("Size", {n.input("self")}), IntArgs{1});
}

/// The one element as a number.
Values raise_item(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  const Type& type = n.output_type();
  if (type.kind == Type::Kind::Int) {
    x = onnx.cast(x, DType::Int64);
    return onnx.rank(x) == 1 ? x : onnx.reshape(x, IntArgs{1});
  }
  x = onnx.cast(x, type.kind == Type::Kind::Bool ? DType::Bool : DType::Float32);
  return onnx.rank(x) == 0 ? x : onnx.reshape(x, Shape{});
}

namespace {

Values raise_shape_as_tensor(const AtenNode& n, OnnxBuilder& onnx) { return onnx("Shape", {n.input("self")}); }

Values raise_sym_not(const AtenNode& n, OnnxBuilder& onnx) { return onnx("Not", {n.input_as("a", DType::Bool)}); }

Values raise_sym_ite(const AtenNode& n, OnnxBuilder& onnx) {
  Value* b = n.input_as("b", DType::Bool);
  if (is_int(n)) return onnx.where(b, onnx.list(n.int_arg("t")), onnx.list(n.int_arg("f")));
  return onnx.where(b, as_float(n, "t"), as_float(n, "f"));
}

Values raise_sym_float(const AtenNode& n, OnnxBuilder&) { return as_float(n, "a"); }

Values raise_sym_int(const AtenNode& n, OnnxBuilder& onnx) {
  return at_least_1d(onnx, n.input_as("a", DType::Int64));  // towards zero, as in Python
}

Values raise_sym_sqrt(const AtenNode& n, OnnxBuilder& onnx) { return onnx("Sqrt", {as_float(n, "a")}); }

Values raise_number_pow(const AtenNode& n, OnnxBuilder& onnx) {
  if (!is_int(n)) return onnx("Pow", {as_float(n, "a"), as_float(n, "b")});
  return onnx("Pow", {onnx.list(n.int_arg("a")), onnx.list(n.int_arg("b"))});
}

Values raise_number_and(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.output_type().kind != Type::Kind::Bool) n.cannot("the bits of integers");
  return onnx("And", {n.input_as("a", DType::Bool), n.input_as("b", DType::Bool)});
}

Values raise_number_or(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.output_type().kind != Type::Kind::Bool) n.cannot("the bits of integers");
  return onnx("Or", {n.input_as("a", DType::Bool), n.input_as("b", DType::Bool)});
}

constexpr AtenOp kAtenSizeAten[] = {
    {.sig = "aten::item(Tensor self) -> Scalar", .python = ".item", .script = script_item, .raise = raise_item},
    {.sig = "aten::_shape_as_tensor(Tensor self) -> Tensor",
     .types = types_shape_as_tensor,
     .python = "torch._shape_as_tensor",
     .raise = raise_shape_as_tensor},
    {.sig = "torch::sym_not(bool a) -> bool", .python = "torch.sym_not", .script = script_not, .raise = raise_sym_not},
    {.sig = "torch::sym_ite(bool b, Scalar t, Scalar f) -> Scalar",
     .python = "torch.sym_ite",
     .script = script_choice,
     .raise = raise_sym_ite},
    {.sig = "torch::sym_float(Scalar a) -> float",
     .python = "torch.sym_float",
     .script = script_function<"float">,
     .raise = raise_sym_float},
    {.sig = "torch::sym_int(Scalar a) -> SymInt",
     .types = types_same_number,
     .python = "torch.sym_int",
     .script = script_function<"int">,
     .raise = raise_sym_int},
    {.sig = "torch::_sym_sqrt(Scalar a) -> float",
     .python = "torch._sym_sqrt",
     .script = script_function<"torch.sqrt">,
     .raise = raise_sym_sqrt},
    {.sig = "math::trunc(float a) -> SymInt",
     .python = "math.trunc",
     .script = script_function<"int">,
     .raise = raise_sym_int},
    {.sig = "_operator::pow(Scalar a, Scalar b) -> Scalar",
     .python = "**",
     .script = script_power,
     .raise = raise_number_pow},
    {.sig = "_operator::and_(Scalar a, Scalar b) -> Scalar",
     .python = "&",
     .script = script_function<"torch.__and__">,
     .raise = raise_number_and},
    {.sig = "_operator::or_(Scalar a, Scalar b) -> Scalar",
     .python = "|",
     .script = script_function<"torch.__or__">,
     .raise = raise_number_or},
    {.sig = "_operator::pos(Scalar a) -> Scalar",
     .python = "+",
     .script = script_same_number,
     .note = "a number that changes nothing"},
};

}  // namespace

extern const OpFamily kAtenSizeOps;
constinit const OpFamily kAtenSizeOps{"aten_size", {}, kAtenSizeAten};

}  // namespace tonnx
