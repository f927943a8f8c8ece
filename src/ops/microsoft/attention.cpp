// attention.cpp - attention of com.microsoft, in terms of the standard's: Attention, QAttention, MultiHeadAttention,
// GroupQueryAttention, RotaryEmbedding, and biases by relative position.
#include "ops/microsoft/attention.h"

#include <cmath>

#include "base/error.h"
#include "ops/microsoft/row.h"

namespace tonnx {

Value* split_heads(Expansion& make, Value* x, int64_t heads, int64_t size) {
  return make.transpose(make.reshape(x, {0, 0, heads, size}), {0, 2, 1, 3});
}

Value* merge_heads(Expansion& make, Value* x) { return make.reshape(make.transpose(x, {0, 2, 1, 3}), {0, 0, -1}); }

Value* bias_of_mask(OnnxEdit& edit, Value* mask, Value* batch_of, Value* keys, DType dtype, double filter) {
  Expansion make(edit);
  const auto rank = mask->type.rank();
  if (!rank) edit.cannot("the rank of its mask is not known");
  Value* counts = nullptr;
  if (*rank == 1) {
    const Dim& length = (*mask->type.shape)[0];
    const Shape* batch = batch_of->type.shape ? &*batch_of->type.shape : nullptr;
    Value* at = make.cast(make.range(keys), DType::Int32);
    const bool has_starts = batch && length == (*batch)[0] * Dim(2) && !(length == (*batch)[0]);
    if (batch && !has_starts && length.is_constant() && (*batch)[0].is_constant() && !(length == (*batch)[0])) {
      edit.cannot("its mask has {} elements for a batch of {}", length.text(), (*batch)[0].text());
    }
    Value* ends = mask;
    Value* starts = nullptr;
    if (has_starts) {
      const auto parts = make.all(2, "Split", {mask}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}});
      ends = parts[0];
      starts = parts[1];
    }
    counts = make("Less", {at, make.unsqueeze(ends, {1})});
    if (starts != nullptr) counts = make("And", {counts, make("GreaterOrEqual", {at, make.unsqueeze(starts, {1})})});
    counts = make.unsqueeze(counts, {1, 2});
  } else if (*rank == 2 || *rank == 3) {
    counts = make("Greater", {mask, make.number(mask->type.dtype, 0)});
    counts = make.unsqueeze(counts, *rank == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
  } else {
    edit.cannot("its mask has {} dimensions", *rank);
  }
  return make("Where", {counts, make.number(dtype, 0.0), make.number(dtype, filter)});
}

namespace {

std::vector<Attribute> attention_attributes(const NodeView& n, int64_t heads, bool is_flat) {
  std::vector<Attribute> attributes;
  if (is_flat) attributes = {{"q_num_heads", heads}, {"kv_num_heads", heads}};
  if (n.flag("unidirectional")) attributes.push_back({"is_causal", int64_t{1}});
  if (const auto scale = n.find_f("scale"); scale && *scale != 0.0) attributes.push_back({"scale", *scale});
  return attributes;
}

Value* sum_of(Expansion& make, Value* a, Value* b) { return a && b ? make("Add", {a, b}) : a ? a : b; }

int64_t head_count(const NodeView& n) {
  const int64_t heads = n.i("num_heads");
  require(heads >= 1 && heads <= 65536, "num_heads is {}", heads);
  return heads;
}

/// Attention of what one product gave for Q, K and V together. The columns of each are `sizes`.
bool attend_together(const NodeView& n, OnnxEdit& edit, Value* all, const std::vector<int64_t>& sizes, Value* mask,
                     Value* past, Value* bias) {
  Expansion make(edit);
  const Node& node = n.node();
  const int64_t heads = head_count(n);
  const DType dtype = n.has("bias") ? n.dtype("bias") : n.dtype("input");
  if (n.find_i("do_rotary").value_or(0) != 0) edit.cannot("it turns its keys by position");
  if (n.find_i("past_present_share_buffer").value_or(0) != 0) edit.cannot("past and present are one buffer");
  const auto qkv = make.split(all, -1, sizes);
  Value *past_key = nullptr, *past_value = nullptr;
  Value* keys = make.size(node.input(0), 1);
  if (past != nullptr) {
    const auto parts = make.split(past, 0, {1, 1});
    past_key = make.squeeze(parts[0], {0});
    past_value = make.squeeze(parts[1], {0});
    keys = make("Add", {keys, make.size(past, 3)});
  }
  if (mask != nullptr) {
    const double filter = n.find_f("mask_filter_value").value_or(-10000.0);
    bias = sum_of(make, bias_of_mask(edit, mask, node.input(0), keys, dtype, filter), bias);
  }
  const bool wants_present = n.wants_output(1);
  const auto results =
      make.all(wants_present ? 3 : 1, "Attention", {qkv[0], qkv[1], qkv[2], bias, past_key, past_value},
               attention_attributes(n, heads, true));
  Value* present = nullptr;
  if (wants_present) {
    present = make.concat({make.unsqueeze(results[1], {0}), make.unsqueeze(results[2], {0})}, 0);
  }
  return edit.replace_with({results[0], present});
}

/// A third of the columns of the weights each.
std::vector<int64_t> equal_sizes(const NodeView& n, OnnxEdit& edit, const char* weights) {
  const Shape* shape = n.find_shape(weights);
  const auto columns = shape && shape->size() == 2 ? (*shape)[1].constant() : std::nullopt;
  if (!columns) edit.cannot("the shape of its weights is not known");
  return std::vector<int64_t>(3, *columns / 3);
}

bool expand_attention(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  std::vector<int64_t> sizes = n.find_ints("qkv_hidden_sizes").value_or(std::vector<int64_t>{});
  if (sizes.empty()) sizes = equal_sizes(n, edit, "weights");
  require(sizes.size() == 3, "qkv_hidden_sizes has {} elements", sizes.size());
  Value* all = make("MatMul", {node.input(0), node.input(1)});
  if (node.input(2) != nullptr) all = make("Add", {all, node.input(2)});
  return attend_together(n, edit, all, sizes, node.input(3), node.input(4), node.input(5));
}

/// The same with a product of integers.
bool expand_quantized_attention(const NodeView& n, OnnxEdit& edit) {
  const Node& node = n.node();
  const std::vector<int64_t> sizes = equal_sizes(n, edit, "weight");
  Value* all = edit.before(
      "com.microsoft.MatMulIntegerToFloat",
      {node.input(0), node.input(1), node.input(3), node.input(4), node.input(6), node.input(7), node.input(2)});
  return attend_together(n, edit, all, sizes, node.input(5), node.input(8), nullptr);
}

/// Q, K and V in the form that the node gives them: with the heads flat in the last dimension, or apart.
struct Projected {
  Value* q;
  Value* k;
  Value* v;
  bool is_flat = true;
};

/// The parts of (batch, length, heads, parts, size), each as (batch, heads, length, size).
std::vector<Value*> unpacked(Expansion& make, Value* packed, size_t parts) {
  std::vector<Value*> results;
  for (Value* part : make.split(packed, 3, std::vector<int64_t>(parts, 1))) {
    results.push_back(make.transpose(make.squeeze(part, {3}), {0, 2, 1, 3}));
  }
  return results;
}

Projected projected(const NodeView& n, OnnxEdit& edit, Expansion& make, int64_t heads) {
  const Node& node = n.node();
  Value *q = node.input(0), *k = node.input(1), *v = node.input(2), *bias = node.input(3);
  const auto q_rank = n.find_rank("query");
  const int64_t k_rank = k ? k->type.rank().value_or(-1) : 0;
  if (!q_rank || k_rank == -1) edit.cannot("the ranks of its inputs are not known");
  const bool is_packed = *q_rank == 5;
  require(is_packed || *q_rank == 3, "the query has {} dimensions", *q_rank);
  require(is_packed || k != nullptr, "the key is missing");
  if (bias != nullptr) {
    const Shape* all = n.find_shape("bias");
    const Shape* query = n.find_shape("query");
    const auto count = all && all->size() == 1 ? (*all)[0].constant() : std::nullopt;
    const auto hidden = query->back().constant();
    if (!count || !hidden || is_packed || k_rank == 5) edit.cannot("the sizes of its bias are not known");
    require(*count >= 2 * *hidden, "the bias has {} elements", *count);
    const auto parts = make.split(bias, 0, {*hidden, *hidden, *count - 2 * *hidden});
    q = make("Add", {q, parts[0]});
    if (k_rank == 3) k = make("Add", {k, parts[1]});
    if (k_rank == 3) v = make("Add", {v, parts[2]});
  }
  if (is_packed) {
    const auto parts = unpacked(make, q, 3);
    return {parts[0], parts[1], parts[2], false};
  }
  if (k_rank == 3) return {q, k, v, true};
  if (k_rank == 5) {
    const auto parts = unpacked(make, k, 2);
    return {split_heads(make, q, heads), parts[0], parts[1], false};
  }
  return {split_heads(make, q, heads), k, v, false};
}

bool expand_multi_head_attention(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  const int64_t heads = head_count(n);
  if (node.input(8) || node.input(9)) edit.cannot("past and present are one buffer");
  const Projected p = projected(n, edit, make, heads);
  Value* keys = make.size(p.k, p.is_flat ? 1 : 2);
  if (node.input(6) != nullptr) keys = make("Add", {keys, make.size(node.input(6), 2)});
  Value* bias = node.input(5);
  if (Value* mask = node.input(4)) {
    const double filter = n.find_f("mask_filter_value").value_or(-10000.0);
    bias = sum_of(make, bias_of_mask(edit, mask, node.input(0), keys, n.dtype("query"), filter), bias);
  }
  const bool wants_present = n.wants_output(1) || n.wants_output(2);
  const auto results = make.all(wants_present ? 3 : 1, "Attention", {p.q, p.k, p.v, bias, node.input(6), node.input(7)},
                                attention_attributes(n, heads, p.is_flat));
  Value* y = p.is_flat ? results[0] : merge_heads(make, results[0]);
  return edit.replace_with({y, wants_present ? results[1] : nullptr, wants_present ? results[2] : nullptr});
}

/// Positions may be one number, that of the first token.
bool expand_rotary(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  if (n.find_i("is_packed_batching").value_or(0) != 0) edit.cannot("its batch is packed");
  n.find_f("scale");  // ONNX Runtime has no use for it
  const auto rank = n.find_rank("input"), id_rank = n.find_rank("position_ids");
  if (!rank || !id_rank) edit.cannot("the ranks of its inputs are not known");
  const Shape* cache = n.find_shape("cos_cache");
  const auto half = cache && cache->size() == 2 ? (*cache)[1].constant() : std::nullopt;
  Value* x = node.input(0);
  Value* ids = node.input(1);
  if (*id_rank == 1) {
    Value* places = make("Add", {make.range(make.size(x, *rank == 4 ? 2 : 1)), ids});
    Value* shape = make.concat({make.size(x, 0), make.ints({1})}, 0);
    ids = make("Expand", {make.unsqueeze(places, {0}), shape});
  }
  std::vector<Attribute> attributes{{"interleaved", n.find_i("interleaved").value_or(0)}};
  int64_t heads = n.find_i("num_heads").value_or(0);
  if (*rank == 3 && heads == 0) {
    const Shape* shape = n.find_shape("input");
    const auto hidden = shape->back().constant();
    if (!hidden || !half || *half == 0) edit.cannot("the number of its heads is not known");
    heads = *hidden / (2 * *half);
  }
  if (*rank == 3) attributes.push_back({"num_heads", heads});
  if (const int64_t turns = n.find_i("rotary_embedding_dim").value_or(0); turns != 0) {
    attributes.push_back({"rotary_embedding_dim", turns});
  }
  return edit.replace_with({make("RotaryEmbedding", {x, node.input(2), node.input(3), ids}, attributes)});
}

/// The bucket of each distance: half of them for single steps, the rest for ever wider ranges.
bool expand_relative_position(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  const Shape* table = n.find_shape("bias_table");
  const auto rows = table && table->size() == 2 ? (*table)[0].constant() : std::nullopt;
  if (!rows) edit.cannot("the number of buckets is not known");
  const bool both_ways = n.flag("is_bidirectional");
  const int64_t buckets = both_ways ? *rows / 2 : *rows, exact = buckets / 2;
  const int64_t farthest = n.i("max_distance");
  require(exact >= 1 && farthest > exact, "{} buckets for distances up to {}", *rows, farthest);
  const auto range = [&](size_t input) { return make.range(make.reshape(node.input(input), {1})); };
  Value* distance = make("Sub", {make.unsqueeze(range(2), {0}), make.unsqueeze(range(1), {1})});  // key - query
  Value* zero = make.number(DType::Int64, 0);
  Value* behind = both_ways ? make("Abs", {distance}) : make("Max", {make("Neg", {distance}), zero});
  Value* steps = make.cast(make("Max", {behind, make.number(DType::Int64, 1)}), DType::Float32);
  Value* ratio = make("Log", {make("Div", {steps, make.number(DType::Float32, static_cast<double>(exact))})});
  const double width = std::log(static_cast<double>(farthest) / static_cast<double>(exact));
  Value* wide = make("Mul", {ratio, make.number(DType::Float32, static_cast<double>(buckets - exact) / width)});
  Value* far = make("Add", {make.cast(wide, DType::Int64), make.number(DType::Int64, static_cast<double>(exact))});
  far = make("Min", {far, make.number(DType::Int64, static_cast<double>(buckets - 1))});
  Value* is_near = make("Less", {behind, make.number(DType::Int64, static_cast<double>(exact))});
  Value* bucket = make("Where", {is_near, behind, far});
  if (both_ways) {
    Value* ahead = make.cast(make("Greater", {distance, zero}), DType::Int64);
    bucket = make("Add", {bucket, make("Mul", {ahead, make.number(DType::Int64, static_cast<double>(buckets))})});
  }
  Value* bias = make("Gather", {node.input(0), bucket});
  return edit.replace_with({make.unsqueeze(make.transpose(bias, {2, 0, 1}), {0})});
}

bool expand_gated_position(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  if (node.input(6) != nullptr) edit.cannot("its tokens are packed");
  const int64_t heads = head_count(n);
  const DType dtype = n.dtype("query_layer");
  Value* query = split_heads(make, make("Add", {node.input(0), node.input(1)}), heads);
  Value* gates = make("Add", {make("MatMul", {query, node.input(3)}), node.input(4)});
  gates = make("ReduceSum", {make.reshape(gates, {0, 0, 0, 2, -1}), make.ints({-1})}, {{"keepdims", int64_t{0}}});
  const auto parts = make.split(make("Sigmoid", {gates}), -1, {1, 1});
  Value* reset = make("Sub", {make("Mul", {parts[1], node.input(5)}), make.number(dtype, 1.0)});
  Value* gate = make("Add", {make("Mul", {parts[0], reset}), make.number(dtype, 2.0)});
  return edit.replace_with({make("Mul", {gate, node.input(2)})});
}

constexpr OnnxOp kMsAttentionOnnx[] = {
    with(expanded_row(
             "com.microsoft::Attention(T input, T weights, T? bias, M? mask_index, T? past, T? attention_bias, "
             "M? past_sequence_length, *, int? do_rotary, float? mask_filter_value, int num_heads, "
             "int? past_present_share_buffer, ints? qkv_hidden_sizes, int? rotary_embedding_dim, float? scale, "
             "int unidirectional=0) -> (T output, T? present)",
             expand_attention, "without shared buffers for past and present, and without masks of four dimensions"),
         {.traits = kSumsProducts}),
    with(expanded_row(
             "com.microsoft::QAttention(T1 input, T2 weight, T3 bias, T3 input_scale, T3 weight_scale, T4? mask_index, "
             "T1? input_zero_point, T2? weight_zero_point, T3? past, *, int? do_rotary, float? mask_filter_value, "
             "int num_heads, int? past_present_share_buffer, float? scale, int unidirectional=0) "
             "-> (T3 output, T3? present)",
             expand_quantized_attention, "without shared buffers for past and present"),
         {.traits = kSumsProducts}),
    with(
        expanded_row("com.microsoft::MultiHeadAttention(T query, T? key, T? value, T? bias, M? key_padding_mask, "
                     "T? attention_bias, T? past_key, T? past_value, M? past_sequence_length, M? cache_indirection, *, "
                     "float? mask_filter_value, int num_heads, float? scale, int unidirectional=0) "
                     "-> (T output, T? present_key, T? present_value, QK? qk)",
                     expand_multi_head_attention, "without shared buffers for past and present"),
        {.traits = kSumsProducts}),
    with(
        expanded_row(
            "com.microsoft::GroupQueryAttention(T query, T? key, T? value, T_CACHE? past_key, T_CACHE? past_value, "
            "M seqlens_k, M total_sequence_length, T? cos_cache, T? sin_cache, tensor(int64)? position_ids, "
            "T? attention_bias, T? head_sink, T_KV_SCALE? k_scale, T_KV_SCALE? v_scale, T? q_norm_weight, "
            "T? k_norm_weight, *, int causal=1, int? do_rotary, str k_quant_type=\"NONE\", int? kv_cache_bit_width, "
            "int kv_num_heads, int local_window_size=-1, int num_heads, float qk_norm_epsilon=1e-06, int qk_output=0, "
            "int? rotary_interleaved, float? scale, int sliding_window_cache=0, int smooth_softmax=-1, float? softcap, "
            "str v_quant_type=\"NONE\") -> (T output, T_CACHE? present_key, T_CACHE? present_value, T? output_qk)",
            expand_group_query_attention, "without quantised and window-sized caches"),
        {.traits = kSumsProducts}),
    expanded_row(
        "com.microsoft::RotaryEmbedding(T input, M position_ids, T cos_cache, T sin_cache, *, int? interleaved, "
        "int? is_packed_batching, int? num_heads, int? rotary_embedding_dim, float? scale) -> T output",
        expand_rotary),
    expanded_row(
        "com.microsoft::RelativePositionBias(T bias_table, U query_length, U key_length, *, int is_bidirectional=0, "
        "int max_distance) -> T output",
        expand_relative_position),
    expanded_row(
        "com.microsoft::GatedRelativePositionBias(T query_layer, T query_bias, T rel_pos, T weight, T bias, T eco_a, "
        "M? token_offset, *, int num_heads) -> T output",
        expand_gated_position),
};

}  // namespace

extern const OpFamily kMsAttentionOps;
constinit const OpFamily kMsAttentionOps{"ms_attention", kMsAttentionOnnx, {}};

}  // namespace tonnx
