// eliminate_identity.cpp - nodes that give what they are given go away.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/pass_table.h"

namespace tonnx {
namespace {

bool all_are(const std::optional<std::vector<int64_t>>& numbers, int64_t number) {
  return numbers && std::all_of(numbers->begin(), numbers->end(), [&](int64_t each) { return each == number; });
}

/// Neither given nor other than that number.
bool all_are_or_absent(const Node& node, std::string_view name, int64_t number) {
  return !has(node, name) || all_are(ints_of(node, name), number);
}

bool keeps_type(const Node& node) { return node.input(0) && have_same_type(node.input(0), node.output(0)); }

Value* first_input(const Node& node) { return node.input(0); }

// Each function gives the value that the node's first output is; null where it is not one that was there before.

/// 2. Cast and CastLike to the type that it is of
Value* same_of_cast(const Node& node) {
  const Value* x = node.input(0);
  const bool is_same = x && x->type.is_tensor() && x->type.dtype != DType::Undefined && node.output(0) &&
                       x->type.dtype == node.output(0)->type.dtype;
  return is_same ? node.input(0) : nullptr;
}

/// 3. Moves that keep the shape, and with it the order: Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile, Split
Value* same_of_shape(const Node& node) { return keeps_type(node) ? node.input(0) : nullptr; }

/// 4. Slice of everything, forwards
Value* same_of_slice(const Node& node) {
  if (!keeps_type(node)) return nullptr;
  if (!has(node, "steps")) return node.input(0);
  const auto steps = ints_of(node, "steps");
  const bool is_forward = steps && std::all_of(steps->begin(), steps->end(), [](int64_t step) { return step > 0; });
  return is_forward ? node.input(0) : nullptr;
}

/// 5. Pad by nothing
Value* same_of_pad(const Node& node) {
  return all_are(ints_of(node, node.find_attribute("paddings") ? "paddings" : "pads"), 0) ? node.input(0) : nullptr;
}

/// 6. Transpose into the order that is there
Value* same_of_transpose(const Node& node) {
  const Value* x = node.input(0);
  const auto perm = ints_of(node, "perm");
  if (!perm) return x && x->type.shape && x->type.shape->size() <= 1 ? node.input(0) : nullptr;
  for (size_t i = 0; i < perm->size(); ++i) {
    if ((*perm)[i] != static_cast<int64_t>(i)) return nullptr;
  }
  return node.input(0);
}

/// 7. Concat, Sum, Max, Min and Mean of one
Value* same_of_one(const Node& node) { return node.inputs().size() == 1 ? node.input(0) : nullptr; }

/// 8. Gather of all, in order
Value* same_of_gather(const Node& node) {
  if (!keeps_type(node)) return nullptr;
  const auto indices = ints_of(node, "indices");
  const auto& shape = *node.input(0)->type.shape;
  const auto axis = from_front(int_of(node, "axis").value_or(0), static_cast<int64_t>(shape.size()));
  if (!indices || !axis) return nullptr;
  const auto size = static_cast<int64_t>(indices->size());
  if (!shape[static_cast<size_t>(*axis)].is(size)) return nullptr;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t index = (*indices)[static_cast<size_t>(i)];
    if (index != i && index != i - size) return nullptr;
  }
  return node.input(0);
}

/// 9. Resize and Upsample by 1, where coordinates stay
Value* same_of_resize(const Node& node) {
  const auto mode = text_of(node, "coordinate_transformation_mode").value_or("half_pixel");
  if (mode == "tf_crop_and_resize" || mode == "tf_half_pixel_for_nn") return nullptr;
  if (text_of(node, "keep_aspect_ratio_policy").value_or("stretch") != "stretch" || !keeps_type(node)) return nullptr;
  const bool has_no_roi = node.version < 11 && node.input(1) && node.input(1)->constant;  // Resize-10
  const auto scales = has_no_roi ? floats_of(*node.input(1)->constant) : floats_of(node, "scales");
  if (scales && !scales->empty())
    return std::all_of(scales->begin(), scales->end(), [](double scale) { return scale == 1; }) ? node.input(0)
                                                                                                : nullptr;
  return has(node, "sizes") ? node.input(0) : nullptr;
}

/// 10. Dropout, but for training
Value* same_of_dropout(const Node& node) {
  const Value* training = node.input(2);
  return training == nullptr || uniform_value(training) == 0.0 ? node.input(0) : nullptr;
}

struct Range {
  double lowest, highest;
};

/// The numbers that a type has, infinite ones too.
std::optional<Range> range_of(DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (contains(dtype_set(DType::Float16, DType::BFloat16, DType::Float32, DType::Float64), dtype))
    return Range{-kInfinity, kInfinity};
  if (!is_integer(dtype)) return std::nullopt;
  const int bits = info(dtype).bits;
  if (is_unsigned(dtype)) return Range{0, std::ldexp(1.0, bits) - 1};
  return Range{-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

/// 11. Clip to all that the type has. Where a float has no bound, it is the largest finite number.
Value* same_of_clip(const Node& node) {
  const Value* x = node.input(0);
  if (x == nullptr || !x->type.is_tensor()) return nullptr;
  const auto range = range_of(x->type.dtype);
  if (!range) return nullptr;
  const bool is_whole = is_integer(x->type.dtype);
  const auto min = float_of(node, "min"), max = float_of(node, "max");
  const bool low = has(node, "min") ? min && *min <= range->lowest : is_whole;
  // a bound of 64 bits may have been rounded up on its way to a double
  const bool is_exact = info(x->type.dtype).bits < 64 || !is_whole;
  const bool high = has(node, "max") ? is_exact && max && *max >= range->highest : is_whole;
  return low && high ? node.input(0) : nullptr;
}

Value* beside(const Node& node, size_t constant, double neutral) {
  Value* x = node.input(1 - constant);
  const bool is_neutral = x && node.inputs().size() == 2 && have_same_type(x, node.output(0)) &&
                          uniform_value(node.input(constant)) == neutral;
  return is_neutral ? x : nullptr;
}

/// 12. Add 0, Or false, Xor false
Value* same_beside_0(const Node& node) {
  Value* x = beside(node, 1, 0);
  return x ? x : beside(node, 0, 0);
}
/// 13. Sub 0
Value* same_before_0(const Node& node) { return beside(node, 1, 0); }
/// 14. Mul 1, And true
Value* same_beside_1(const Node& node) {
  Value* x = beside(node, 1, 1);
  return x ? x : beside(node, 0, 1);
}
/// 15. Div by 1
Value* same_before_1(const Node& node) { return beside(node, 1, 1); }

/// 16. Pow 1 of floats; integers are powers of floats to a runtime, and those of 64 bits would be rounded
Value* same_of_pow(const Node& node) {
  return node.input(0) && is_float(node.input(0)->type.dtype) ? beside(node, 1, 1) : nullptr;
}

/// 17. Where with one answer for all, or twice the same value
Value* same_of_where(const Node& node) {
  const auto condition = uniform_value(node.input(0));
  if (!condition && node.input(1) != node.input(2)) return nullptr;
  Value* chosen = node.input(!condition || *condition != 0 ? 1 : 2);
  return chosen && have_same_type(chosen, node.output(0)) ? chosen : nullptr;
}

/// 18. DepthToSpace and SpaceToDepth with blocks of 1
Value* same_of_blocks(const Node& node) { return int_of(node, "blocksize") == 1 ? node.input(0) : nullptr; }

/// 19. AveragePool and MaxPool of one element each
Value* same_of_pool(const Node& node) {
  const bool is_one = all_are(ints_of(node, "kernel_shape"), 1) && all_are_or_absent(node, "strides", 1) &&
                      all_are_or_absent(node, "pads", 0);
  return is_one && keeps_type(node) ? node.input(0) : nullptr;
}

/// 20. Global pools and ReduceSum, -Mean, -Max, -Min, -Prod over axes of size 1 that are kept, or over none: the shape
///     stays only then
Value* same_of_reduction(const Node& node) { return keeps_type(node) ? node.input(0) : nullptr; }

/// 21. ScatterND and ScatterElements of no elements
Value* same_of_scatter(const Node& node) {
  const Value* updates = node.input(2);
  if (updates == nullptr || !updates->type.shape) return nullptr;
  const Shape& shape = *updates->type.shape;
  return std::any_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is(0); }) ? node.input(0) : nullptr;
}

const Symbol kRelu("Relu"), kAbs("Abs"), kClip("Clip"), kFloor("Floor"), kCeil("Ceil"), kRound("Round"), kSign("Sign"),
    kCast("Cast"), kSigmoid("Sigmoid"), kHardSigmoid("HardSigmoid"), kSoftmax("Softmax"), kExp("Exp"), kSqrt("Sqrt");

bool is_made_by(const Value* value, std::initializer_list<Symbol> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](Symbol op) { return producer_of(value, op) != nullptr; });
}

/// 22. Relu and Abs of what is never negative
Value* same_of_positive(const Node& node) {
  Value* x = node.input(0);
  if (is_made_by(x, {kRelu, kAbs, kSigmoid, kHardSigmoid, kSoftmax, kExp, kSqrt})) {
    // the lowest integer has no positive counterpart
    return is_float(x->type.dtype) || node.op == x->producer->op ? x : nullptr;
  }
  const Node* clip = producer_of(x, kClip);
  const auto min = clip ? float_of(*clip, "min") : std::nullopt;
  const auto max = clip ? float_of(*clip, "max") : std::nullopt;
  return min && *min >= 0 && (!has(*clip, "max") || (max && *max >= 0)) ? x : nullptr;
}

/// 23. Floor, Ceil and Round of whole numbers
Value* same_of_rounding(const Node& node) {
  Value* x = node.input(0);
  if (is_made_by(x, {kFloor, kCeil, kRound, kSign})) return x;
  const Node* cast = producer_of(x, kCast);
  const Value* before = cast ? cast->input(0) : nullptr;
  return before && before->type.is_tensor() && (is_integer(before->type.dtype) || before->type.dtype == DType::Bool)
             ? x
             : nullptr;
}

/// 24. Sign of a sign
Value* same_of_sign(const Node& node) { return producer_of(node.input(0), kSign) ? node.input(0) : nullptr; }

/// 25. Not, Neg and BitwiseNot twice
Value* same_of_twice(const Node& node) {
  const Node* before = producer_of(node.input(0), node.op);
  return before ? before->input(0) : nullptr;
}

using Rule = Value* (*)(const Node&);
struct Row {
  Symbol op;
  Rule rule;
};

Rule find_rule(Symbol op) {
  static const Row kRows[] = {
      {"Identity", first_input},  // 1. Identity
      {"Cast", same_of_cast},
      {"CastLike", same_of_cast},
      {"Reshape", same_of_shape},
      {"Flatten", same_of_shape},
      {"Squeeze", same_of_shape},
      {"Unsqueeze", same_of_shape},
      {"Expand", same_of_shape},
      {"Tile", same_of_shape},
      {"Split", same_of_shape},
      {"Slice", same_of_slice},
      {"Pad", same_of_pad},
      {"Transpose", same_of_transpose},
      {"Concat", same_of_one},
      {"Sum", same_of_one},
      {"Max", same_of_one},
      {"Min", same_of_one},
      {"Mean", same_of_one},
      {"Gather", same_of_gather},
      {"Resize", same_of_resize},
      {"Upsample", same_of_resize},
      {"Dropout", same_of_dropout},
      {"Clip", same_of_clip},
      {"Add", same_beside_0},
      {"Or", same_beside_0},
      {"Xor", same_beside_0},
      {"BitwiseOr", same_beside_0},
      {"BitwiseXor", same_beside_0},
      {"Sub", same_before_0},
      {"BitShift", same_before_0},
      {"Mul", same_beside_1},
      {"And", same_beside_1},
      {"Div", same_before_1},
      {"Pow", same_of_pow},
      {"Where", same_of_where},
      {"DepthToSpace", same_of_blocks},
      {"SpaceToDepth", same_of_blocks},
      {"AveragePool", same_of_pool},
      {"MaxPool", same_of_pool},
      {"GlobalAveragePool", same_of_reduction},
      {"GlobalMaxPool", same_of_reduction},
      {"ReduceSum", same_of_reduction},
      {"ReduceMean", same_of_reduction},
      {"ReduceMax", same_of_reduction},
      {"ReduceMin", same_of_reduction},
      {"ReduceProd", same_of_reduction},
      {"ScatterND", same_of_scatter},
      {"ScatterElements", same_of_scatter},
      {"Relu", same_of_positive},
      {"Abs", same_of_positive},
      {"Floor", same_of_rounding},
      {"Ceil", same_of_rounding},
      {"Round", same_of_rounding},
      {"Sign", same_of_sign},
      {"Not", same_of_twice},
      {"Neg", same_of_twice},
      {"BitwiseNot", same_of_twice},
  };
  const auto* at = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.op == op; });
  return at == std::end(kRows) ? nullptr : at->rule;
}

/// 26. Relu in front of Clip to what is not negative
bool skip_relu(Node& node, Rewriter& rewriter) {
  const Node* relu = is_onnx(node, kClip) ? producer_of(node.input(0), kRelu) : nullptr;
  const auto min = relu ? float_of(node, "min") : std::nullopt;
  if (!min || *min < 0 || only_user(node.input(0)) == nullptr || relu->input(0) == nullptr) return false;
  rewriter.set_input(node, 0, relu->input(0));
  return true;
}

bool is_used(const Value* value) { return value != nullptr && !value->uses.empty(); }

}  // namespace

bool eliminate_identity(Node& node, Rewriter& rewriter) {
  if (!node.domain.empty() || !is_used(node.output(0))) return false;
  const Rule rule = find_rule(node.op);
  if (rule == nullptr || has_references(node)) return false;
  if (std::any_of(node.outputs().begin() + 1, node.outputs().end(), is_used)) return false;
  Value* output = node.output(0);
  Value* same = rule(node);
  if (same == nullptr || same == output) return skip_relu(node, rewriter);
  const size_t uses = output->uses.size();
  return rewriter.replace(output, same) || output->uses.size() < uses;
}

}  // namespace tonnx
