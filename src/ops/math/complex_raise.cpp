// complex_raise.cpp - PyTorch's complex numbers as pairs of floats in a last dimension of their own.
#include "ops/math/complex.h"
#include "ops/math/rows.h"

namespace tonnx {

Value* complex_argument(const AtenNode& n, OnnxBuilder& onnx, std::string_view name, DType dtype) {
  if (is_complex(n.dtype(name))) return onnx.cast(n.input(name), dtype);
  Value* real = n.input_as(name, dtype);
  return pair_of_parts(onnx, real, onnx("Sub", {real, real}));
}

Value* complex_product(Value* a, Value* b, OnnxBuilder& onnx) {
  Value *ar = part_of(onnx, a, 0), *ai = part_of(onnx, a, 1), *br = part_of(onnx, b, 0), *bi = part_of(onnx, b, 1);
  return pair_of_parts(onnx, onnx("Sub", {onnx("Mul", {ar, br}), onnx("Mul", {ai, bi})}),
                       onnx("Add", {onnx("Mul", {ar, bi}), onnx("Mul", {ai, br})}));
}

Value* complex_quotient(Value* a, Value* b, OnnxBuilder& onnx) {
  Value* conjugate = onnx("Mul", {b, onnx.numbers(OnnxBuilder::dtype(b), {2}, {1, -1})});
  Value* square = onnx.reduce("ReduceSumSquare", b, {onnx.rank(b) - 1}, true);
  return onnx("Div", {complex_product(a, conjugate, onnx), square});
}

Value* polar_pair(Value* length, Value* angle, OnnxBuilder& onnx) {
  return pair_of_parts(onnx, onnx("Mul", {length, onnx("Cos", {angle})}), onnx("Mul", {length, onnx("Sin", {angle})}));
}

namespace {

Values raise_real(const AtenNode& n, OnnxBuilder& onnx) {
  return is_complex(n.dtype("self")) ? part_of(onnx, n.input("self"), 0) : n.input("self");
}

Values raise_imag(const AtenNode& n, OnnxBuilder& onnx) { return part_of(onnx, n.input("self"), 1); }

Values raise_complex(const AtenNode& n, OnnxBuilder& onnx) {
  Value *real = n.input("real"), *imaginary = n.input("imag");
  return pair_of_parts(onnx, onnx.expand(real, n.output_shape()), onnx.expand(imaginary, n.output_shape()));
}

Values raise_polar(const AtenNode& n, OnnxBuilder& onnx) {
  Value *length = n.input("abs"), *angle = n.input("angle");
  return polar_pair(length, angle, onnx);
}

constexpr AtenOp kAtenComplexAten[] = {
    {.sig = "aten::complex(Tensor real, Tensor imag) -> Tensor",
     .types = types_complex,
     .python = "torch.complex",
     .raise = raise_complex},
    {.sig = "aten::imag(Tensor(a) self) -> Tensor(a)",
     .types = types_real,
     .view = ViewRule::Opaque,
     .python = "torch.imag",
     .raise = raise_imag},
    {.sig = "aten::polar(Tensor abs, Tensor angle) -> Tensor",
     .types = types_complex,
     .python = "torch.polar",
     .raise = raise_polar},
    {.sig = "aten::real(Tensor(a) self) -> Tensor(a)",
     .types = types_real,
     .view = ViewRule::Real,
     .python = "torch.real",
     .raise = raise_real},
};

}  // namespace

Values raise_complex_binary(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string_view op = n.node().op.view();
  const DType dtype = part_dtype(n.output_dtype());
  const bool is_swapped = op == "rsub";
  Value* a = complex_argument(n, onnx, is_swapped ? "other" : "self", dtype);
  if (op == "add" || op == "sub" || is_swapped) {
    Value* b = complex_argument(n, onnx, is_swapped ? "self" : "other", dtype);
    if (n.f("alpha") != 1) b = onnx("Mul", {b, n.input_as("alpha", dtype)});
    return onnx(op == "add" ? "Add" : "Sub", {a, b});
  }
  // a real factor stretches both parts
  if (!is_complex(n.dtype("other"))) {
    Value* factor = n.input_as("other", dtype);
    if (n.rank("other") > 0) factor = onnx.unsqueeze(factor, {n.rank("other")});
    return onnx(op == "mul" ? "Mul" : "Div", {a, factor});
  }
  Value* b = complex_argument(n, onnx, "other", dtype);
  if (op == "mul") return complex_product(a, b, onnx);
  return complex_quotient(a, b, onnx);
}

Values raise_complex_equal(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = part_dtype(n.promoted({"self", "other"}));
  Value *a = complex_argument(n, onnx, "self", dtype), *b = complex_argument(n, onnx, "other", dtype);
  const auto agrees = [&](int64_t which) { return onnx("Equal", {part_of(onnx, a, which), part_of(onnx, b, which)}); };
  return onnx("And", {agrees(0), agrees(1)});
}

Values raise_complex_reciprocal(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  return complex_quotient(onnx.numbers(OnnxBuilder::dtype(x), {2}, {1, 0}), x, onnx);
}

Values raise_complex_square(const AtenNode& n, OnnxBuilder& onnx) {
  return complex_product(n.input("self"), n.input("self"), onnx);
}

/// x / (1 + exp(-x))
Values raise_complex_silu(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  const DType dtype = OnnxBuilder::dtype(x);
  Value* shrink = onnx("Exp", {onnx("Neg", {part_of(onnx, x, 0)})});
  Value* angle = onnx("Neg", {part_of(onnx, x, 1)});
  Value* real = onnx("Add", {onnx("Mul", {shrink, onnx("Cos", {angle})}), onnx.number(dtype, 1)});
  return complex_quotient(x, pair_of_parts(onnx, real, onnx("Mul", {shrink, onnx("Sin", {angle})})), onnx);
}

extern const OpFamily kAtenComplexOps;
constinit const OpFamily kAtenComplexOps{"aten_complex", {}, kAtenComplexAten};

}  // namespace tonnx
