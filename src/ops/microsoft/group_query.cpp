// group_query.cpp - GroupQueryAttention of com.microsoft: a cache with a length for each sequence, rotary embedding,
// windows, and a sink beside the keys.
#include <limits>

#include "base/error.h"
#include "ops/microsoft/attention.h"

namespace tonnx {
namespace {

struct GroupQuery {
  GroupQuery(const NodeView& view, OnnxEdit& step) : n(view), edit(step), make(step), node(view.node()) {
    heads = n.i("num_heads");
    kv_heads = n.i("kv_num_heads");
    require(kv_heads >= 1 && heads >= 1 && heads <= 65536 && heads % kv_heads == 0,
            "{} heads of the query do not divide into {} of the key", heads, kv_heads);
  }

  const NodeView& n;
  OnnxEdit& edit;
  Expansion make;
  const Node& node;
  int64_t heads, kv_heads;
  Value *q = nullptr, *k = nullptr, *v = nullptr;  // (batch, length, heads * size), then (batch, heads, length, size)
  Value* length = nullptr;                         // of the query, as a list of one
  Value* start = nullptr;                          // how many keys each sequence has already; null: none has any
  int64_t size = 0;                                // of a head
};

void refuse_what_is_missing(const GroupQuery& g) {
  const NodeView& n = g.n;
  if (n.has("k_scale") || n.has("v_scale") || n.s("k_quant_type") != "NONE" || n.s("v_quant_type") != "NONE") {
    g.edit.cannot("its cache is quantised");
  }
  if (n.i("sliding_window_cache") != 0) g.edit.cannot("its cache has the size of the window");
  if (n.i("qk_output") != 0) g.edit.cannot("it gives its scores");
  n.find_i("kv_cache_bit_width");
}

void project(GroupQuery& g) {
  const Shape* query = g.n.find_shape("query");
  if (query == nullptr) g.edit.cannot("the shape of its query is not known");
  require(query->size() == 3, "the query has {} dimensions", query->size());
  const auto hidden = query->back().constant();
  if (!hidden) g.edit.cannot("the size of its heads is not known");
  g.length = g.make.size(g.node.input(0), 1);
  if (g.node.input(1) != nullptr) {
    g.size = *hidden / g.heads;
    g.q = g.node.input(0);
    g.k = g.node.input(1);
    g.v = g.node.input(2);
    require(g.v != nullptr, "the value is missing");
  } else {
    g.size = *hidden / (g.heads + 2 * g.kv_heads);
    const auto parts = g.make.split(g.node.input(0), -1, {g.heads * g.size, g.kv_heads * g.size, g.kv_heads * g.size});
    g.q = parts[0];
    g.k = parts[1];
    g.v = parts[2];
  }
  require(g.size >= 1, "the heads of the query are empty");
}

/// Where the new keys go: behind those that a sequence has, or to the front where all are new.
void place(GroupQuery& g) {
  if (g.node.input(3) == nullptr) return;
  Value* lengths = g.make.cast(g.node.input(5), DType::Int64);  // less one
  lengths = g.make.reshape(lengths, {-1});
  Value* before = g.make("Sub", {g.make("Add", {lengths, g.make.number(DType::Int64, 1)}), g.length});
  Value* total = g.make.reshape(g.make.cast(g.node.input(6), DType::Int64), {1});
  Value* is_first = g.make("Equal", {total, g.length});
  g.start = g.make("Where", {is_first, g.make.number(DType::Int64, 0), before});
}

void normalize_and_turn(GroupQuery& g) {
  const auto split = [&](Value* x, int64_t heads, size_t norm) {
    Value* y = split_heads(g.make, x, heads, g.size);
    if (g.node.input(norm) == nullptr) return y;
    return g.make("RMSNormalization", {y, g.node.input(norm)}, {{"epsilon", g.n.f("qk_norm_epsilon")}});
  };
  g.q = split(g.q, g.heads, 14);
  g.k = split(g.k, g.kv_heads, 15);
  g.v = split_heads(g.make, g.v, g.kv_heads, g.size);
  if (g.n.find_i("do_rotary").value_or(0) == 0) return;
  require(g.node.input(7) && g.node.input(8), "do_rotary needs the caches of cos and sin");
  Value* ids = g.node.input(9);
  if (ids == nullptr) {
    ids = g.make.unsqueeze(g.make.range(g.length), {0});
    if (g.start != nullptr) {
      ids = g.make("Add", {g.make.unsqueeze(g.start, {1}), ids});
    } else {
      Value* shape = g.make.concat({g.make.size(g.node.input(0), 0), g.make.ints({1})}, 0);
      ids = g.make("Expand", {ids, shape});
    }
  }
  std::vector<Attribute> attributes{{"interleaved", g.n.find_i("rotary_interleaved").value_or(0)}};
  const Shape* cache = g.n.find_shape("cos_cache");
  const auto half = cache && cache->size() == 2 ? (*cache)[1].constant() : std::nullopt;
  if (half && *half * 2 != g.size) attributes.push_back({"rotary_embedding_dim", *half * 2});
  for (Value** x : {&g.q, &g.k})
    *x = g.make("RotaryEmbedding", {*x, g.node.input(7), g.node.input(8), ids}, attributes);
}

/// The cache with the new entries in it. It is as long as it was, where that is enough, or as all that there is.
Value* extended(GroupQuery& g, Value* past, Value* fresh) {
  Value* total = g.make.reshape(g.make.cast(g.node.input(6), DType::Int64), {1});
  Value* missing = g.make("Max", {g.make("Sub", {total, g.make.size(past, 2)}), g.make.ints({0})});
  Value* pads = g.make.concat({g.make.ints({0, 0, 0, 0, 0, 0}), missing, g.make.ints({0})}, 0);
  return g.make("TensorScatter", {g.make("Pad", {past, pads}), fresh, g.start});
}

/// A key that is zero has the score of the sink, which is 0 or one for each head, and its value adds nothing.
Value* with_sink(GroupQuery& g, Value* mask) {
  const DType dtype = g.n.dtype("query");
  const auto in_front = [&](Value* x) { return g.make("Pad", {x, g.make.ints({0, 0, 1, 0, 0, 0, 0, 0})}); };
  g.k = in_front(g.k);
  g.v = in_front(g.v);
  Value* sink = g.node.input(11) ? g.make.reshape(g.node.input(11), {1, g.heads, 1, 1})
                                 : g.make.numbers(dtype, {1, 1, 1, 1}, {0.0});
  Value* shape =
      g.make.concat({g.make.size(mask, 0), g.make.ints({g.heads}), g.make.size(mask, 2), g.make.ints({1})}, 0);
  Value* column = g.make("Expand", {sink, shape});
  Value* wide = g.make("Expand", {mask, g.make.ints({1, g.heads, 1, 1})});
  return g.make.concat({column, wide}, 3);
}

/// What position allows, written out: 0 or minus infinity, (batch or 1, 1, queries, keys).
Value* position_bias(GroupQuery& g, int64_t window) {
  const DType dtype = g.n.dtype("query");
  Value* keys = g.make.range(g.make.size(g.k, 2));
  Value* at = g.make.unsqueeze(g.make.range(g.length), {1});
  if (g.start != nullptr) at = g.make("Add", {at, g.make.reshape(g.start, {-1, 1, 1, 1})});
  Value* allowed = g.make("LessOrEqual", {keys, at});
  if (window > 0) {
    Value* first = g.make("Sub", {at, g.make.number(DType::Int64, static_cast<double>(window))});
    allowed = g.make("And", {allowed, g.make("Greater", {keys, first})});
  }
  if (g.start == nullptr) allowed = g.make.unsqueeze(allowed, {0, 1});
  const double never = -std::numeric_limits<double>::infinity();
  return g.make("Where", {allowed, g.make.number(dtype, 0.0), g.make.number(dtype, never)});
}

Value* attend(GroupQuery& g) {
  const int64_t window = g.n.i("local_window_size");
  require(window == -1 || window >= 1, "local_window_size is {}", window);
  const bool is_causal = g.n.flag("causal");
  std::vector<Attribute> attributes;
  if (const auto scale = g.n.find_f("scale"); scale && *scale != 0.0) {
    attributes.push_back({"scale", *scale});
  }
  if (const double cap = g.n.find_f("softcap").value_or(0.0); cap > 0.0) attributes.push_back({"softcap", cap});
  const bool has_sink = g.n.i("smooth_softmax") == 1 || g.node.input(11) != nullptr;
  Value* bias = g.node.input(10);
  if (has_sink) {
    if (!is_causal) g.edit.cannot("it has a sink, and is not causal");
    Value* position = position_bias(g, window);
    Value* mask = with_sink(g, bias ? g.make("Add", {position, bias}) : position);
    return g.make("Attention", {g.q, g.k, g.v, mask}, attributes);
  }
  std::vector<Value*> inputs{g.q, g.k, g.v};
  if (is_causal) attributes.push_back({"is_causal", int64_t{1}});
  if (window > 0) attributes.push_back({"left_window_size", window - 1});
  if (bias != nullptr || g.start != nullptr) inputs.push_back(bias);
  if (g.start != nullptr) {
    inputs.insert(inputs.end(), {nullptr, nullptr, g.make("Add", {g.start, g.length})});
  }
  return g.make("Attention", inputs, attributes);
}

}  // namespace

bool expand_group_query_attention(const NodeView& n, OnnxEdit& edit) {
  GroupQuery g(n, edit);
  refuse_what_is_missing(g);
  project(g);
  place(g);
  normalize_and_turn(g);
  if (g.start != nullptr) {
    g.k = extended(g, g.node.input(3), g.k);
    g.v = extended(g, g.node.input(4), g.v);
  }
  Value *present_key = g.k, *present_value = g.v;
  Value* y = merge_heads(g.make, attend(g));
  return edit.replace_with({y, n.wants_output(1) ? present_key : nullptr, n.wants_output(2) ? present_value : nullptr});
}

}  // namespace tonnx
