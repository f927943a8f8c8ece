// compare.cpp - comparisons, logic on booleans, and the choice between two tensors.
#include "ops/frame/complex_parts.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/same_value.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

std::optional<Dim> flag(std::optional<bool> known) { return known ? std::optional(Dim(*known ? 1 : 0)) : std::nullopt; }
std::optional<Dim> negated(std::optional<bool> known) { return known ? flag(!*known) : std::nullopt; }

std::optional<Dim> equal(const Dim& a, const Dim& b) { return flag(is_equal(a, b)); }
std::optional<Dim> less(const Dim& a, const Dim& b) { return flag(is_less(a, b)); }
std::optional<Dim> greater(const Dim& a, const Dim& b) { return flag(is_less(b, a)); }
std::optional<Dim> less_or_equal(const Dim& a, const Dim& b) { return negated(is_less(b, a)); }
std::optional<Dim> greater_or_equal(const Dim& a, const Dim& b) { return negated(is_less(a, b)); }
std::optional<Dim> both(const Dim& a, const Dim& b) { return a * b; }
std::optional<Dim> either(const Dim& a, const Dim& b) { return max(a, b); }
std::optional<Dim> one_only(const Dim& a, const Dim& b) { return flag(!(a == b)); }

template <DimFn Fold>
void infer_flags(InferNode& n) {
  infer_compare(n);
  propagate(n, Fold);
}

/// `op` of two tensors or of one and a number; `reversed` says the same with the sides swapped.
template <FixedText Op, FixedText Reversed>
Values lower_compare(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("A");
  // equality has kernels for all types; the order of uint64 is not that of the int64 that it is computed in
  const bool is_equality = std::string_view(Op.value) == "eq";
  const auto input = [&](std::string_view name) {
    return is_equality ? n.input(name) : ordered(aten, n.input(name), dtype);
  };
  if (is_equality || dtype != DType::UInt64) {
    if (const auto number = find_literal(n, "B", "A"))
      return aten(std::string(Op.value) + ".Scalar", input("A"), *number);
    if (const auto number = find_literal(n, "A", "B")) {
      return aten(std::string(Reversed.value) + ".Scalar", input("B"), *number);
    }
  }
  return aten(std::string(Op.value) + ".Tensor", input("A"), input("B"));
}

template <FixedText Op>
Values lower_logic(const OnnxNode& n, AtenBuilder& aten) {
  return aten(Op.value, n.input("A"), n.input("B"));
}

void infer_where(InferNode& n) {
  const auto shape = broadcast(broadcast(n.type("X").shape, n.type("Y").shape), n.type("condition").shape);
  n.set(0, n.dtype("X"), shape);
  if (!shape || shape->size() > 1) return;
  const auto condition = find_ints(*n.value("condition")), x = find_ints(*n.value("X")), y = find_ints(*n.value("Y"));
  if (!condition || !x || !y) return;
  const size_t count = std::max({condition->size(), x->size(), y->size()});
  const auto at = [&](const Dims& all, size_t i) {
    return i < all.size() ? &all[i] : all.size() == 1 ? &all[0] : nullptr;
  };
  Dims result;
  for (size_t i = 0; i < count; ++i) {
    const Dim *c = at(*condition, i), *a = at(*x, i), *b = at(*y, i);
    if (!c || !a || !b || !c->is_constant()) return;
    result.push_back(c->is(0) ? *b : *a);
  }
  n.set_dims(std::move(result));
}

Values lower_where(const OnnxNode& n, AtenBuilder& aten) {
  Value* condition = n.input("condition");
  const DType dtype = n.dtype("X");
  const Shape* result = n.output_type().shape ? &*n.output_type().shape : nullptr;
  // A number takes the type of the tensor beside it, and adds no dimension to the result.
  const auto literal = [&](std::string_view input) -> std::optional<Arg> {
    if (!result || n.find_rank(input).value_or(INT64_MAX) > static_cast<int64_t>(result->size())) return std::nullopt;
    return find_literal(n, input, input);
  };
  const auto fits_without = [&](std::string_view input, std::string_view other) {
    const auto shape = broadcast(n.type("condition").shape, n.type(other).shape);
    return literal(input) && shape && *shape == *result;
  };
  const Shape* y_shape = n.find_shape("Y");
  if (fits_without("X", "Y")) {
    const auto x = *literal("X");
    const bool has_kernel = computed_in(dtype) == dtype;
    if (has_kernel && y_shape && *y_shape == *result && !n.find_constant("Y"))
      return aten("masked_fill.Scalar", n.input("Y"), condition, x);
    const auto y = literal("Y");
    const bool is_default = dtype == DType::Float32 || dtype == DType::Int64;  // what PyTorch makes of two numbers
    if (y && is_default && n.type("condition").shape == *result) return aten("where.Scalar", condition, x, *y);
    return aten("where.ScalarSelf", condition, x, n.input("Y"));
  }
  if (fits_without("Y", "X")) return aten("where.ScalarOther", condition, n.input("X"), *literal("Y"));
  return aten("where.self", condition, n.input("X"), n.input("Y"));
}

constexpr OpsetStep kLogicHistory[] = {{.to = 7, .up = up_legacy_broadcast, .down = down_legacy_broadcast}};
constexpr OpsetStep kOrderHistory[] = {
    {.to = 7, .up = up_legacy_broadcast, .down = down_legacy_broadcast},
    {.to = 9, .adds = kAllInts},
    {.to = 13, .adds = kBFloat16},
};
constexpr OpsetStep kEqualHistory[] = {
    {.to = 7, .up = up_legacy_broadcast, .down = down_legacy_broadcast},
    {.to = 11,
     .adds = kSmallInts | dtype_set(DType::UInt32, DType::UInt64, DType::Float16, DType::Float32, DType::Float64)},
    {.to = 13, .adds = kBFloat16},
    {.to = 19, .adds = dtype_set(DType::String)},
};
constexpr OpsetStep kTypes16[] = {{.to = 16, .adds = kBFloat16}};

/// Not the opposite of the other order, which NaN would turn round.
template <FixedText Order>
bool or_equal_in_older(const NodeView& n, OnnxEdit& edit) {
  Value *a = n.node().input(0), *b = n.node().input(1);
  return edit.replace_with({edit.before("Or", {edit.before(Order.value, {a, b}), edit.before("Equal", {a, b})})});
}

/// Where with one answer for all, or twice the same value
Value* same_of_where(const Node& node) {
  const auto condition = uniform_value(node.input(0));
  if (!condition && node.input(1) != node.input(2)) return nullptr;
  Value* chosen = node.input(!condition || *condition != 0 ? 1 : 2);
  return chosen && have_same_type(chosen, node.output(0)) ? chosen : nullptr;
}

constexpr OnnxOp kCompareOnnx[] = {
    {.sig = "And(T A, T B) -> T1 C",
     .since = 1,
     .traits = kElementwise,
     .history = kLogicHistory,
     .infer = infer_flags<both>,
     .eval = eval_and,
     .same = same_beside_1,
     .lower = lower_logic<"bitwise_and.Tensor">},
    {.sig = "Or(T A, T B) -> T1 C",
     .since = 1,
     .traits = kElementwise,
     .history = kLogicHistory,
     .infer = infer_flags<either>,
     .eval = eval_or,
     .same = same_beside_0,
     .lower = lower_logic<"bitwise_or.Tensor">},
    {.sig = "Xor(T A, T B) -> T1 C",
     .since = 1,
     .traits = kElementwise,
     .history = kLogicHistory,
     .infer = infer_flags<one_only>,
     .eval = eval_xor,
     .same = same_beside_0,
     .lower = lower_logic<"bitwise_xor.Tensor">},
    {.sig = "Equal(T A, T B) -> T1 C",
     .since = 1,
     .traits = kElementwise | kTakesStrings,
     .runtime = {kAllInts | kBool, 0, false},
     .history = kEqualHistory,
     .infer = infer_flags<equal>,
     .eval = eval_equal,
     .lower = lower_compare<"eq", "eq">},
    {.sig = "Less(T A, T B) -> T1 C",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kAllInts, 0, false},
     .history = kOrderHistory,
     .infer = infer_flags<less>,
     .eval = eval_less,
     .lower = lower_compare<"lt", "gt">},
    {.sig = "LessOrEqual(T A, T B) -> T1 C",
     .since = 12,
     .traits = kElementwise,
     .runtime = {kAllInts, 0, false},
     .history = kTypes16,
     .infer = infer_flags<less_or_equal>,
     .eval = eval_less_or_equal,
     .lower = lower_compare<"le", "ge">,
     .in_older = or_equal_in_older<"Less">},
    {.sig = "Greater(T A, T B) -> T1 C",
     .since = 1,
     .traits = kElementwise,
     .runtime = {kAllInts, 0, false},
     .history = kOrderHistory,
     .infer = infer_flags<greater>,
     .eval = eval_greater,
     .lower = lower_compare<"gt", "lt">},
    {.sig = "GreaterOrEqual(T A, T B) -> T1 C",
     .since = 12,
     .traits = kElementwise,
     .runtime = {kAllInts, 0, false},
     .history = kTypes16,
     .infer = infer_flags<greater_or_equal>,
     .eval = eval_greater_or_equal,
     .lower = lower_compare<"ge", "le">,
     .in_older = or_equal_in_older<"Greater">},
    {.sig = "Where(B condition, T X, T Y) -> T output",
     .since = 9,
     .traits = kElementwise | kTakesStrings,
     .runtime = {kWideInts | dtype_set(DType::Int8, DType::UInt8, DType::UInt32), 1},
     .history = kTypes16,
     .infer = infer_where,
     .eval = eval_where,
     .same = same_of_where,
     .lower = lower_where},
};

constexpr AtenOp kCompareAten[] = {
    {.sig = "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "==",
     .raise = raise_compare<"Equal">},
    {.sig = "aten::eq.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "==",
     .raise = raise_compare<"Equal">},
    {.sig = "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "!=",
     .raise = raise_ne},
    {.sig = "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "!=",
     .raise = raise_ne},
    {.sig = "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "<",
     .raise = raise_compare<"Less">},
    {.sig = "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "<",
     .raise = raise_compare<"Less">},
    {.sig = "aten::le.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "<=",
     .raise = raise_compare<"LessOrEqual">},
    {.sig = "aten::le.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "<=",
     .raise = raise_compare<"LessOrEqual">},
    {.sig = "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = ">",
     .raise = raise_compare<"Greater">},
    {.sig = "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = ">",
     .raise = raise_compare<"Greater">},
    {.sig = "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = ">=",
     .raise = raise_compare<"GreaterOrEqual">},
    {.sig = "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = ">=",
     .raise = raise_compare<"GreaterOrEqual">},
    {.sig = "aten::logical_and(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.logical_and",
     .raise = raise_logical<"And">,
     .raise_complex = raise_with_flags},
    {.sig = "aten::logical_or(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.logical_or",
     .raise = raise_logical<"Or">,
     .raise_complex = raise_with_flags},
    {.sig = "aten::logical_xor(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Flags,
     .python = "torch.logical_xor",
     .raise = raise_logical<"Xor">,
     .raise_complex = raise_with_flags},
    {.sig = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.where",
     .raise = raise_where,
     .raise_complex = raise_each_part},
    {.sig = "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.where",
     .raise = raise_where,
     .raise_complex = raise_each_part},
    {.sig = "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.where",
     .raise = raise_where,
     .raise_complex = raise_each_part},
    {.sig = "aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.where",
     .raise = raise_where,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kCompareOps;
constinit const OpFamily kCompareOps{"compare", kCompareOnnx, kCompareAten};

}  // namespace tonnx
