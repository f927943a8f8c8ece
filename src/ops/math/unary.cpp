// unary.cpp - arithmetic and rounding of one tensor: Abs, Exp, Floor and their kin.
#include <cmath>
#include <limits>

#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/eval.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/same_value.h"
#include "ops/math/bitwise.h"
#include "ops/math/complex.h"
#include "ops/math/rows.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

void infer_bool(InferNode& n) { n.set(0, DType::Bool, n.node().input(0)->type.shape); }

/// The same for each element, without a second input.
void propagate_each(InferNode& n, std::optional<Dim> (*each)(const Dim&)) {
  const auto elements = find_ints(*n.node().input(0));
  if (!elements || n.node().output(0) == nullptr) return;
  Dims result;
  for (const Dim& element : *elements) {
    const auto one = each(element);
    if (!one || !fits(*one, n.node().input(0)->type.dtype)) return;
    result.push_back(*one);
  }
  n.set_dims(std::move(result));
}

std::optional<Dim> negated_size(const Dim& a) {
  return a.is(std::numeric_limits<int64_t>::min()) ? std::nullopt : std::optional(Dim(0) - a);
}

std::optional<Dim> magnitude(const Dim& a) {
  if (a.is_non_negative()) return a;
  return a.is_constant() ? negated_size(a) : std::nullopt;
}

std::optional<Dim> inverted(const Dim& a) { return Dim(1) - a; }

template <NumberFn Number>
void infer_number(InferNode& n) {
  infer_same_as_first(n);
  fold_number(n, Number);
}

double square_root(double x, double) { return std::sqrt(x); }
double reciprocal(double x, double) { return 1.0 / x; }
double negative(double x, double) { return -x; }

void infer_neg(InferNode& n) {
  infer_number<negative>(n);
  propagate_each(n, negated_size);
}

void infer_abs(InferNode& n) {
  infer_same_as_first(n);
  propagate_each(n, magnitude);
}

void infer_not(InferNode& n) {
  infer_same_as_first(n);
  propagate_each(n, inverted);
}

void infer_identity(InferNode& n) {
  infer_same_as_first(n);
  const Value* input = n.node().input(0);
  Value* output = n.node().output(0);
  if (output == nullptr) return;
  output->constant = input->constant;
  if (input->known_ints) n.set_dims(*input->known_ints);
}

Values lower_identity(const OnnxNode& n, AtenBuilder&) { return n.input("input"); }

Values lower_abs(const OnnxNode& n, AtenBuilder& aten) {
  return is_unsigned(n.dtype("X")) ? n.input("X") : aten("abs", n.input("X"));
}

Values lower_sign(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("input");
  if (!is_unsigned(dtype)) return aten("sign", n.input("input"));
  return aten("to.dtype", aten("ne.Scalar", n.input("input"), 0), dtype);
}

Values lower_erf(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("input");
  Value* y = aten("erf", n.input("input"));
  return is_integer(dtype) ? aten("to.dtype", y, dtype) : y;  // opset 9 takes integers
}

Values lower_bitwise_not(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("X"), wide = computed_in(dtype);
  return cast(aten, aten("bitwise_not", cast(aten, n.input("X"), dtype, wide)), wide, dtype);
}

Values lower_is_inf(const OnnxNode& n, AtenBuilder& aten) {
  const bool positive = n.flag("detect_positive"), negative = n.flag("detect_negative");
  if (!positive && !negative) return aten("zeros_like", n.input("X"), Kw{"dtype", DType::Bool});
  Value* x = n.input("X");
  if (info(n.dtype("X")).bits == 8) x = aten("to.dtype", x, DType::Float32);
  return aten(positive && negative ? "isinf" : positive ? "isposinf" : "isneginf", x);
}

constexpr OpsetStep kSince1[] = {{.to = 6, .up = up_drop<"consumed_inputs">}, {.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kTypes13[] = {{.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kTypes22[] = {{.to = 22, .adds = kBFloat16}};
constexpr OpsetStep kAbsHistory[] = {{.to = 6, .up = up_drop<"consumed_inputs">, .adds = kAllInts},
                                     {.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kNegHistory[] = {{.to = 6, .up = up_drop<"consumed_inputs">, .adds = kSignedInts},
                                     {.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kIsInfHistory[] = {{.to = 20, .adds = kBFloat16 | kFloat8 | dtype_set(DType::Float16)}};
constexpr OpsetStep kIsNaNHistory[] = {{.to = 13, .adds = kBFloat16}, {.to = 20, .adds = kFloat8}};
constexpr OpsetStep kIdentityHistory[] = {
    {.to = 13, .adds = kBFloat16},
    {.to = 14, .down = down_without_sequences},
    {.to = 16, .down = down_without_optionals},
    {.to = 19, .adds = kFloat8},
    {.to = 21, .adds = kInt4},
    {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};

/// Floor, Ceil and Round of whole numbers
Value* same_of_rounding(const Node& node) {
  static const Symbol kCast("Cast");
  Value* x = node.input(0);
  if (producer_with(x, kWhole)) return x;
  const Node* cast = producer_of(x, kCast);
  const Value* before = cast ? cast->input(0) : nullptr;
  return before && before->type.is_tensor() && (is_integer(before->type.dtype) || before->type.dtype == DType::Bool)
             ? x
             : nullptr;
}

/// Sign of a sign
Value* same_of_sign(const Node& node) { return producer_of(node.input(0), node.op) ? node.input(0) : nullptr; }

constexpr OnnxOp kUnaryOnnx[] = {
    with(unary("Abs(T X) -> T Y", 1, kAbsHistory, lower_abs, infer_abs, eval_abs),
         {.traits = kNotNegative, .runtime = {kAllInts}, .same = same_of_positive}),
    unary("Acos(T input) -> T output", 7, kTypes22, lower_unary<"acos">, infer_same_as_first, eval_acos),
    unary("Acosh(T input) -> T output", 9, kTypes22, lower_unary<"acosh">, infer_same_as_first, eval_acosh),
    unary("Asin(T input) -> T output", 7, kTypes22, lower_unary<"asin">, infer_same_as_first, eval_asin),
    unary("Asinh(T input) -> T output", 9, kTypes22, lower_unary<"asinh">, infer_same_as_first, eval_asinh),
    unary("Atan(T input) -> T output", 7, kTypes22, lower_unary<"atan">, infer_same_as_first, eval_atan),
    unary("Atanh(T input) -> T output", 9, kTypes22, lower_unary<"atanh">, infer_same_as_first, eval_atanh),
    {.sig = "BitwiseNot(T X) -> T Y",
     .since = 18,
     .infer = infer_same_as_first,
     .eval = eval_bitwise_not,
     .same = same_of_twice,
     .lower = lower_bitwise_not,
     .in_older = bitwise_not_in_older},
    with(unary("Ceil(T X) -> T Y", 1, kSince1, lower_unary<"ceil">, infer_same_as_first, eval_ceil),
         {.traits = kWhole, .same = same_of_rounding}),
    unary("Cos(T input) -> T output", 7, kTypes22, lower_unary<"cos">, infer_same_as_first, eval_cos),
    unary("Cosh(T input) -> T output", 9, kTypes22, lower_unary<"cosh">, infer_same_as_first, eval_cosh),
    unary("Erf(T input) -> T output", 9, kTypes13, lower_erf, infer_same_as_first, eval_erf),
    with(unary("Exp(T input) -> T output", 1, kSince1, lower_unary<"exp">, infer_same_as_first, eval_exp),
         {.traits = kNotNegative}),
    with(unary("Floor(T X) -> T Y", 1, kSince1, lower_unary<"floor">, infer_same_as_first, eval_floor),
         {.traits = kWhole, .same = same_of_rounding}),
    with(
        unary("Identity(V input) -> V output", 1, kIdentityHistory, lower_identity, infer_identity, eval_same_elements),
        {.traits = kTakesStrings | kMoves, .same = same_as_first}),
    unary("IsInf(T1 X, *, int detect_negative=1, int detect_positive=1) -> T2 Y", 10, kIsInfHistory, lower_is_inf,
          infer_bool, eval_is_inf),
    unary("IsNaN(T1 X) -> T2 Y", 9, kIsNaNHistory, lower_unary<"isnan">, infer_bool, eval_is_nan),
    unary("Log(T input) -> T output", 1, kSince1, lower_unary<"log">, infer_same_as_first, eval_log),
    with(unary("Neg(T X) -> T Y", 1, kNegHistory, lower_unary<"neg">, infer_neg, eval_neg),
         {.runtime = {kSignedInts}, .same = same_of_twice}),
    with(unary("Not(T X) -> T Y", 1, {}, lower_unary<"bitwise_not">, infer_not, eval_not), {.same = same_of_twice}),
    unary("Reciprocal(T X) -> T Y", 1, kSince1, lower_unary<"reciprocal">, infer_number<reciprocal>, eval_reciprocal),
    with(unary("Round(T X) -> T Y", 11, kTypes22, lower_unary<"round">, infer_same_as_first, eval_round),
         {.traits = kWhole, .same = same_of_rounding}),
    with(unary("Sign(T input) -> T output", 9, kTypes13, lower_sign, infer_same_as_first, eval_sign),
         {.traits = kWhole, .runtime = {kAllInts}, .same = same_of_sign}),
    unary("Sin(T input) -> T output", 7, kTypes22, lower_unary<"sin">, infer_same_as_first, eval_sin),
    unary("Sinh(T input) -> T output", 9, kTypes22, lower_unary<"sinh">, infer_same_as_first, eval_sinh),
    with(unary("Sqrt(T X) -> T Y", 1, kSince1, lower_unary<"sqrt">, infer_number<square_root>, eval_sqrt),
         {.traits = kNotNegative}),
    unary("Tan(T input) -> T output", 7, kTypes22, lower_unary<"tan">, infer_same_as_first, eval_tan),
};

/// Of complex numbers: their lengths.
void types_abs(TypeNode& n) {
  types_elementwise(n);
  if (n.found().empty()) return;
  DType& dtype = n.found()[0].dtype;
  if (dtype == DType::Complex64) dtype = DType::Float32;
  if (dtype == DType::Complex128) dtype = DType::Float64;
}

constexpr AtenOp kUnaryAten[] = {
    {.sig = "aten::abs(Tensor self) -> Tensor",
     .types = types_abs,
     .elementwise = Elementwise::Promoted,
     .python = "torch.abs",
     .raise = raise_abs},
    {.sig = "aten::acos(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.acos",
     .raise = raise_math<"Acos">},
    {.sig = "aten::acosh(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.acosh",
     .raise = raise_math<"Acosh">},
    {.sig = "aten::asin(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.asin",
     .raise = raise_math<"Asin">},
    {.sig = "aten::asinh(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.asinh",
     .raise = raise_math<"Asinh">},
    {.sig = "aten::atan(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.atan",
     .raise = raise_math<"Atan">},
    {.sig = "aten::atanh(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.atanh",
     .raise = raise_math<"Atanh">},
    {.sig = "aten::bitwise_not(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "~",
     .raise = raise_bitwise_not},
    {.sig = "aten::ceil(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.ceil",
     .raise = raise_rounded<"Ceil">},
    {.sig = "aten::cos(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.cos",
     .raise = raise_unary<"Cos">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::cosh(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.cosh",
     .raise = raise_math<"Cosh">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::erf(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.erf",
     .raise = raise_math<"Erf">},
    {.sig = "aten::exp(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.exp",
     .raise = raise_unary<"Exp">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::floor(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.floor",
     .raise = raise_rounded<"Floor">},
    {.sig = "aten::isinf(Tensor self) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.isinf",
     .raise = raise_is_float_value,
     .raise_complex = raise_any_part},
    {.sig = "aten::isnan(Tensor self) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.isnan",
     .raise = raise_is_float_value,
     .raise_complex = raise_any_part},
    {.sig = "aten::isneginf(Tensor self) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.isneginf",
     .raise = raise_is_float_value},
    {.sig = "aten::isposinf(Tensor self) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.isposinf",
     .raise = raise_is_float_value},
    {.sig = "aten::log(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.log",
     .raise = raise_unary<"Log">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::logical_not(Tensor self) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.logical_not",
     .raise = raise_logical_not,
     .raise_complex = raise_with_flags},
    {.sig = "aten::neg(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "-",
     .raise = raise_neg},
    {.sig = "aten::reciprocal(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.reciprocal",
     .raise = raise_reciprocal},
    {.sig = "aten::round(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.round",
     .raise = raise_rounded<"Round">},
    {.sig = "aten::rsqrt(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.rsqrt",
     .raise = raise_rsqrt,
     .raise_complex = raise_complex_function},
    {.sig = "aten::sign(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.sign",
     .raise = raise_sign},
    {.sig = "aten::sin(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.sin",
     .raise = raise_unary<"Sin">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::sinh(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.sinh",
     .raise = raise_math<"Sinh">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::sqrt(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.sqrt",
     .raise = raise_unary<"Sqrt">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::tan(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.tan",
     .raise = raise_math<"Tan">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::trunc(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.trunc",
     .raise = raise_trunc},
};

}  // namespace

extern const OpFamily kUnaryOps;
constinit const OpFamily kUnaryOps{"unary", kUnaryOnnx, kUnaryAten};

}  // namespace tonnx
