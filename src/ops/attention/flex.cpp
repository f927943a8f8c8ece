// flex.cpp - attention with graphs that change its scores and its weights: ai.onnx.preview FlexAttention.
#include <cmath>
#include <unordered_map>

#include "base/budget.h"
#include "base/error.h"
#include "ops/frame/expansion.h"

namespace tonnx {
namespace {

/// The nodes of a subgraph of one input and one output, with x as its input.
Value* inlined(OnnxEdit& edit, const Graph& graph, Value* x) {
  require(graph.inputs().size() == 1 && graph.outputs().size() == 1,
          "a modifier has {} inputs and {} outputs where each is one", graph.inputs().size(), graph.outputs().size());
  std::unordered_map<const Value*, Value*> made{{graph.inputs()[0], x}};
  for (const Value* constant : graph.initializers()) {
    if (constant->constant) made[constant] = edit.constant(constant->constant, constant->name);
  }
  const auto value_of = [&](Value* value) {
    const auto at = made.find(value);
    return at == made.end() ? value : at->second;  // one of the graphs around it
  };
  for (const Node& node : graph) {
    if (!subgraphs_of(node).empty()) edit.cannot("a modifier has graphs inside");
    std::vector<Value*> inputs;
    for (Value* input : node.inputs()) inputs.push_back(input ? value_of(input) : nullptr);
    const std::string op =
        node.domain.empty() ? node.op.str() : fmt::format("{}.{}", node.domain.view(), node.op.view());
    Node* copy = edit.node_before(op, std::move(inputs), node.attributes, node.outputs().size());
    copy->version = node.version;
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (node.output(i) != nullptr) made[node.output(i)] = copy->output(i);
    }
  }
  return value_of(graph.outputs()[0]);
}

/// Each head of K and V serves as many neighbouring ones of Q.
Value* repeated(Expansion& make, Value* x, int64_t heads, int64_t times) {
  if (times == 1) return x;
  std::vector<int64_t> order;
  order.reserve(room_for<int64_t>({heads, times}));
  for (int64_t h = 0; h < heads * times; ++h) order.push_back(h / times);
  return make("Gather", {x, make.ints(std::move(order))}, {{"axis", int64_t{1}}});
}

bool expand_flex_attention(const NodeView& n, OnnxEdit& edit) {
  const Shape *q = n.find_shape("Q"), *k = n.find_shape("K");
  if (q == nullptr || k == nullptr) edit.cannot("the ranks of its inputs are not known");
  require(q->size() == 4 && k->size() == 4, "Q and K have {} and {} dimensions where four are needed", q->size(),
          k->size());
  const auto q_heads = (*q)[1].constant(), kv_heads = (*k)[1].constant(), size = (*q)[3].constant();
  int64_t times = 1;
  if (!((*q)[1] == (*k)[1])) {
    if (!q_heads || !kv_heads) edit.cannot("the numbers of its heads are not known");
    require(*kv_heads >= 1 && *q_heads % *kv_heads == 0 && *q_heads <= 65536,
            "{} heads of Q do not divide into the {} of K", *q_heads, *kv_heads);
    times = *q_heads / *kv_heads;
  }
  auto scale = n.find_f("scale");
  if (!scale && size && *size > 0) scale = 1.0 / std::sqrt(static_cast<double>(*size));
  if (!scale) edit.cannot("the size of a head is not known");
  const DType dtype = n.dtype("Q");
  const DType precision = n.find_dtype("softmax_precision").value_or(dtype == DType::Float64 ? dtype : DType::Float32);
  const Node& node = n.node();
  Expansion make(edit);
  Value* root = make.number(dtype, std::sqrt(std::fabs(*scale)));
  Value* key = make.transpose(repeated(make, node.input(1), kv_heads.value_or(0), times), {0, 1, 3, 2});
  Value* scores = make("MatMul", {make("Mul", {node.input(0), root}), make("Mul", {key, root})});
  if (*scale < 0.0) scores = make("Neg", {scores});
  if (precision != dtype) scores = make.cast(scores, precision);
  if (const GraphPtr graph = n.find_graph("score_mod")) scores = inlined(edit, *graph, scores);
  Value* weights = make("Softmax", {scores});
  if (const GraphPtr graph = n.find_graph("prob_mod")) weights = inlined(edit, *graph, weights);
  Value* value = repeated(make, node.input(2), kv_heads.value_or(0), times);
  if (precision != dtype) value = make.cast(value, precision);
  Value* y = make("MatMul", {weights, value});
  if (precision != dtype) y = make.cast(y, dtype);
  return edit.replace_with({y});
}

constexpr OnnxOp kAttentionFlexOnnx[] = {
    {.sig = "ai.onnx.preview::FlexAttention(T1 Q, T1 K, T1 V, *, graph? prob_mod, float? scale, graph? score_mod, "
            "int? softmax_precision) -> T1 Y",
     .since = 1,
     .expand = expand_flex_attention},
};

}  // namespace

extern const OpFamily kAttentionFlexOps;
constinit const OpFamily kAttentionFlexOps{"attention_flex", kAttentionFlexOnnx, {}};

}  // namespace tonnx
