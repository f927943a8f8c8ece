// complex_raise.cpp - PyTorch's complex numbers as pairs of floats in a last dimension of their own.
#include "ops/signal/raise.h"
#include "ops/signal/types.h"

namespace tonnx {
namespace {

Value* part(Value* x, int64_t which, OnnxBuilder& onnx) {
  return onnx.gather(x, onnx.integer(DType::Int64, which), onnx.rank(x) - 1);
}

Value* pair(Value* real, Value* imaginary, OnnxBuilder& onnx) {
  const int64_t last = onnx.rank(real);
  return onnx.concat({onnx.unsqueeze(real, {last}), onnx.unsqueeze(imaginary, {last})}, last);
}

DType part_type(DType dtype) {
  return dtype == DType::Complex128 || dtype == DType::Float64 ? DType::Float64 : DType::Float32;
}

/// The argument as a pair, with 0 as its imaginary part where it is real.
Value* pair_of(const AtenNode& n, OnnxBuilder& onnx, std::string_view name, DType dtype) {
  if (is_complex(n.dtype(name))) return onnx.cast(n.input(name), dtype);
  Value* real = n.input_as(name, dtype);
  return pair(real, onnx("Sub", {real, real}), onnx);
}

Values raise_real(const AtenNode& n, OnnxBuilder& onnx) {
  return is_complex(n.dtype("self")) ? part(n.input("self"), 0, onnx) : n.input("self");
}

Values raise_imag(const AtenNode& n, OnnxBuilder& onnx) { return part(n.input("self"), 1, onnx); }

Values raise_complex(const AtenNode& n, OnnxBuilder& onnx) {
  Value *real = n.input("real"), *imaginary = n.input("imag");
  return pair(onnx.expand(real, n.output_shape()), onnx.expand(imaginary, n.output_shape()), onnx);
}

Values raise_polar(const AtenNode& n, OnnxBuilder& onnx) {
  Value *length = n.input("abs"), *angle = n.input("angle");
  return pair(onnx("Mul", {length, onnx("Cos", {angle})}), onnx("Mul", {length, onnx("Sin", {angle})}), onnx);
}

Value* product(Value* a, Value* b, OnnxBuilder& onnx) {
  Value *ar = part(a, 0, onnx), *ai = part(a, 1, onnx), *br = part(b, 0, onnx), *bi = part(b, 1, onnx);
  return pair(onnx("Sub", {onnx("Mul", {ar, br}), onnx("Mul", {ai, bi})}),
              onnx("Add", {onnx("Mul", {ar, bi}), onnx("Mul", {ai, br})}), onnx);
}

Value* quotient(Value* a, Value* b, OnnxBuilder& onnx) {
  Value* conjugate = onnx("Mul", {b, onnx.numbers(OnnxBuilder::dtype(b), {2}, {1, -1})});
  Value* square = onnx.reduce("ReduceSumSquare", b, {onnx.rank(b) - 1}, true);
  return onnx("Div", {product(a, conjugate, onnx), square});
}

constexpr AtenOp kAtenComplexAten[] = {
    {.sig = "aten::complex(Tensor real, Tensor imag) -> Tensor", .python = "torch.complex", .raise = raise_complex},
    {.sig = "aten::imag(Tensor(a) self) -> Tensor(a)",
     .types = types_real,
     .view = ViewRule::Opaque,
     .python = "torch.imag",
     .raise = raise_imag},
    {.sig = "aten::polar(Tensor abs, Tensor angle) -> Tensor", .python = "torch.polar", .raise = raise_polar},
    {.sig = "aten::real(Tensor(a) self) -> Tensor(a)",
     .types = types_real,
     .view = ViewRule::Real,
     .python = "torch.real",
     .raise = raise_real},
};

}  // namespace

Values raise_complex_binary(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string_view op = n.node().op.view();
  const DType dtype = part_type(n.output_dtype());
  const bool is_swapped = op == "rsub";
  Value* a = pair_of(n, onnx, is_swapped ? "other" : "self", dtype);
  if (op == "add" || op == "sub" || is_swapped) {
    Value* b = pair_of(n, onnx, is_swapped ? "self" : "other", dtype);
    if (n.f("alpha") != 1) b = onnx("Mul", {b, n.input_as("alpha", dtype)});
    return onnx(op == "add" ? "Add" : "Sub", {a, b});
  }
  // a real factor stretches both parts
  if (!is_complex(n.dtype("other"))) {
    Value* factor = n.input_as("other", dtype);
    if (n.rank("other") > 0) factor = onnx.unsqueeze(factor, {n.rank("other")});
    return onnx(op == "mul" ? "Mul" : "Div", {a, factor});
  }
  Value* b = pair_of(n, onnx, "other", dtype);
  if (op == "mul") return product(a, b, onnx);
  return quotient(a, b, onnx);
}

Values raise_complex_equal(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = part_type(n.promoted({"self", "other"}));
  Value *a = pair_of(n, onnx, "self", dtype), *b = pair_of(n, onnx, "other", dtype);
  const auto agrees = [&](int64_t which) { return onnx("Equal", {part(a, which, onnx), part(b, which, onnx)}); };
  return onnx("And", {agrees(0), agrees(1)});
}

Values raise_complex_reciprocal(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  return quotient(onnx.numbers(OnnxBuilder::dtype(x), {2}, {1, 0}), x, onnx);
}

Values raise_complex_square(const AtenNode& n, OnnxBuilder& onnx) {
  return product(n.input("self"), n.input("self"), onnx);
}

/// x / (1 + exp(-x))
Values raise_complex_silu(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  const DType dtype = OnnxBuilder::dtype(x);
  Value* shrink = onnx("Exp", {onnx("Neg", {part(x, 0, onnx)})});
  Value* angle = onnx("Neg", {part(x, 1, onnx)});
  Value* real = onnx("Add", {onnx("Mul", {shrink, onnx("Cos", {angle})}), onnx.number(dtype, 1)});
  return quotient(x, pair(real, onnx("Mul", {shrink, onnx("Sin", {angle})}), onnx), onnx);
}

extern const OpFamily kAtenComplexOps;
constinit const OpFamily kAtenComplexOps{"aten_complex", {}, kAtenComplexAten};

}  // namespace tonnx
