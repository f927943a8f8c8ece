// attention.cpp - aten: recognises attention that exporters write out as products around a softmax.
#include <algorithm>

#include "ops/frame/aten_types.h"
#include "passes/frame/aten_match.h"
#include "passes/frame/aten_writer.h"
#include "passes/passes.h"
#include "passes/recognise/aten/attention_mask.h"

namespace tonnx {
namespace {

constexpr double kNearlyInfinite = -1e30;  // a score that is added to it is lost

bool are_same(const std::optional<Shape>& a, const std::optional<Shape>& b) { return a && b && *a == *b; }

bool is_last_dim(const Node& node, const Value& x) {
  const int64_t* dim = find_int(node, "dim");
  const auto rank = x.type.rank();
  return dim && rank && (*dim == -1 || *dim + 1 == static_cast<int64_t>(*rank));
}

/// x * number, as often as it is written: x, and the product of all numbers.
struct Scaled {
  Value* of;
  double by = 1;
};
Scaled without_scale(Value* value) {
  Scaled result{value};
  for (const Node* node = value->producer; node != nullptr; node = result.of->producer) {
    const bool multiplies = is_aten(node, "mul", "Scalar");
    const auto number =
        multiplies || is_aten(node, "div", "Scalar") ? number_of(*node, "other") : std::optional<double>();
    Value* x = number ? operand(*node, "self") : nullptr;
    if (x == nullptr || x->type.dtype != value->type.dtype) break;
    result.by = multiplies ? result.by * *number : result.by / *number;
    result.of = x;
  }
  return result;
}

/// A part of the mask: something that is added, or bools.
struct MaskPart {
  Value* value;
  bool is_bool = false;
  bool says_allowed = true;  // of bools
  double fill = 0;           // of bools: what scores become that are not allowed
  int64_t repeats = 0;       // of a mask for each window, [1, windows, heads, n, k]: how many times there are as many
};

struct Attention {
  Value *q = nullptr, *k = nullptr, *v = nullptr;  // k as it is multiplied with: transposed
  double scale = 1;
  std::vector<MaskPart> mask;
};

/// The scores, from the softmax down to the product of q and k.
class ScoreReader {
 public:
  explicit ScoreReader(const Graph& graph) : graph_(graph) {}

  bool read(Value* scores, Attention& found) const {
    const Node* node = single_use_producer(scores, graph_);
    if (node == nullptr || found.mask.size() > 2) return false;
    if (is_aten(node, "add", "Tensor") && !node->find_attribute("alpha")) {
      Value *a = operand(*node, "self"), *b = operand(*node, "other");
      return read_part(a, scores, added(b), found) || read_part(b, scores, added(a), found);
    }
    if (is_aten(node, "masked_fill", "Scalar")) {
      const auto fill = number_of(*node, "value");
      return fill && read_part(operand(*node, "self"), scores, {operand(*node, "mask"), true, false, *fill}, found);
    }
    if (is_aten(node, "where", "ScalarOther")) {
      const auto fill = number_of(*node, "other");
      return fill && read_part(operand(*node, "self"), scores, {operand(*node, "condition"), true, true, *fill}, found);
    }
    if (is_aten(node, "where", "ScalarSelf")) {
      const auto fill = number_of(*node, "self");
      return fill &&
             read_part(operand(*node, "other"), scores, {operand(*node, "condition"), true, false, *fill}, found);
    }
    return read_windows(*node, scores, found) || read_product(scores, found);
  }

 private:
  /// reshape(reshape(scores, [batch, windows, ..]) + mask, sizes of scores): a mask for each window of all images
  bool read_windows(const Node& joined, const Value* scores, Attention& found) const {
    const bool joins = is_aten(joined, "reshape") || is_aten(joined, "flatten", "using_ints");
    const Value* apart = joins ? operand(joined, "self") : nullptr;
    const Node* sum = single_use_producer(apart, graph_);
    if (!is_aten(sum, "add", "Tensor") || sum->find_attribute("alpha")) return false;
    Value *a = operand(*sum, "self"), *b = operand(*sum, "other");
    return read_window_mask(a, b, *apart, scores, found) || read_window_mask(b, a, *apart, scores, found);
  }

  bool read_window_mask(const Value* split, Value* mask, const Value& apart, const Value* scores,
                        Attention& found) const {
    const Node* splits = single_use_producer(split, graph_);
    Value* inner = is_aten(splits, "reshape") ? operand(*splits, "self") : nullptr;
    if (inner == nullptr || mask == nullptr || mask->type.dtype != scores->type.dtype || !mask->type.shape ||
        !apart.type.shape || !split->type.shape || !scores->type.shape || !inner->type.shape)
      return false;
    const Shape &whole = *scores->type.shape, &parts = *apart.type.shape, &given = *mask->type.shape;
    if (whole.size() != 4 || parts.size() != 5 || given.size() != 5 || !(*inner->type.shape == whole) ||
        !(*split->type.shape == parts))
      return false;
    const auto batch = parts[0].constant(), windows = parts[1].constant(), all = whole[0].constant();
    const bool fits = batch && windows && all && *batch > 0 && *windows > 0 && *all / *batch == *windows &&
                      *all % *batch == 0 && std::equal(whole.begin() + 1, whole.end(), parts.begin() + 2) &&
                      given[0].is(1) && given[1] == parts[1] && (given[2].is(1) || given[2] == parts[2]) &&
                      given[3] == parts[3] && given[4] == parts[4];
    if (!fits) return false;
    found.mask.push_back({mask, false, true, 0, *batch});
    if (read(inner, found)) return true;
    found.mask.pop_back();
    return false;
  }

  /// where(condition, 0.0, -inf) that is added is a choice; other sums are what they are.
  static MaskPart added(Value* value) {
    const Node* node = value ? value->producer : nullptr;
    if (is_aten(node, "where", "Scalar")) {
      const auto chosen = number_of(*node, "self"), other = number_of(*node, "other");
      Value* condition = operand(*node, "condition");
      if (condition && chosen == 0.0 && other && *other < kNearlyInfinite) return {condition, true, true, *other};
      if (condition && other == 0.0 && chosen && *chosen < kNearlyInfinite) return {condition, true, false, *chosen};
    }
    return {value};
  }

  bool read_part(Value* scores, const Value* whole, const MaskPart& part, Attention& found) const {
    if (scores == nullptr || part.value == nullptr || !are_same(scores->type.shape, whole->type.shape)) return false;
    if (part.value->type.rank().value_or(0) < 2 || (part.is_bool && !(part.fill < kNearlyInfinite))) return false;
    if (!part.is_bool && part.value->type.dtype != whole->type.dtype) return false;
    found.mask.push_back(part);
    if (read(scores, found)) return true;
    found.mask.pop_back();
    return false;
  }

  bool read_product(Value* scores, Attention& found) const {
    const Scaled product = without_scale(scores);
    const Node* node = single_use_producer(product.of, graph_);
    const bool is_product = is_aten(node, "matmul") || is_aten(node, "bmm");
    if (!is_product || operand(*node, "self") == nullptr) return false;
    const Scaled q = without_scale(operand(*node, "self"));
    Value* right = operand(*node, is_aten(node, "bmm") ? "mat2" : "other");
    if (right == nullptr) return false;
    const Scaled k = without_scale(right);
    found.q = q.of;
    found.k = k.of;
    found.scale = product.by * q.by * k.by;
    return true;
  }

  const Graph& graph_;
};

/// How weights are made: by a softmax, behind which what is forbidden may be made zeros, since a row that is forbidden
/// as a whole is NaN there.
struct Weights {
  enum class Guard : uint8_t { None, IsNan, Allowed, Forbidden, Infinity };
  const Node* softmax = nullptr;
  Guard guard = Guard::None;
  const Value* mask = nullptr;  // what it is asked of, but for IsNan
};
Weights find_weights(const Value* value, const Graph& graph) {
  using Guard = Weights::Guard;
  const Node* node = single_use_producer(value, graph);
  if (is_aten(node, "softmax", "int")) return {node};
  const bool fills = is_aten(node, "masked_fill", "Scalar") && number_of(*node, "value") == 0.0;
  const bool chooses = is_aten(node, "where", "ScalarOther") && number_of(*node, "other") == 0.0;
  const Value* of = fills || chooses ? operand(*node, "self") : nullptr;
  const Value* mask = fills || chooses ? operand(*node, fills ? "mask" : "condition") : nullptr;
  const Node* softmax = of ? of->producer : nullptr;
  if (!is_aten(softmax, "softmax", "int") || softmax->graph != &graph || mask == nullptr) return {};
  const Node* question = mask->producer;
  if (fills && is_aten(question, "isnan") && operand(*question, "self") == of)
    return of->uses.size() == 2 && mask->uses.size() == 1 ? Weights{softmax, Guard::IsNan} : Weights{};
  if (of->uses.size() != 1) return {};
  if (fills && is_aten(question, "eq", "Scalar") && number_of(*question, "other") == -HUGE_VAL)
    return {softmax, Guard::Infinity, operand(*question, "self")};
  return {softmax, fills ? Guard::Forbidden : Guard::Allowed, mask};
}

class AttentionRewriter {
 public:
  AttentionRewriter(Graph& graph, Node& product) : graph_(graph), product_(product), writer_(graph) {
    writer_.write_before(&product);
  }

  /// 1. softmax(q @ k^T * scale + mask) @ v: scaled_dot_product_attention
  bool run() {
    Value* result = product_.output(0);
    const Weights weights = find_weights(operand(product_, "self"), graph_);
    Attention found;
    found.v = operand(product_, is_aten(product_, "bmm") ? "mat2" : "other");
    if (weights.softmax == nullptr || found.v == nullptr || weights.softmax->find_attribute("dtype")) return false;
    Value* scores = operand(*weights.softmax, "self");
    if (scores == nullptr || !is_last_dim(*weights.softmax, *scores) || !ScoreReader(graph_).read(scores, found))
      return false;
    if (!fits(found, *result) || !leaves_rows(found, weights)) return false;
    const bool gives_zeros = weights.mask != nullptr;
    const auto mask = mask_of(found, *scores, gives_zeros);
    if (!mask) return false;
    AtenCall call("scaled_dot_product_attention", "", &product_);
    Value* rows = keys(found);
    Value *k = without_repeats(rows), *v = without_repeats(found.v);
    const bool shares_heads = k != rows && v != found.v && are_same_heads(*k, *v);
    call.with("query", found.q).with("key", shares_heads ? k : rows).with("value", shares_heads ? v : found.v);
    if (*mask != nullptr) call.with("attn_mask", *mask);
    if (!is_default_scale(found)) call.with("scale", AttrValue(found.scale));
    if (shares_heads) call.with("enable_gqa", AttrValue(true));
    Value* made = writer_.add(call, result->type, result->name);
    graph_.move_output(result, made->producer, 0);
    product_.resize_outputs(0);
    return true;
  }

 private:
  static bool fits(const Attention& a, const Value& result) {
    const auto rank = result.type.rank();
    if (!rank || *rank < 3 || *rank > 4 || !is_float(result.type.dtype)) return false;
    if (!(a.scale > 0) || !std::isfinite(a.scale)) return false;
    for (const Value* each : {a.q, a.k, a.v}) {
      if (each->constant || each->type.dtype != result.type.dtype || each->type.rank() != rank) return false;
    }
    for (size_t i = 0; i + 2 < static_cast<size_t>(*rank); ++i) {
      const Dim &q = (*a.q->type.shape)[i], &k = (*a.k->type.shape)[i], &v = (*a.v->type.shape)[i];
      if (q.is_constant() && ((k.is_constant() && !(q == k)) || (v.is_constant() && !(q == v)))) return false;
    }
    return true;
  }

  /// Whether the guard makes zeros of exactly what the mask forbids.
  static bool is_guard_of(const Weights& weights, const MaskPart& part) {
    if (part.value != weights.mask) return false;
    if (!part.is_bool) return weights.guard == Weights::Guard::Infinity;
    return weights.guard == (part.says_allowed ? Weights::Guard::Allowed : Weights::Guard::Forbidden);
  }

  /// Whether a row that is forbidden as a whole gives zeros, or cannot be. Elsewhere it is NaN.
  static bool leaves_rows(const Attention& a, const Weights& weights) {
    if (weights.guard == Weights::Guard::IsNan) return true;
    if (weights.guard != Weights::Guard::None) return a.mask.size() == 1 && is_guard_of(weights, a.mask[0]);
    return std::none_of(a.mask.begin(), a.mask.end(), [](const MaskPart& part) {
      if (!part.is_bool) return may_forbid_rows(part.value);
      return std::isinf(part.fill) && !opens_first_key(part.value, part.says_allowed);
    });
  }

  /// The mask as one value; null for none, nothing where it cannot be said.
  std::optional<Value*> mask_of(const Attention& a, const Value& scores, bool gives_zeros) {
    Value *sum = nullptr, *allowed = nullptr;
    for (const MaskPart& part : a.mask) {
      if (!part.is_bool) {
        Value* value = part.repeats > 0 ? for_all_windows(part) : part.value;
        sum = sum ? together("add", sum, value, scores.type) : value;
        continue;
      }
      if (std::isfinite(part.fill) && !gives_zeros && !opens_first_key(part.value, part.says_allowed)) {
        // a row that is forbidden as a whole has equal weights, and not zeros
        if (a.mask.size() != 1 || scores.type.dtype != DType::Float32) return std::nullopt;
        AtenCall call("where", "Scalar", &product_);
        call.with("condition", part.value);
        call.with("self", AttrValue(part.says_allowed ? 0.0 : part.fill));
        call.with("other", AttrValue(part.says_allowed ? part.fill : 0.0));
        return writer_.add(call, like(*part.value, scores.type.dtype), "mask");
      }
      Value* open = part.value;
      if (!part.says_allowed) {
        AtenCall call("bitwise_not", "", &product_);
        open = writer_.add(call.with("self", part.value), part.value->type, "mask");
      }
      allowed = allowed ? together("bitwise_and", allowed, open, open->type) : open;
    }
    if (sum == nullptr || allowed == nullptr) return sum ? sum : allowed;
    AtenCall call("where", "ScalarOther", &product_);
    call.with("condition", allowed).with("self", sum).with("other", AttrValue(-HUGE_VAL));
    return writer_.add(call, joint(*allowed, *sum, scores.type.dtype), "mask");
  }

  /// The masks of the windows of one image, for those of all images.
  Value* for_all_windows(const MaskPart& part) {
    Value* value = part.value;
    Type type = value->type;
    if (part.repeats > 1) {
      AtenCall expand("expand", "", &product_);
      expand.with("self", value).with("size", AttrValue(std::vector<int64_t>{part.repeats, -1, -1, -1, -1}));
      type.shape->front() = Dim(part.repeats);
      value = writer_.add(expand, type, "mask");
    }
    const Dim windows = (*type.shape)[0] * (*type.shape)[1];
    type.shape->erase(type.shape->begin());
    type.shape->front() = windows;
    AtenCall flatten("flatten", "using_ints", &product_);
    flatten.with("self", value).with("end_dim", AttrValue(int64_t{1}));
    return writer_.add(flatten, type, "mask");
  }

  static Type like(const Value& value, DType dtype) {
    Type type = value.type;
    type.dtype = dtype;
    return type;
  }
  static Type joint(const Value& a, const Value& b, DType dtype) {
    Type type = Type::tensor(dtype);
    if (a.type.shape && b.type.shape) type.shape = joint_shape(*a.type.shape, *b.type.shape);
    return type;
  }
  Value* together(const char* op, Value* a, Value* b, const Type& type) {
    AtenCall call(op, "Tensor", &product_);
    return writer_.add(call.with("self", a).with("other", b), joint(*a, *b, type.dtype), "mask");
  }

  /// The keys, as rows.
  Value* keys(Attention& a) {
    const auto rank = static_cast<size_t>(*a.k->type.rank());
    const Shape shape = *a.k->type.shape;
    Value* from = a.k;
    auto order = order_of(a.k->producer, rank);
    if (order) {
      from = operand(*a.k->producer, "self");
    } else {
      order = std::vector<int64_t>();
      for (size_t i = 0; i < rank; ++i) order->push_back(static_cast<int64_t>(i));
    }
    std::swap((*order)[rank - 2], (*order)[rank - 1]);
    Value* result = moved(from, *order, shape);
    if (result != from) return result;
    const Scaled inner = without_scale(from);
    if (!(inner.by > 0)) return from;
    a.scale *= inner.by;
    return inner.of;
  }

  Value* moved(Value* from, const std::vector<int64_t>& order, Shape transposed) {
    std::vector<int64_t> out_of_place;
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] != static_cast<int64_t>(i)) out_of_place.push_back(static_cast<int64_t>(i));
    }
    if (out_of_place.empty()) return from;
    Type type = Type::tensor(from->type.dtype);
    std::swap(transposed[order.size() - 2], transposed[order.size() - 1]);
    type.shape = std::move(transposed);
    const bool is_swap = out_of_place.size() == 2;
    AtenCall call(is_swap ? "transpose" : "permute", is_swap ? "int" : "", &product_);
    call.with("self", from);
    if (is_swap) {
      call.with("dim0", AttrValue(out_of_place[0])).with("dim1", AttrValue(out_of_place[1]));
    } else {
      call.with("dims", AttrValue(order));
    }
    return writer_.add(call, std::move(type), "key");
  }

  /// x.unsqueeze(2).expand(.., .., n, .., ..).flatten(1, 2): x, whose heads n heads of the queries share.
  static Value* without_repeats(Value* value) {
    const Node* joined = value->producer;
    const bool joins = is_aten(joined, "reshape") || is_aten(joined, "flatten", "using_ints");
    const Value* many = joins ? operand(*joined, "self") : nullptr;
    const Node* expanded = many ? many->producer : nullptr;
    const Value* one = is_aten(expanded, "expand") ? operand(*expanded, "self") : nullptr;
    const Node* unsqueezed = one ? one->producer : nullptr;
    Value* x = is_aten(unsqueezed, "unsqueeze") ? operand(*unsqueezed, "self") : nullptr;
    const int64_t* dim = x ? find_int(*unsqueezed, "dim") : nullptr;
    if (!dim || *dim != 2 || x->type.rank() != 4 || many->type.rank() != 5 || value->type.rank() != 4) return value;
    const Shape &heads = *x->type.shape, &repeated = *many->type.shape, &all = *value->type.shape;
    if (!heads[1].is_constant() || !repeated[2].is_constant() || !all[1].is_constant() || heads[1].is(0)) return value;
    const bool fits = repeated[0] == heads[0] && repeated[1] == heads[1] && repeated[3] == heads[2] &&
                      repeated[4] == heads[3] && all[0] == heads[0] && all[2] == heads[2] && all[3] == heads[3] &&
                      all[1] == heads[1] * repeated[2];
    return fits ? x : value;
  }
  static bool are_same_heads(const Value& k, const Value& v) { return (*k.type.shape)[1] == (*v.type.shape)[1]; }

  static bool is_default_scale(const Attention& a) {
    const auto size = a.q->type.shape->back().constant();
    return size && std::abs(a.scale * std::sqrt(static_cast<double>(*size)) - 1) < 1e-6;
  }

  Graph& graph_;
  Node& product_;
  AtenWriter writer_;
};

}  // namespace

void recognise_aten_attention(Graph& graph) {
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_aten_attention(*subgraph);
    const bool is_product = is_aten(node, "matmul") || is_aten(node, "bmm");
    if (is_product && AttentionRewriter(graph, *node).run()) {
      graph.erase(node);
      is_changed = true;
    }
    node = next;
  }
  if (is_changed) remove_unused_nodes(graph);
}

}  // namespace tonnx
