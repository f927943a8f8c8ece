// moe.cpp - a layer of experts of com.microsoft, of which each token takes the best: MoE.
#include <cmath>

#include "base/error.h"
#include "ops/frame/expansion.h"

namespace tonnx {
namespace {

/// Two columns for each result, a gate and what it lets through: beside each other, or one half each.
Value* swiglu(const NodeView& n, OnnxEdit& edit, Expansion& make, Value* x) {
  const int64_t fusion = n.i("swiglu_fusion");
  if (fusion != 1 && fusion != 2) edit.cannot("gate and value of its SwiGLU come apart");
  const DType dtype = n.dtype("input");
  Value *gate = nullptr, *linear = nullptr;
  if (fusion == 1) {
    const auto pairs = make.split(make.reshape(x, {0, 0, -1, 2}), 3, {1, 1});
    gate = make.squeeze(pairs[0], {3});
    linear = make.squeeze(pairs[1], {3});
  } else {
    const auto halves = make.all(2, "Split", {x}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}});
    gate = halves[0];
    linear = halves[1];
  }
  if (const auto limit = n.find_f("swiglu_limit"); limit && std::isfinite(*limit)) {
    gate = make("Min", {gate, make.number(dtype, *limit)});
    linear = make("Clip", {linear, make.number(dtype, -*limit), make.number(dtype, *limit)});
  }
  if (n.f("activation_beta") != 0.0) linear = make("Add", {linear, make.number(dtype, n.f("activation_beta"))});
  return make("Mul", {make("Swish", {gate}, {{"alpha", n.f("activation_alpha")}}), linear});
}

Value* expert_activation(const NodeView& n, OnnxEdit& edit, Expansion& make, Value* x) {
  const std::string type = n.s("activation_type");
  if (type == "swiglu") return swiglu(n, edit, make, x);
  if (type == "relu") return make("Relu", {x});
  if (type == "gelu") return make("Gelu", {x}, {{"approximate", std::string("tanh")}});
  if (type == "silu") return make("Swish", {x});
  if (type != "identity") edit.cannot("the activation '{}' is not known", type);
  return x;
}

/// How much each expert counts for each token: the best of the softmax, and zero for the others.
Value* routing(const NodeView& n, Expansion& make) {
  const int64_t k = n.i("k");
  require(k >= 1, "k is {}", k);
  Value* all = make("Softmax", {n.node().input(1)});
  const auto best = make.all(2, "TopK", {all, make.ints({k})});
  Value* weights = best[0];
  if (n.flag("normalize_routing_weights")) {
    weights = make("Div", {weights, make("ReduceSum", {weights, make.ints({-1})})});
  }
  Value* none = make("Mul", {all, make.number(n.dtype("router_probs"), 0.0)});
  return make("ScatterElements", {none, best[1], weights}, {{"axis", int64_t{1}}});
}

/// Every expert works on every token: a graph has no other way that does not depend on the data.
bool expand_moe(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  if (n.flag("use_sparse_mixer")) edit.cannot("its router is a sparse mixer");
  const auto rank = n.find_rank("input");
  if (!rank) edit.cannot("the rank of its input is not known");
  require(*rank == 2 || *rank == 3, "the input has {} dimensions", *rank);
  Value* x = node.input(0);
  if (*rank == 3) x = make("Flatten", {x}, {{"axis", int64_t{2}}});
  const auto layer = [&](Value* rows, size_t weight, size_t bias) {
    Value* y = make("MatMul", {rows, make.transpose(node.input(weight), {0, 2, 1})});
    return node.input(bias) ? make("Add", {y, make.unsqueeze(node.input(bias), {1})}) : y;
  };
  Value* rows = make.unsqueeze(x, {0});
  Value* inner = expert_activation(n, edit, make, layer(rows, 2, 3));
  if (node.input(6) != nullptr) inner = make("Mul", {inner, layer(rows, 6, 7)});
  Value* each = layer(inner, 4, 5);  // (experts, tokens, size)
  Value* share = make.unsqueeze(make.transpose(routing(n, make), {1, 0}), {2});
  Value* y = make("ReduceSum", {make("Mul", {each, share}), make.ints({0})}, {{"keepdims", int64_t{0}}});
  return edit.replace_with({*rank == 3 ? make("Reshape", {y, make("Shape", {node.input(0)})}) : y});
}

constexpr OnnxOp kMsMoeOnnx[] = {
    {.sig = "com.microsoft::MoE(T input, T router_probs, T fc1_experts_weights, T? fc1_experts_bias, "
            "T fc2_experts_weights, T? fc2_experts_bias, T? fc3_experts_weights, T? fc3_experts_bias, *, "
            "float activation_alpha=1.0, float activation_beta=0.0, str activation_type=\"relu\", int k=1, "
            "int normalize_routing_weights=0, int swiglu_fusion=0, float? swiglu_limit, int use_sparse_mixer=0) "
            "-> T output",
     .since = 1,
     .traits = kSumsProducts,
     .note = "every expert works on every token",
     .expand = expand_moe},
};

}  // namespace

extern const OpFamily kMsMoeOps;
constinit const OpFamily kMsMoeOps{"ms_moe", kMsMoeOnnx, {}};

}  // namespace tonnx
