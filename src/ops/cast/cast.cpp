// cast.cpp - changes of the element type: Cast, CastLike, BitCast.
#include "ops/cast/cast.h"

#include <cmath>

#include "base/error.h"
#include "ops/cast/eval.h"
#include "ops/cast/rows.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/same_value.h"
#include "ops/frame/script_node.h"
#include "ops/math/complex.h"
#include "ops/math/rows.h"
#include "ops/shape/rows.h"

namespace tonnx {
namespace {

/// The largest number of a float8 type, which is what ONNX gives past it when asked to saturate.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::Float8E4M3FN: return 448.0;
    case DType::Float8E4M3FNUZ: return 240.0;
    default: return 57344.0;
  }
}

/// Floats of 4 and 6 bits live in float32: rounded to their digits, ties to even, and held to their range.
struct NarrowFloat {
  int64_t least_exponent;
  int64_t digits;
  double largest;
};

NarrowFloat narrow_float(DType dtype) {
  switch (dtype) {
    case DType::Float4E2M1: return {0, 1, 6.0};
    case DType::Float6E2M3: return {0, 3, 7.5};
    default: return {-2, 2, 28.0};
  }
}

Value* to_narrow_float(AtenBuilder& aten, Value* x, DType from, DType to) {
  const auto [least_exponent, digits, largest] = narrow_float(to);
  x = aten("nan_to_num", cast(aten, x, widened(from), DType::Float32));
  x = aten("clamp", x, -largest, largest);
  Value* exponent = aten.all("frexp.Tensor", x)[1];  // of x = mantissa * 2^exponent, the mantissa in [0.5, 1)
  Value* step =
      aten("exp2", aten("to.dtype", aten("clamp", aten("sub.Scalar", exponent, digits + 1), least_exponent - digits),
                        DType::Float32));
  return aten("mul.Tensor", aten("round", aten("div.Tensor", x, step)), step);
}

/// Integers of 2 and 4 bits live in 8: the higher bits are dropped, and the sign is drawn from the highest that stays.
Value* to_narrow_int(AtenBuilder& aten, Value* x, DType from, DType to) {
  const int bits = info(to).bits;
  const bool is_narrower = is_integer(from) && info(from).bits <= bits && is_signed_int(from) == is_signed_int(to);
  if (is_narrower) return cast(aten, x, widened(from), widened(to));
  const DType wide = is_integer(from) && info(from).bits <= 8 ? widened(from) : DType::Int32;
  x = aten("bitwise_and.Scalar", cast(aten, x, widened(from), wide), (int64_t{1} << bits) - 1);
  if (is_signed_int(to)) {
    const int64_t sign = int64_t{1} << (bits - 1);
    if (wide == DType::UInt8) x = aten("to.dtype", x, DType::Int8);
    const DType now = wide == DType::UInt8 ? DType::Int8 : wide;
    return cast(aten, aten("sub.Scalar", aten("bitwise_xor.Scalar", x, sign), sign), now, DType::Int8);
  }
  return cast(aten, x, wide, DType::UInt8);
}

/// A power of two: the exponent of the float32, carried over by rounding, is the whole number.
Value* to_exponent(AtenBuilder& aten, Value* x, DType from, const CastOptions& options) {
  require(options.round_mode == "up" || options.round_mode == "down" || options.round_mode == "nearest",
          "the round_mode is '{}', and must be up, down or nearest", options.round_mode);
  x = cast(aten, x, widened(from), DType::Float32);
  Value* bits = aten("view.dtype", aten("abs", x), DType::Int32);
  if (options.round_mode != "down") bits = aten("add.Scalar", bits, options.round_mode == "up" ? 0x7FFFFF : 0x400000);
  Value* exponent =
      aten("clamp", aten("bitwise_right_shift.Tensor_Scalar", bits, 23), nullptr, options.saturate ? 254 : 255);
  exponent = aten("masked_fill.Scalar", exponent, aten("isnan", x), 255);
  return aten("view.dtype", aten("to.dtype", exponent, DType::UInt8), DType::Float8E8M0);
}

}  // namespace

Value* converted(AtenBuilder& aten, Value* x, DType from, DType to, const CastOptions& options) {
  if (from == DType::String || to == DType::String) fail_unsupported("PyTorch has no tensors of strings");
  if (from == to) return x;
  if (contains(kFloat4 | kFloat6, to)) return to_narrow_float(aten, x, from, to);
  if (contains(kInt4 | kInt2, to)) return to_narrow_int(aten, x, from, to);
  if (to == DType::Float8E8M0) return to_exponent(aten, x, from, options);
  DType now = widened(from);
  // PyTorch gives NaN or infinity past the range, but newer versions saturate float8_e4m3fn
  if (contains(kFloat8, to) && from != DType::Bool && (options.saturate || to == DType::Float8E4M3FN)) {
    if (!is_float(from) || info(now).bits == 8) {
      x = aten("to.dtype", x, DType::Float32);
      now = DType::Float32;
    }
    x = options.saturate ? aten("clamp", x, -largest_of(to), largest_of(to))
                         : aten("masked_fill.Scalar", x, aten("gt.Scalar", aten("abs", x), 464.0), NAN);
  }
  return cast(aten, x, now, widened(to));
}

namespace {

/// One number, and integers that follow from shapes, are known in the new type too.
void infer_converted(InferNode& n, DType to) {
  const Type& input = n.type("input");
  n.set(0, to, input.shape);
  Value* output = n.node().output(0);
  if (output == nullptr) return;
  if (const TensorPtr constant = n.find_constant("input"); constant && constant->count() == 1) {
    const auto number = floats_of(*constant);
    if (is_plain_float(to) && number) output->constant = make_floats(to, constant->dims, *number);
  }
  const auto elements = find_ints(*n.value("input"));
  if (!elements) return;
  const auto numbers = n.find_const_ints("input");
  if (numbers && is_plain_float(to) && n.value("input")->known_ints && input.shape) {
    const auto count = static_cast<int64_t>(numbers->size());
    const std::vector<int64_t> dims = input.shape->empty() ? std::vector<int64_t>{} : std::vector{count};
    output->constant = make_floats(to, dims, std::vector<double>(numbers->begin(), numbers->end()));
  }
  if (!is_integer(to) && to != DType::Bool) return;
  Dims result;
  for (const Dim& element : *elements) {
    if (to == DType::Bool && !element.is_constant()) return;
    result.push_back(to == DType::Bool ? Dim(element.is(0) ? 0 : 1) : element);
    if (!fits(result.back(), to)) return;
  }
  n.set_dims(std::move(result));
}

void infer_cast(InferNode& n) { infer_converted(n, *n.find_dtype("to")); }

void infer_cast_like(InferNode& n) {
  if (n.dtype("target_type") != DType::Undefined) infer_converted(n, n.dtype("target_type"));
}

Values lower_converted(const OnnxNode& n, AtenBuilder& aten, DType to) {
  const CastOptions options{n.flag("saturate"), n.s("round_mode")};
  const auto elements = n.find_dims("input");
  if (elements && is_plain_float(to) && !n.find_constant("input") && n.find_rank("input")) {
    IntArgs ints;
    for (const Dim& element : *elements) ints.push_back(n.int_arg(element));
    if (n.rank("input") == 0) return aten("tonnx::int_scalar", ints.at(0), Kw{"dtype", to});
    return aten("tonnx::int_tensor", ints, Kw{"dtype", to});
  }
  return converted(aten, n.input("input"), n.dtype("input"), to, options);
}

Values lower_cast(const OnnxNode& n, AtenBuilder& aten) { return lower_converted(n, aten, *n.find_dtype("to")); }

Values lower_cast_like(const OnnxNode& n, AtenBuilder& aten) {
  const DType to = n.dtype("target_type");
  if (to == DType::Undefined) fail_unsupported("the element type of 'target_type' is not known");
  return lower_converted(n, aten, to);
}

void infer_bit_cast(InferNode& n) {
  const DType from = n.dtype("input"), to = *n.find_dtype("to");
  const bool same = from == DType::Undefined || (info(from).bits == info(to).bits && to != DType::String);
  require(same, "the bits of {} cannot be those of {}", name_of(from), name_of(to));
  n.set(0, to, n.type("input").shape);
}

Values lower_bit_cast(const OnnxNode& n, AtenBuilder& aten) {
  const DType from = n.dtype("input"), to = *n.find_dtype("to");
  Value* x = n.input("input");
  if (from == to) return x;
  if (!is_sub_byte(from)) return aten("view.dtype", x, to);
  if (!is_integer(from) || !is_integer(to))
    fail_unsupported("{} and {} are not held in one form", name_of(from), name_of(to));
  return to_narrow_int(aten, x, from, to);
}

/// The names that opset 1 gives to the types, by number.
constexpr std::string_view kTypeNames[] = {"UNDEFINED", "FLOAT",  "UINT8",     "INT8",      "UINT16",  "INT16",
                                           "INT32",     "INT64",  "STRING",    "BOOL",      "FLOAT16", "DOUBLE",
                                           "UINT32",    "UINT64", "COMPLEX64", "COMPLEX128"};

void up_cast_6(OnnxEdit& edit) {
  const Attribute* found = edit.node().find_attribute("to");
  const auto* name = found ? found->value.get<std::string>() : nullptr;
  require(name != nullptr, "attribute 'to' is missing or of the wrong type");
  const auto* at = std::find(std::begin(kTypeNames) + 1, std::end(kTypeNames), *name);
  require(at != std::end(kTypeNames), "'{}' is not the name of an element type", *name);
  edit.node().set_attribute("to", static_cast<int64_t>(at - std::begin(kTypeNames)), AttrType::Int);
}

void down_cast_6(OnnxEdit& edit) {
  const int64_t to = edit.i("to", 0);
  if (to < 1 || to >= static_cast<int64_t>(std::size(kTypeNames))) edit.cannot("opset 5 has no element type {}", to);
  edit.node().set_attribute("to", std::string(kTypeNames[to]), AttrType::String);
}

// What they say matters for types only that the older opset does not take.
void down_saturate(OnnxEdit& edit) { drop_attribute(edit, "saturate"); }
void down_round_mode(OnnxEdit& edit) { drop_attribute(edit, "round_mode"); }

constexpr OpsetStep kCastHistory[] = {
    {.to = 6, .up = up_cast_6, .down = down_cast_6},
    {.to = 9, .adds = dtype_set(DType::String)},
    {.to = 13, .adds = kBFloat16},
    {.to = 19, .down = down_saturate, .adds = kFloat8},
    {.to = 21, .adds = kInt4},
    {.to = 23, .adds = kFloat4},
    {.to = 24, .down = down_round_mode, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
    {.to = 28, .adds = kFloat6},
};
constexpr OpsetStep kCastLikeHistory[] = {
    {.to = 19, .down = down_saturate, .adds = kFloat8},       {.to = 21, .adds = kInt4}, {.to = 23, .adds = kFloat4},
    {.to = 24, .down = down_round_mode, .adds = kFloat8E8M0}, {.to = 25, .adds = kInt2},
};

/// Cast and CastLike to the type that it is of
Value* same_of_cast(const Node& node) {
  const Value* x = node.input(0);
  const bool is_same = x && x->type.is_tensor() && x->type.dtype != DType::Undefined && node.output(0) &&
                       x->type.dtype == node.output(0)->type.dtype;
  return is_same ? node.input(0) : nullptr;
}

constexpr OnnxOp kCastOnnx[] = {
    {.sig = "Cast(T1 input, *, str round_mode=\"up\", int saturate=1, int to) -> T2 output",
     .since = 1,
     .traits = kElementwise | kTakesStrings | kMoves,
     .history = kCastHistory,
     .infer = infer_cast,
     .eval = eval_cast,
     .same = same_of_cast,
     .lower = lower_cast,
     .note = "no strings"},
    {.sig = "CastLike(T1 input, T2 target_type, *, str round_mode=\"up\", int saturate=1) -> T2 output",
     .since = 15,
     .traits = kTakesStrings,
     .history = kCastLikeHistory,
     .infer = infer_cast_like,
     .eval = eval_cast,
     .same = same_of_cast,
     .lower = lower_cast_like,
     .note = "no strings"},
    {.sig = "BitCast(T1 input, *, int to) -> T2 output",
     .since = 26,
     .infer = infer_bit_cast,
     .eval = eval_bit_cast,
     .lower = lower_bit_cast},
};

constexpr AtenOp kCastAten[] = {
    {.sig = "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
            "memory_format=None) -> Tensor(a)",
     .types = types_to,
     .elementwise = Elementwise::Kept,
     .view = ViewRule::Convert,
     .python = ".to",
     .raise = raise_to},
    {.sig = "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
     .types = types_view_dtype,
     .view = ViewRule::View,
     .python = ".view",
     .script = script_renamed<"view_copy">,
     .raise = raise_view_dtype},
    {.sig = "aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
     .types = types_frexp,
     .python = "torch.frexp",
     .raise = raise_frexp},
    {.sig = "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "torch.nan_to_num",
     .raise = raise_nan_to_num},
    {.sig = "aten::exp2(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.exp2",
     .raise = raise_exp2,
     .raise_complex = raise_complex_function},
};

}  // namespace

extern const OpFamily kCastOps;
constinit const OpFamily kCastOps{"cast", kCastOnnx, kCastAten};

}  // namespace tonnx
