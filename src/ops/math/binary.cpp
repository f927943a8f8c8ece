// binary.cpp - arithmetic of two tensors with broadcasting: Add, Mul, Pow and their kin.
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/eval.h"
#include "ops/frame/same_value.h"
#include "ops/math/bitwise.h"
#include "ops/math/complex.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

/// A size with a number so large that 64 bits may overflow, which tensors do silently and integers in Python do not.
bool may_overflow(const Dim& a, const Dim& b) {
  const auto is_large = [](const Dim& x) {
    return x.is_constant() && std::llabs(*x.constant() / 2) > int64_t{1} << 40;
  };
  return a.is_constant() != b.is_constant() && (is_large(a) || is_large(b));
}

std::optional<Dim> sum_of(const Dim& a, const Dim& b) {
  return may_overflow(a, b) ? std::nullopt : std::optional(a + b);
}
std::optional<Dim> difference_of(const Dim& a, const Dim& b) {
  return may_overflow(a, b) ? std::nullopt : std::optional(a - b);
}
std::optional<Dim> product_of(const Dim& a, const Dim& b) {
  return may_overflow(a, b) ? std::nullopt : std::optional(a * b);
}
double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double product(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }

std::optional<Dim> larger_of(const Dim& a, const Dim& b) { return max(a, b); }
std::optional<Dim> smaller_of(const Dim& a, const Dim& b) { return min(a, b); }

/// Sizes are divided as in Python where nothing is negative; numbers toward zero, as tensors are.
std::optional<Dim> quotient_of(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (a.is_non_negative() && b.is_non_negative()) return floor_div(a, b);
  if (!a.is_constant() || !b.is_constant() || b.is(-1)) return std::nullopt;
  return *a.constant() / *b.constant();
}

std::optional<Dim> floor_remainder_of(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (b.is_constant() || (a.is_non_negative() && b.is_non_negative())) return mod(a, b);
  return std::nullopt;
}

std::optional<Dim> trunc_remainder_of(const Dim& a, const Dim& b) {
  if (a.is_non_negative() && b.is_non_negative()) return floor_remainder_of(a, b);
  if (!a.is_constant() || !b.is_constant() || b.is(0) || b.is(-1)) return std::nullopt;
  return *a.constant() % *b.constant();
}

void infer_mod(InferNode& n) {
  infer_broadcast(n);
  propagate(n, n.flag("fmod") ? trunc_remainder_of : floor_remainder_of);
}

/// The names of the two inputs, which differ from operator to operator.
struct Sides {
  explicit Sides(const OnnxNode& n)
      : left(n.entry().signature.inputs[0].name), right(n.entry().signature.inputs[1].name) {}
  std::string_view left, right;
};

/// Whether the right side is a number that leaves the left one as it is. A sum with 0.0 does not: -0.0 turns into 0.0.
bool changes_nothing(const OnnxNode& n, std::string_view op) {
  const auto [left, right] = Sides(n);
  if (!find_literal(n, right, left)) return false;
  const auto ints = n.find_const_ints(right);
  const auto number = ints ? std::optional(static_cast<double>(ints->at(0))) : n.find_scalar(right);
  if (op == "mul" || op == "div") return number == 1.0;
  return number == 0.0 && (op == "sub" || (op == "add" && is_integer(n.dtype(left))));
}

/// `op` with a number on the right, `reversed` with one on the left (null: the tensor is needed), and with two tensors.
Value* apply(const OnnxNode& n, AtenBuilder& aten, const std::string& op, const char* reversed) {
  const auto [left, right] = Sides(n);
  const auto input = [&](std::string_view name) { return wide_input(n, aten, name); };
  const DType dtype = n.dtype(left);
  const DType wide = computed_in(dtype);
  if (changes_nothing(n, op)) return n.input(left);
  if (const auto number = find_literal(n, right, left)) {
    return cast(aten, aten(op + ".Scalar", input(left), *number), wide, dtype);
  }
  if (reversed != nullptr) {
    if (const auto number = find_literal(n, left, right)) {
      return cast(aten, aten(std::string(reversed) + ".Scalar", input(right), *number), wide, dtype);
    }
  }
  return cast(aten, aten(op + ".Tensor", input(left), input(right)), wide, dtype);
}

Values lower_add(const OnnxNode& n, AtenBuilder& aten) { return apply(n, aten, "add", "add"); }
Values lower_sub(const OnnxNode& n, AtenBuilder& aten) { return apply(n, aten, "sub", "rsub"); }
Values lower_mul(const OnnxNode& n, AtenBuilder& aten) { return apply(n, aten, "mul", "mul"); }
Values lower_bitwise_and(const OnnxNode& n, AtenBuilder& aten) { return apply(n, aten, "bitwise_and", "bitwise_and"); }
Values lower_bitwise_or(const OnnxNode& n, AtenBuilder& aten) { return apply(n, aten, "bitwise_or", "bitwise_or"); }
Values lower_bitwise_xor(const OnnxNode& n, AtenBuilder& aten) { return apply(n, aten, "bitwise_xor", "bitwise_xor"); }

/// a / b of uint64, whose bits are in int64. Half of a is no longer negative; what that leaves out is at most one more.
Value* unsigned_quotient(AtenBuilder& aten, Value* a, Value* b) {
  const auto at_least = [&](Value* x, Value* y) {
    const auto turned = [&](Value* each) { return aten("bitwise_xor.Scalar", each, INT64_MIN); };
    return aten("ge.Tensor", turned(x), turned(y));
  };
  Value* half = aten("bitwise_and.Scalar", aten("bitwise_right_shift.Tensor_Scalar", a, 1), INT64_MAX);
  Value* nearly = aten("mul.Scalar", aten("div.Tensor_mode", half, b, Kw{"rounding_mode", "trunc"}), 2);
  Value* rest = aten("sub.Tensor", a, aten("mul.Tensor", nearly, b));
  Value* quotient = aten("add.Tensor", nearly, at_least(rest, b));
  return aten("where.self", aten("lt.Scalar", b, 0), at_least(a, b), quotient);
}

Values lower_div(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("A");
  if (dtype == DType::UInt64 && !changes_nothing(n, "div")) {
    Value* quotient = unsigned_quotient(aten, wide_input(n, aten, "A"), wide_input(n, aten, "B"));
    return aten("to.dtype", quotient, dtype);
  }
  if (is_integer(dtype)) {
    const DType wide = computed_in(dtype);
    const Kw toward_zero{"rounding_mode", "trunc"};
    const auto number = find_literal(n, "B", "A");
    Value* a = wide_input(n, aten, "A");
    Value* quotient = number ? aten("div.Scalar_mode", a, *number, toward_zero)
                             : aten("div.Tensor_mode", a, wide_input(n, aten, "B"), toward_zero);
    return cast(aten, quotient, wide, dtype);
  }
  const TensorPtr dividend = n.find_constant("A");
  const bool is_one = dividend && dividend->count() == 1 && is_float(dtype) && element_as_double(*dividend, 0) == 1.0;
  if (is_one && find_literal(n, "A", "B")) return aten("reciprocal", n.input("B"));
  if (const auto number = find_literal(n, "A", "B"))
    return aten("mul.Scalar", aten("reciprocal", n.input("B")), *number);
  return apply(n, aten, "div", nullptr);
}

Values lower_mod(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t fmod = n.i("fmod");
  require(fmod == 0 || fmod == 1, "fmod is {}, and must be 0 or 1", fmod);
  if (n.dtype("A") == DType::UInt64) {
    Value *a = wide_input(n, aten, "A"), *b = wide_input(n, aten, "B");
    return aten("to.dtype", aten("sub.Tensor", a, aten("mul.Tensor", unsigned_quotient(aten, a, b), b)), DType::UInt64);
  }
  return apply(n, aten, fmod == 1 ? "fmod" : "remainder", nullptr);
}

/// The exponent where it is one finite number.
std::optional<double> find_exponent(const OnnxNode& n) {
  const TensorPtr constant = n.find_constant("Y");
  if (!constant || !find_literal(n, "Y", "X")) return std::nullopt;
  const double number = element_as_double(*constant, 0);
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

/// The result is of the type of X, whatever that of Y.
Values lower_pow(const OnnxNode& n, AtenBuilder& aten) {
  const DType base = n.dtype("X"), exponent = n.dtype("Y");
  if (const auto number = find_exponent(n)) {
    const bool is_whole = std::fabs(*number) <= 64 && *number == std::trunc(*number);
    if (is_whole && (is_float(base) || *number >= 0)) {
      return aten("pow.Tensor_Scalar", n.input("X"), static_cast<int64_t>(*number));
    }
    const bool is_exact = base != DType::Float64 || has_exact_text(*number);
    if (is_float(base) && is_exact) return aten("pow.Tensor_Scalar", n.input("X"), *number);
  }
  if (is_float(base) && exponent == base) {
    if (const auto number = find_literal(n, "X", "Y")) return aten("pow.Scalar", *number, n.input("Y"));
  }
  const bool through_float = is_integer(base) && is_float(exponent);
  Value* x = through_float ? aten("to.dtype", n.input("X"), DType::Float64) : n.input("X");
  Value* z = aten("pow.Tensor_Tensor", x, wide_input(n, aten, "Y"));
  const bool stays = base == exponent || (is_float(base) && is_integer(exponent));
  return stays ? z : aten("to.dtype", z, base);
}

/// x >> y without the sign: int64 has it where uint64 has a bit like the others.
Value* unsigned_right_shift(AtenBuilder& aten, Value* x, Value* y) {
  Value* halved = aten("bitwise_and.Scalar", aten("bitwise_right_shift.Tensor_Scalar", x, 1), INT64_MAX);
  Value* shifted = aten("bitwise_right_shift.Tensor", halved, aten("sub.Scalar", y, 1));
  return aten("where.self", aten("eq.Scalar", y, 0), x, shifted);
}

Values lower_bit_shift(const OnnxNode& n, AtenBuilder& aten) {
  const std::string direction = n.s("direction");
  require(direction == "LEFT" || direction == "RIGHT", "the direction is '{}', and must be LEFT or RIGHT", direction);
  const DType dtype = n.dtype("X"), wide = computed_in(dtype);
  const std::string op = direction == "LEFT" ? "bitwise_left_shift" : "bitwise_right_shift";
  Value* x = wide_input(n, aten, "X");
  if (dtype == DType::UInt64 && direction == "RIGHT") {
    return cast(aten, unsigned_right_shift(aten, x, wide_input(n, aten, "Y")), wide, dtype);
  }
  const auto number = find_literal(n, "Y", "X");
  Value* z = number ? aten(op + ".Tensor_Scalar", x, *number) : aten(op + ".Tensor", x, wide_input(n, aten, "Y"));
  return cast(aten, z, wide, dtype);
}

/// The inputs of Max, Sum and their kin taken together from left to right, numbers last.
template <class Tensors, class Number>
Value* fold_inputs(const OnnxNode& n, std::string_view variadic, Tensors&& with_tensor, Number&& with_number) {
  std::vector<const Value*> values = n.values(variadic);
  std::vector<Value*> tensors = n.inputs(variadic);
  require(!values.empty(), "there is no input");
  for (const Value* value : values) require(value != nullptr, "an input is missing");
  if (values.size() > 1 && find_literal(n, values[0], values[1])) {
    std::swap(values[0], values[1]);
    std::swap(tensors[0], tensors[1]);
  }
  Value* result = tensors[0];
  for (size_t i = 1; i < values.size(); ++i) {
    const auto number = find_literal(n, values[i], values[0]);
    result = number ? with_number(result, *number) : with_tensor(result, tensors[i]);
  }
  return result;
}

template <bool Largest>
Values lower_extreme(const OnnxNode& n, AtenBuilder& aten) {
  const Value* first = n.node().input(0);
  require(first != nullptr, "there is no input");
  const DType dtype = first->type.dtype, wide = computed_in(dtype);
  const auto with_tensor = [&](Value* a, Value* b) {
    if (dtype == DType::UInt64) {
      Value* a_is_larger = aten("gt.Tensor", ordered(aten, a, dtype), ordered(aten, b, dtype));
      return Largest ? aten("where.self", a_is_larger, a, b) : aten("where.self", a_is_larger, b, a);
    }
    return cast(aten, aten(Largest ? "maximum" : "minimum", cast(aten, a, dtype, wide), cast(aten, b, dtype, wide)),
                wide, dtype);
  };
  const auto with_number = [&](Value* a, const Arg& number) {
    Value* x = cast(aten, a, dtype, wide);
    Value* y = Largest ? aten("clamp", x, number) : aten("clamp", x, nullptr, number);
    if (dtype == DType::UInt64) {  // what int64 takes for negative is larger than the number
      Value* is_larger = aten("lt.Scalar", x, 0);
      y = Largest ? aten("where.self", is_larger, x, y) : aten("where.ScalarSelf", is_larger, number, y);
    }
    return cast(aten, y, wide, dtype);
  };
  return fold_inputs(n, "data_0", with_tensor, with_number);
}

Value* sum_inputs(const OnnxNode& n, AtenBuilder& aten) {
  return fold_inputs(
      n, "data_0", [&](Value* a, Value* b) { return aten("add.Tensor", a, b); },
      [&](Value* a, const Arg& number) { return aten("add.Scalar", a, number); });
}

Values lower_sum(const OnnxNode& n, AtenBuilder& aten) { return sum_inputs(n, aten); }

Values lower_mean(const OnnxNode& n, AtenBuilder& aten) {
  Value* sum = sum_inputs(n, aten);
  const auto count = static_cast<int64_t>(n.node().inputs().size());
  return count == 1 ? sum : aten("div.Scalar", sum, count);
}

/// Opset 7 of Max, Sum and their kin does not broadcast.
void down_same_shapes(OnnxEdit& edit) {
  const Value* first = edit.node().input(0);
  for (const Value* input : edit.node().inputs()) {
    const bool same = input && first && input->type.shape && input->type.shape == first->type.shape;
    if (input != first && !same) edit.cannot("opset 7 takes inputs of one shape only");
  }
}

/// Opset 11 has one type for both sides, and no integers.
void down_pow_12(OnnxEdit& edit) {
  const Value* x = edit.node().input(0);
  Value* y = edit.node().input(1);
  if (x == nullptr || y == nullptr) return;
  if (is_integer(x->type.dtype)) edit.cannot("opset 11 does not take {}", name_of(x->type.dtype));
  if (x->type.dtype == y->type.dtype || x->type.dtype == DType::Undefined) return;
  edit.node().set_input(1,
                        edit.before("Cast", {y}, {{"to", static_cast<int64_t>(x->type.dtype), AttrType::Int, {}, {}}}));
}

void down_pow_15(OnnxEdit& edit) {
  Value* y = edit.node().input(1);
  if (y == nullptr || y->type.dtype != DType::BFloat16) return;
  edit.node().set_input(
      1, edit.before("Cast", {y}, {{"to", static_cast<int64_t>(DType::Float32), AttrType::Int, {}, {}}}));
}

void down_mod_28(OnnxEdit& edit) {
  const Value* a = edit.node().input(0);
  if (edit.i("fmod", 0) == 0 && a && is_float(a->type.dtype)) edit.cannot("opset 27 takes floats with fmod=1 only");
}

constexpr OpsetStep kArithmeticHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">, .adds = kAllInts & ~kSmallInts},
    {.to = 7, .up = up_legacy_broadcast, .down = down_legacy_broadcast},
    {.to = 13, .adds = kBFloat16},
    {.to = 14, .adds = kSmallInts},
};
constexpr OpsetStep kPowHistory[] = {
    {.to = 7, .up = up_legacy_broadcast, .down = down_legacy_broadcast},
    {.to = 12, .down = down_pow_12},
    {.to = 13, .adds = kBFloat16},
    {.to = 15, .down = down_pow_15},
};
constexpr OpsetStep kModHistory[] = {{.to = 13, .adds = kBFloat16}, {.to = 28, .down = down_mod_28}};
constexpr OpsetStep kExtremeHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">},
    {.to = 8, .down = down_same_shapes},
    {.to = 12, .adds = kAllInts},
    {.to = 13, .adds = kBFloat16},
};
constexpr OpsetStep kSumHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">},
    {.to = 8, .down = down_same_shapes},
    {.to = 13, .adds = kBFloat16},
};
constexpr OpsetStep kBitShiftHistory[] = {{.to = 28, .adds = kSignedInts}};

/// Pow 1 of floats; integers are powers of floats to a runtime, and those of 64 bits would be rounded
Value* same_of_pow(const Node& node) {
  return node.input(0) && is_float(node.input(0)->type.dtype) ? same_before_1(node) : nullptr;
}

constexpr OnnxOp kBinaryOnnx[] = {
    {.sig = "Add(T A, T B) -> T C",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kAllInts},
     .history = kArithmeticHistory,
     .infer = infer_arithmetic<sum_of, sum>,
     .eval = eval_add,
     .same = same_beside_0,
     .lower = lower_add},
    {.sig = "Sub(T A, T B) -> T C",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kAllInts},
     .history = kArithmeticHistory,
     .infer = infer_arithmetic<difference_of, difference>,
     .eval = eval_sub,
     .same = same_before_0,
     .lower = lower_sub},
    {.sig = "Mul(T A, T B) -> T C",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kAllInts},
     .history = kArithmeticHistory,
     .infer = infer_arithmetic<product_of, product>,
     .eval = eval_mul,
     .same = same_beside_1,
     .lower = lower_mul},
    {.sig = "Div(T A, T B) -> T C",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kAllInts},
     .history = kArithmeticHistory,
     .infer = infer_arithmetic<quotient_of, quotient>,
     .eval = eval_div,
     .same = same_before_1,
     .lower = lower_div},
    {.sig = "Pow(T X, T1 Y) -> T Z",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kWideInts},
     .history = kPowHistory,
     .infer = infer_broadcast,
     .eval = eval_pow,
     .same = same_of_pow,
     .lower = lower_pow},
    {.sig = "Mod(T A, T B, *, int fmod=0) -> T C",
     .since = 10,
     .traits = kElementwise,
     .runtime = {kAllInts},
     .history = kModHistory,
     .infer = infer_mod,
     .eval = eval_mod,
     .lower = lower_mod},
    {.sig = "Max(T... data_0) -> T max",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kClippedInts},
     .history = kExtremeHistory,
     .infer = infer_arithmetic<larger_of>,
     .eval = eval_max,
     .same = same_of_one,
     .lower = lower_extreme<true>},
    {.sig = "Min(T... data_0) -> T min",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kClippedInts},
     .history = kExtremeHistory,
     .infer = infer_arithmetic<smaller_of>,
     .eval = eval_min,
     .same = same_of_one,
     .lower = lower_extreme<false>},
    {.sig = "Sum(T... data_0) -> T sum",
     .since = 1,
     .traits = kElementwise,
     .history = kSumHistory,
     .infer = infer_broadcast,
     .eval = eval_sum,
     .same = same_of_one,
     .lower = lower_sum},
    {.sig = "Mean(T... data_0) -> T mean",
     .since = 1,
     .traits = kElementwise,
     .history = kSumHistory,
     .infer = infer_broadcast,
     .eval = eval_mean,
     .same = same_of_one,
     .lower = lower_mean},
    {.sig = "BitShift(T X, T Y, *, str direction) -> T Z",
     .since = 11,
     .history = kBitShiftHistory,
     .infer = infer_broadcast,
     .eval = eval_bit_shift,
     .same = same_before_0,
     .lower = lower_bit_shift},
    {.sig = "BitwiseAnd(T A, T B) -> T C",
     .since = 18,
     .infer = infer_broadcast,
     .eval = eval_bitwise_and,
     .lower = lower_bitwise_and,
     .in_older = bitwise_in_older<"And">},
    {.sig = "BitwiseOr(T A, T B) -> T C",
     .since = 18,
     .infer = infer_broadcast,
     .eval = eval_bitwise_or,
     .same = same_beside_0,
     .lower = lower_bitwise_or,
     .in_older = bitwise_in_older<"Or">},
    {.sig = "BitwiseXor(T A, T B) -> T C",
     .since = 18,
     .infer = infer_broadcast,
     .eval = eval_bitwise_xor,
     .same = same_beside_0,
     .lower = lower_bitwise_xor,
     .in_older = bitwise_in_older<"Xor">},
};

constexpr AtenOp kBinaryAten[] = {
    {.sig = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "+",
     .raise = raise_add},
    {.sig = "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "+",
     .raise = raise_add},
    {.sig = "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "-",
     .raise = raise_sub},
    {.sig = "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "-",
     .raise = raise_sub},
    {.sig = "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "r-",
     .raise = raise_rsub},
    {.sig = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "*",
     .raise = raise_mul},
    {.sig = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "*",
     .raise = raise_mul},
    {.sig = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Quotient,
     .python = "/",
     .raise = raise_div},
    {.sig = "aten::div.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Quotient,
     .python = "/",
     .raise = raise_div},
    {.sig = "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
     .elementwise = Elementwise::Quotient,
     .python = "torch.div",
     .raise = raise_div},
    {.sig = "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
     .elementwise = Elementwise::Quotient,
     .python = "torch.div",
     .raise = raise_div},
    {.sig = "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.pow",
     .raise = raise_pow,
     .raise_complex = raise_complex_power},
    {.sig = "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = ".pow",
     .raise = raise_pow,
     .raise_complex = raise_complex_power},
    {.sig = "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.pow",
     .raise = raise_pow,
     .raise_complex = raise_complex_power},
    {.sig = "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.remainder",
     .raise = raise_remainder},
    {.sig = "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.remainder",
     .raise = raise_remainder},
    {.sig = "aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.fmod",
     .raise = raise_fmod},
    {.sig = "aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.fmod",
     .raise = raise_fmod},
    {.sig = "aten::maximum(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.maximum",
     .raise = raise_maximum},
    {.sig = "aten::minimum(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.minimum",
     .raise = raise_minimum},
    {.sig = "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "&",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "&",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "|",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "|",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "^",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "^",
     .raise = raise_bitwise},
    {.sig = "aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "<<",
     .raise = raise_shift},
    {.sig = "aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "<<",
     .raise = raise_shift},
    {.sig = "aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = ">>",
     .raise = raise_shift},
    {.sig = "aten::bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = ">>",
     .raise = raise_shift},
};

}  // namespace

extern const OpFamily kBinaryOps;
constinit const OpFamily kBinaryOps{"binary", kBinaryOnnx, kBinaryAten};

}  // namespace tonnx
