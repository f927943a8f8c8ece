// raise.cpp - PyTorch's changes of element type as ONNX.
#include <cmath>

#include "ops/cast/rows.h"
#include "ops/frame/emission.h"

namespace tonnx {
namespace {

/// The device is left out: the code says where it is to run.
std::string emit_to_copy(const Emission& e) {
  const std::string self = e.text("self", precedence::kAtom);
  return e.has("dtype") ? fmt::format("{}.to({})", self, e.text("dtype")) : self + ".clone()";
}

constexpr AtenOp kAtenCastAten[] = {
    {.sig = "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool "
            "copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     .types = types_to,
     .elementwise = Elementwise::Kept,
     .view = ViewRule::Convert,
     .python = ".to",
     .raise = raise_to},
    {.sig = "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? "
            "memory_format=None) -> Tensor(a)",
     .types = types_to,
     .elementwise = Elementwise::Kept,
     .view = ViewRule::Convert,
     .python = ".to",
     .raise = raise_to},
    {.sig = "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
            "memory_format=None) -> Tensor(a)",
     .types = types_to,
     .elementwise = Elementwise::Kept,
     .view = ViewRule::Convert,
     .python = ".to",
     .raise = raise_to},
    {.sig = "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
     .types = types_to,
     .elementwise = Elementwise::Kept,
     .emit = emit_to_copy,
     .raise = raise_to},
    {.sig = "aten::type_as(Tensor self, Tensor other) -> Tensor",
     .types = types_to,
     .elementwise = Elementwise::Kept,
     .view = ViewRule::Convert,
     .python = ".type_as",
     .raise = raise_to},
};

}  // namespace

Values raise_to(const AtenNode& n, OnnxBuilder& onnx) {
  for (const Attribute& argument : n.node().attributes) n.ignore({argument.name});
  const DType from = n.dtype("self"), to = n.output_dtype();
  const bool was_complex = info(from).kind == 'c', is_complex = info(to).kind == 'c';
  Value* x = n.input("self");
  if (was_complex && is_complex) return onnx.cast(x, to == DType::Complex128 ? DType::Float64 : DType::Float32);
  if (was_complex) return onnx.cast(onnx.gather(x, onnx.integer(DType::Int64, 0), n.rank("self")), to);
  // past the range PyTorch saturates float8_e4m3fn alone
  const bool saturates = to == DType::Float8E4M3FN || !contains(kFloat8, to) || from == to;
  if (!saturates) return onnx("Cast", {x}, {{"saturate", int64_t{0}}, {"to", static_cast<int64_t>(to)}});
  if (!is_complex) return onnx.cast(x, to);
  Value* real = onnx.cast(x, to == DType::Complex128 ? DType::Float64 : DType::Float32);
  const int64_t last = n.rank("self");
  return onnx.concat({onnx.unsqueeze(real, {last}), onnx.unsqueeze(onnx("Sub", {real, real}), {last})}, last);
}

Values raise_frexp(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.dtype("self"), wide = DType::Float64;
  Value* x = onnx.cast(n.input("self"), wide);
  const auto number = [&](double value) { return onnx.number(wide, value); };
  Value* size = onnx("Abs", {x});
  Value* is_plain = onnx("And", {onnx("Greater", {size, number(0)}), onnx("Less", {size, number(INFINITY)})});
  Value* safe = onnx.where(is_plain, size, number(0.5));
  // the logarithm may be off by one near powers of two
  Value* guess = onnx("Floor", {onnx("Mul", {onnx("Log", {safe}), number(1 / std::log(2.0))})});
  Value* mantissa = onnx("Div", {safe, onnx("Pow", {number(2), guess})});
  Value* is_high = onnx("GreaterOrEqual", {mantissa, number(1)});
  Value* is_low = onnx("Less", {mantissa, number(0.5)});
  Value* step = onnx("Sub", {onnx.cast(is_high, wide), onnx.cast(is_low, wide)});
  Value* exponent = onnx("Add", {guess, step});
  mantissa = onnx("Div", {mantissa, onnx("Pow", {number(2), step})});
  mantissa = onnx.where(is_plain, onnx("Mul", {mantissa, onnx("Sign", {x})}), x);
  exponent = onnx.where(is_plain, exponent, number(0));
  return {onnx.cast(mantissa, dtype), onnx.cast(exponent, n.output_dtype(1))};
}

extern const OpFamily kAtenCastOps;
constinit const OpFamily kAtenCastOps{"aten_cast", {}, kAtenCastAten};

}  // namespace tonnx
