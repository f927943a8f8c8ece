// quantized.cpp - ONNX: divisions, roundings and products that are QuantizeLinear, DequantizeLinear or
// DynamicQuantizeLinear become it.
#include "passes/recognise/onnx/quantized.h"

#include <algorithm>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

bool is_byte(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

bool is_in(double number, DType dtype) {
  const double low = dtype == DType::Int8 ? -128 : 0;
  return std::floor(number) == number && number >= low && number <= low + 255;
}

bool is_one_number(const Value* value) {
  if (value == nullptr || !value->type.is_tensor() || !value->type.shape) return false;
  return std::all_of(value->type.shape->begin(), value->type.shape->end(), [](const Dim& dim) { return dim.is(1); });
}

/// The numbers of 8 bits that a value has as floats of at least 32.
Value* bytes_behind(const Value* value) {
  const Node* cast = producer_of(value, kCast);
  Value* x = cast ? cast->input(0) : nullptr;
  const bool is_found =
      x && is_byte(x->type.dtype) && is_float(value->type.dtype) && info(value->type.dtype).bits >= 32;
  return is_found ? x : nullptr;
}

/// The type whose range these bounds are.
DType type_of_range(const Node& clip) {
  const auto low = float_of(clip, "min"), high = float_of(clip, "max");
  if (low == -128.0 && high == 127.0) return DType::Int8;
  return low == 0.0 && high == 255.0 ? DType::UInt8 : DType::Undefined;
}

/// Clip(Round(x / scale), 0, 255): what of a Clip, and of which Div.
struct RoundedQuotient {
  Value *of, *by;
};
std::optional<RoundedQuotient> as_rounded_quotient(const Value* value) {
  const Value* quotient = operand_of(value, kRound);
  const Node* div = made_by(quotient, kDiv);
  return div ? std::optional(RoundedQuotient{div->input(0), div->input(1)}) : std::nullopt;
}

/// What is bounded by zero on one side alone: Max(x, 0) or Clip(x, 0, _); Min(x, 0) or Clip(x, _, 0).
const Value* bounded_by_zero(const Value* value, Symbol extreme, std::string_view bound, std::string_view open) {
  if (const Node* clip = producer_of(value, kClip))
    return float_of(*clip, bound) == 0.0 && !has(*clip, open) ? clip->input(0) : nullptr;
  const Node* node = producer_of(value, extreme);
  if (node == nullptr || node->inputs().size() != 2) return nullptr;
  for (const size_t i : {0, 1}) {
    if (uniform_value(node->input(i)) == 0.0) return node->input(1 - i);
  }
  return nullptr;
}

/// The extreme of a whole tensor, with zero in reach.
const Node* whole_extreme(const Value* value, Symbol reduce) {
  const bool is_high = reduce == kReduceMax;
  const Value* x = is_high ? bounded_by_zero(value, kMax, "min", "max") : bounded_by_zero(value, kMin, "max", "min");
  const Node* node = x ? producer_of(x, reduce) : nullptr;
  const bool is_whole = node && !has(*node, "axes") && int_of(*node, "keepdims").value_or(1) == 0 &&
                        int_of(*node, "noop_with_empty_axes").value_or(0) == 0;
  return is_whole ? node : nullptr;
}

/// The step of a tensor's range, which is 1 where there is none: the nodes of ReduceMin and what it gives.
struct Range {
  Node* lowest;
  const Value* low;
  Value* x;
};
std::optional<Range> range_behind(const Value* scale) {
  const Node* where = producer_of(scale, kWhere);
  if (where == nullptr || uniform_value(where->input(1)) != 1.0) return std::nullopt;
  const Value* step = where->input(2);
  const Node *equal = producer_of(where->input(0), kEqual), *div = producer_of(step, kDiv);
  if (equal == nullptr || div == nullptr || uniform_value(div->input(1)) != 255.0) return std::nullopt;
  const bool asks_zero = (equal->input(0) == step && uniform_value(equal->input(1)) == 0.0) ||
                         (equal->input(1) == step && uniform_value(equal->input(0)) == 0.0);
  const Node* span = producer_of(div->input(0), kSub);
  if (!asks_zero || span == nullptr) return std::nullopt;
  const Node *high = whole_extreme(span->input(0), kReduceMax), *low = whole_extreme(span->input(1), kReduceMin);
  if (high == nullptr || low == nullptr || high->input(0) != low->input(0)) return std::nullopt;
  return Range{const_cast<Node*>(low), span->input(1), low->input(0)};
}

/// 1. x / scale, rounded, and shifted by a zero point, where both come of the range of x: DynamicQuantizeLinear
bool find_dynamic(Node& node, Rewriter& rewriter) {
  if (type_of_range(node) != DType::UInt8 || node.output(0)->type.dtype != DType::Float32) return false;
  const Node* sum = made_by(node.input(0), kAdd);
  for (const size_t i : {0, 1}) {
    const auto quotient = sum ? as_rounded_quotient(sum->input(i)) : std::nullopt;
    const auto range = quotient ? range_behind(quotient->by) : std::nullopt;
    if (!range || range->x != quotient->of || range->x->type.dtype != DType::Float32) continue;
    // the zero point: Clip(Round(-low / scale), 0, 255), as an integer on its way or not
    Value *floats = sum->input(1 - i), *bytes = bytes_behind(floats);
    const Node* cast = bytes ? producer_of(bytes, kCast) : nullptr;
    const Value* clipped = cast ? cast->input(0) : bytes ? nullptr : floats;
    const Node* clip = clipped ? producer_of(clipped, kClip) : nullptr;
    if (clip == nullptr || type_of_range(*clip) != DType::UInt8) continue;
    const auto zero = as_rounded_quotient(clip->input(0));
    const Node* neg = zero && zero->by == quotient->by ? producer_of(zero->of, kNeg) : nullptr;
    if (neg == nullptr || neg->input(0) != range->low) continue;
    Value* y = rewriter.add(*range->lowest, {.op = "DynamicQuantizeLinear", .inputs = {range->x}, .outputs = 3},
                            node.output(0)->name);
    if (y == nullptr) return false;
    Node& made = *y->producer;
    if (bytes != nullptr) {
      rewriter.replace(bytes, made.output(2));
    } else {
      become_integers(floats, made.output(2), rewriter, *floats->producer);
    }
    rewriter.replace(quotient->by, made.output(1));
    become_integers(node.output(0), y, rewriter, node);
    return true;
  }
  return false;
}

/// 2. Clip(Round(x / scale) + zero point, lowest, highest): QuantizeLinear
bool find_quantize(Node& node, Rewriter& rewriter) {
  const DType to = type_of_range(node);
  if (to == DType::Undefined || node.output(0)->type.dtype != DType::Float32) return false;
  const Value* rounded = node.input(0);
  const auto shifted = as_shifted(rounded);
  if (shifted && !is_in(shifted->number, to)) return false;
  Value* x = operand_of(shifted ? shifted->of : rounded, kRound);
  const auto rank = x ? x->type.rank() : std::nullopt;
  if (!rank || x->constant) return false;
  Spread scale{{1}, {}};
  if (const Node* div = made_by(x, kDiv)) {
    const auto found = have_same_type(div->input(0), x) ? as_spread(div->input(1), *rank) : std::nullopt;
    if (found) {
      scale = *found;
      x = div->input(0);
    }
  } else if (!shifted && made_by(x, kMul) == nullptr) {
    return false;  // nothing is gained
  }
  Graph& graph = *node.graph;
  NewNode made{.op = "QuantizeLinear"};
  if (scale.axis) made.attributes.push_back({"axis", *scale.axis, AttrType::None, {}, {}});
  Spread zero{std::vector<double>(scale.numbers.size(), shifted ? shifted->number : 0), scale.axis};
  std::vector<int64_t> dims;
  if (scale.axis) dims.push_back(static_cast<int64_t>(zero.numbers.size()));
  made.inputs = {x, spread_constant(rewriter, graph, scale, "scale"),
                 rewriter.constant(graph, make_floats(to, dims, zero.numbers), "zero_point")};
  Value* y = rewriter.add(node, std::move(made), node.output(0)->name);
  return y != nullptr && become_integers(node.output(0), y, rewriter, node);
}

/// 3. (x - zero point) * scale of numbers of 8 bits: DequantizeLinear
bool find_dequantize(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kMul) || node.output(0)->type.dtype != DType::Float32) return false;
  for (const size_t i : {0, 1}) {
    const auto centered = as_centered(node.input(i));
    if (!centered || !have_same_type(node.input(i), node.output(0)) || centered->x->constant) continue;
    Value* factor = node.input(1 - i);
    Graph& graph = *node.graph;
    NewNode made{.op = "DequantizeLinear"};
    Spread scale{{1}, {}};
    if (factor->constant) {
      const auto found = as_spread(factor, *node.output(0)->type.rank());
      if (!found || (found->axis && (centered->zero_point || centered->number != 0))) continue;
      scale = *found;
      if (scale.axis) made.attributes.push_back({"axis", *scale.axis, AttrType::None, {}, {}});
      factor = spread_constant(rewriter, graph, scale, "scale");
    } else if (factor->type.rank() != 0 || factor->type.dtype != DType::Float32) {
      continue;
    }
    made.inputs = {centered->x, factor};
    if (Value* zero_point = centered->input(rewriter, graph)) made.inputs.push_back(zero_point);
    Value* y = rewriter.add(node, std::move(made), node.output(0)->name);
    if (y != nullptr && rewriter.replace(node.output(0), y)) return true;
  }
  return false;
}

}  // namespace

bool become_integers(Value* floats, Value* integers, Rewriter& rewriter, Node& before) {
  const std::vector<Use> uses = floats->uses;
  size_t left = uses.size();
  for (const Use& use : uses) {
    Node* user = use.user;
    if (!is_onnx(user, kCast) || user->output(0)->type.dtype != integers->type.dtype) continue;
    --left;  // with the last one the floats are gone
    rewriter.replace(user->output(0), integers);
  }
  if (left == 0) return true;
  Attribute to{"to", static_cast<int64_t>(floats->type.dtype), AttrType::None, {}, {}};
  Value* as_floats = rewriter.add(before, {.op = "Cast", .inputs = {integers}, .attributes = {to}}, floats->name);
  return as_floats != nullptr && rewriter.replace(floats, as_floats);
}

Value* Centered::input(Rewriter& rewriter, Graph& graph, bool is_needed) const {
  if (zero_point != nullptr) return zero_point;
  if (number == 0 && !is_needed) return nullptr;
  return number_constant(rewriter, graph, x->type.dtype, number, "zero_point");
}

std::optional<Centered> as_centered(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (Value* x = bytes_behind(value)) return Centered{.x = x};
  if (const auto shifted = shifted_by(value->producer)) {
    Value* x = bytes_behind(shifted->of);
    if (x == nullptr || !is_in(-shifted->number, x->type.dtype)) return std::nullopt;
    return Centered{.x = x, .number = -shifted->number};
  }
  const Node* difference = producer_of(value, kSub);
  if (difference == nullptr) return std::nullopt;
  Value *x = bytes_behind(difference->input(0)), *zero_point = bytes_behind(difference->input(1));
  const bool is_found = x && zero_point && x->type.dtype == zero_point->type.dtype && is_one_number(zero_point) &&
                        zero_point->type.rank() == 0 && have_same_type(difference->input(0), value);
  return is_found ? std::optional(Centered{.x = x, .zero_point = zero_point}) : std::nullopt;
}

std::optional<Spread> as_spread(const Value* constant, int64_t rank) {
  constexpr int64_t kMost = 1 << 20;
  if (constant == nullptr || !constant->constant || constant->sparse) return std::nullopt;
  const Tensor& tensor = *constant->constant;
  const auto numbers = is_float(tensor.dtype) ? floats_of(tensor, kMost) : std::nullopt;
  if (!numbers || numbers->empty() || static_cast<int64_t>(tensor.dims.size()) > rank) return std::nullopt;
  const bool is_plain =
      std::all_of(numbers->begin(), numbers->end(), [](double number) { return std::isfinite(number) && number > 0; });
  if (!is_plain) return std::nullopt;
  if (numbers->size() == 1) return Spread{*numbers, {}};
  std::optional<int64_t> axis;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] == 1) continue;
    if (axis) return std::nullopt;
    axis = rank - static_cast<int64_t>(tensor.dims.size()) + static_cast<int64_t>(i);
  }
  return Spread{*numbers, axis};
}

Value* spread_constant(Rewriter& rewriter, Graph& graph, const Spread& spread, std::string_view hint) {
  std::vector<int64_t> dims;
  if (spread.axis) dims.push_back(static_cast<int64_t>(spread.numbers.size()));
  return rewriter.constant(graph, make_floats(DType::Float32, dims, spread.numbers), hint);
}

Value* number_constant(Rewriter& rewriter, Graph& graph, DType dtype, double number, std::string_view hint) {
  return rewriter.constant(graph, make_scalar(dtype, number), hint);
}

bool recognise_dynamic_quantization(Node& node, Rewriter& rewriter) {
  return is_onnx(node, kClip) && find_dynamic(node, rewriter);
}

bool recognise_quantization(Node& node, Rewriter& rewriter) {
  return (is_onnx(node, kClip) && find_quantize(node, rewriter)) || find_dequantize(node, rewriter);
}

}  // namespace tonnx
