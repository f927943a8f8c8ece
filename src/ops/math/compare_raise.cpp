// compare_raise.cpp - PyTorch's comparisons, logic, bits and choices between two tensors as ONNX.
#include <cmath>
#include <limits>

#include "ops/math/complex.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

/// ~x of a signed integer, which every opset has.
Value* complement(Value* x, OnnxBuilder& onnx) { return onnx("Sub", {onnx.integer(OnnxBuilder::dtype(x), -1), x}); }

Values raise_isclose(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.promoted({"self", "other"});
  Value *a = n.input_as("self", dtype), *b = n.input_as("other", dtype);
  Value* result = onnx("Equal", {a, b});
  if (n.flag("equal_nan") && is_float(dtype))
    result = onnx("Or", {result, onnx("And", {onnx("IsNaN", {a}), onnx("IsNaN", {b})})});
  if (n.f("rtol") == 0 && n.f("atol") == 0) return result;
  const DType wide = is_float(dtype) ? dtype : DType::Float64;
  a = onnx.cast(a, wide), b = onnx.cast(b, wide);
  Value* allowed =
      onnx("Add", {onnx("Mul", {onnx("Abs", {b}), onnx.number(wide, n.f("rtol"))}), onnx.number(wide, n.f("atol"))});
  Value* error = onnx("Abs", {onnx("Sub", {a, b})});
  Value* is_close = onnx("LessOrEqual", {error, allowed});
  // an infinite error is none that is allowed
  if (is_float(dtype))
    is_close =
        onnx("And", {is_close, onnx("Less", {error, onnx.number(wide, std::numeric_limits<double>::infinity())})});
  return onnx("Or", {result, is_close});
}

/// The left shift of the bits; PyTorch gives 0 where more bits are asked for than there are.
Value* shift_left(Value* x, Value* count, OnnxBuilder& onnx) {
  const DType dtype = OnnxBuilder::dtype(x);
  Value* power = onnx("BitShift", {onnx.cast(x, DType::UInt64), onnx.cast(count, DType::UInt64)},
                      {{"direction", std::string("LEFT")}});
  return onnx.cast(power, dtype);
}

/// The right shift, which keeps the sign: that of ~x, taken back.
Value* shift_right(Value* x, Value* count, OnnxBuilder& onnx) {
  const DType dtype = OnnxBuilder::dtype(x);
  const auto shifted = [&](Value* bits) {
    return onnx.cast(onnx("BitShift", {onnx.cast(bits, DType::UInt64), onnx.cast(count, DType::UInt64)},
                          {{"direction", std::string("RIGHT")}}),
                     dtype);
  };
  if (is_unsigned(dtype)) return shifted(x);
  Value* is_negative = onnx("Less", {x, onnx.integer(dtype, 0)});
  Value* result = shifted(onnx.where(is_negative, complement(x, onnx), x));
  return onnx.where(is_negative, complement(result, onnx), result);
}

Values raise_clamp_min(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx("Max", {n.input_as("self", dtype), n.input_as("min", dtype)});
}

Values raise_clamp_max(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx("Min", {n.input_as("self", dtype), n.input_as("max", dtype)});
}

constexpr AtenOp kAtenCompareAten[] = {
    {.sig = "aten::bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.bitwise_and",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.bitwise_or",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.bitwise_xor",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.bitwise_left_shift",
     .raise = raise_shift},
    {.sig = "aten::bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.bitwise_right_shift",
     .raise = raise_shift},
    {.sig = "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = ".clamp_min",
     .raise = raise_clamp_min},
    {.sig = "aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = ".clamp_min",
     .raise = raise_clamp_min},
    {.sig = "aten::clamp_max(Tensor self, Scalar max) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = ".clamp_max",
     .raise = raise_clamp_max},
    {.sig = "aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = ".clamp_max",
     .raise = raise_clamp_max},
    {.sig = "aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool "
            "equal_nan=False) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.isclose",
     .raise = raise_isclose},
};

}  // namespace

Values raise_comparison(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  const DType dtype = n.promoted({"self", "other"});
  if (is_complex(dtype) && op == "Equal") return raise_complex_equal(n, onnx);
  if (is_complex(dtype)) n.cannot("comparisons of complex numbers");
  return onnx(op, {n.input_as("self", dtype), n.input_as("other", dtype)});
}

Values raise_ne(const AtenNode& n, OnnxBuilder& onnx) { return onnx("Not", {raise_comparison(n, onnx, "Equal")[0]}); }

Values raise_logical(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  return onnx(op, {n.input_as("self", DType::Bool), n.input_as("other", DType::Bool)});
}

Values raise_bitwise(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const std::string_view name = n.node().op.view();
  const bool is_bool = dtype == DType::Bool;
  const char* op = name == "bitwise_and"  ? (is_bool ? "And" : "BitwiseAnd")
                   : name == "bitwise_or" ? (is_bool ? "Or" : "BitwiseOr")
                                          : (is_bool ? "Xor" : "BitwiseXor");
  return onnx(op, {n.input_as("self", dtype), n.input_as("other", dtype)});
}

Values raise_shift(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const bool is_left = n.node().op.view() == "bitwise_left_shift";
  const int64_t bits = info(dtype).bits, most = is_left || is_unsigned(dtype) ? bits : bits - 1;
  Value* x = n.input_as("self", dtype);
  if (!n.is_tensor("other") && n.node().find_attribute("other")->value.get<Operand>() == nullptr) {
    const int64_t count = n.i("other");
    if (count < 0 || count > most) n.cannot("a shift by {} bits", count);
    if (count == 0) return x;
  }
  Value* count = n.input_as("other", dtype);
  Value* is_out = onnx("GreaterOrEqual", {count, onnx.integer(dtype, bits)});
  if (!is_unsigned(dtype)) is_out = onnx("Or", {is_out, onnx("Less", {count, onnx.integer(dtype, 0)})});
  if (n.input_as("other", dtype)->constant) is_out = nullptr;
  if (is_out == nullptr) return is_left ? shift_left(x, count, onnx) : shift_right(x, count, onnx);
  if (is_left)
    return onnx.where(is_out, onnx.integer(dtype, 0),
                      shift_left(x, onnx.where(is_out, onnx.integer(dtype, 0), count), onnx));
  return shift_right(x, onnx.where(is_out, onnx.integer(dtype, bits - 1), count), onnx);
}

Values raise_where(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (info(dtype).kind == 'c') n.cannot("a choice between complex numbers");
  return onnx.where(n.input_as("condition", DType::Bool), n.input_as("self", dtype), n.input_as("other", dtype));
}

Values raise_clamp(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* x = n.input_as("self", dtype);
  Value* min = n.has("min") ? n.input_as("min", dtype) : nullptr;
  Value* max = n.has("max") ? n.input_as("max", dtype) : nullptr;
  const auto is_number = [&](const Value* bound) { return bound == nullptr || onnx.rank(bound) == 0; };
  const bool are_numbers = is_number(min) && is_number(max) && (!n.is_tensor("min") || !n.is_tensor("max"));
  // Clip takes a bound that a float does not have for the largest finite number, and infinity is larger
  if (are_numbers && ((min && max) || !is_float(dtype))) return onnx("Clip", {x, min, max});
  if (min) x = onnx("Max", {x, min});
  return max ? onnx("Min", {x, max}) : x;
}

Values raise_nan_to_num(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  const DType dtype = n.dtype("self");
  if (info(dtype).kind == 'c') n.cannot("nan_to_num of complex numbers");
  const auto posinf = n.find_f("posinf"), neginf = n.find_f("neginf");
  const double nan = n.find_f("nan").value_or(0), inf = std::numeric_limits<double>::infinity();
  if (!is_float(dtype)) return x;
  Value* result = onnx.where(onnx("IsNaN", {x}), onnx.number(dtype, nan), x);
  const double largest = dtype == DType::Float16    ? 65504.0
                         : dtype == DType::BFloat16 ? 3.3895313892515355e38
                         : dtype == DType::Float32  ? static_cast<double>(std::numeric_limits<float>::max())
                                                    : std::numeric_limits<double>::max();
  if (!posinf && !neginf) return onnx("Clip", {result, onnx.number(dtype, -largest), onnx.number(dtype, largest)});
  const auto replaced = [&](double from, double to) {
    result = onnx.where(onnx("Equal", {x, onnx.number(dtype, from)}), onnx.number(dtype, to), result);
  };
  replaced(inf, posinf.value_or(largest));
  replaced(-inf, neginf.value_or(-largest));
  return result;
}

extern const OpFamily kAtenCompareOps;
constinit const OpFamily kAtenCompareOps{"aten_compare", {}, kAtenCompareAten};

}  // namespace tonnx
