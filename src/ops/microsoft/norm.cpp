// norm.cpp - normalisations of com.microsoft: with a skip connection in front, of embeddings, of groups.
#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/frame/size_node.h"
#include "ops/microsoft/row.h"

namespace tonnx {
namespace {

/// The sum of the inputs of those numbers that are there: the bias first, which makes it that of the layer before.
Value* sum_of_inputs(Expansion& make, const Node& node, std::initializer_list<size_t> inputs) {
  Value* sum = nullptr;
  for (const size_t i : inputs) {
    if (node.input(i) != nullptr) sum = sum ? make("Add", {sum, node.input(i)}) : node.input(i);
  }
  return sum;
}

/// y, and what the row has for mean and deviation where somebody wants them.
std::vector<Value*> layer_norm(const NodeView& n, Expansion& make, Value* x, Value* gamma, Value* beta,
                               bool statistics) {
  std::vector<Value*> inputs{x, gamma};
  if (beta != nullptr) inputs.push_back(beta);
  return make.all(statistics ? 3 : 1, "LayerNormalization", inputs, {{"epsilon", n.f("epsilon")}});
}

bool expand_skip_layer_norm(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  Value* sum = sum_of_inputs(make, node, {0, 4, 1});
  const bool statistics = n.wants_output(1) || n.wants_output(2);
  const auto results = layer_norm(n, make, sum, node.input(2), node.input(3), statistics);
  return edit.replace_with({results[0], statistics ? results[1] : nullptr, statistics ? results[2] : nullptr,
                            n.wants_output(3) ? sum : nullptr});
}

/// One over the root of the mean square, in 32 bits.
Value* inverse_rms(Expansion& make, Value* x, const std::vector<int64_t>& axes, double epsilon) {
  Value* wide = make.cast(x, DType::Float32);
  Value* mean = make("ReduceMean", {make("Mul", {wide, wide}), make.ints(axes)});
  Value* shifted = make("Add", {mean, make.number(DType::Float32, epsilon)});
  return make("Reciprocal", {make("Sqrt", {shifted})});
}

bool expand_skip_simplified(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  const double epsilon = n.f("epsilon");
  Value* sum = sum_of_inputs(make, node, {0, 3, 1});
  Value* y = make("RMSNormalization", {sum, node.input(2)}, {{"epsilon", epsilon}});
  Value* inverse = n.wants_output(2) ? inverse_rms(make, sum, {-1}, epsilon) : nullptr;
  return edit.replace_with({y, nullptr, inverse, n.wants_output(3) ? sum : nullptr});
}

bool expand_simplified(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  const double epsilon = n.f("epsilon");
  Value* y = make("RMSNormalization", {node.input(0), node.input(1)},
                  {{"axis", n.i("axis")}, {"epsilon", epsilon}, {"stash_type", n.i("stash_type")}});
  Value* inverse = nullptr;
  if (n.wants_output(1)) {
    std::vector<int64_t> axes;
    const int64_t rank = n.rank("X");
    for (int64_t axis = n.axis("axis", "X"); axis < rank; ++axis) axes.push_back(axis);
    inverse = inverse_rms(make, node.input(0), axes, epsilon);
  }
  return edit.replace_with({y, inverse});
}

bool expand_layer_norm(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  std::vector<Value*> inputs;
  for (Value* input : n.node().inputs()) inputs.push_back(input);
  const auto results = make.all(n.node().outputs().size(), "LayerNormalization", inputs, n.node().attributes);
  return edit.replace_with(results);
}

/// Words, positions and segments are looked up, added and normalised.
bool expand_embed_layer_norm(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  n.find_i("mask_index_type");
  Value* ids = node.input(0);
  Value* words = make("Gather", {node.input(2), ids});
  Value* places = node.input(8) ? node.input(8) : make.range(make.size(ids, 1));
  Value* positions = make("Gather", {node.input(3), places});
  Value* sum = make("Add", {words, positions});
  if (node.input(1) != nullptr && node.input(4) != nullptr) {
    sum = make("Add", {sum, make("Gather", {node.input(4), node.input(1)})});
  }
  const auto results = layer_norm(n, make, sum, node.input(5), node.input(6), false);
  Value* count = nullptr;
  if (n.wants_output(1)) {
    count = node.input(7) ? make("ReduceSum", {node.input(7), make.ints({1})}, {{"keepdims", int64_t{0}}})
                          : make.cast(make("Expand", {make.number(DType::Int64, 0), make.size(ids, 0)}), DType::Int32);
  }
  return edit.replace_with({results[0], count, n.wants_output(2) ? sum : nullptr});
}

/// The same with tables of integers, each with its own scale: the rows that are looked up become floats.
bool expand_quantized_embedding(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  const auto real = [&](Value* x, size_t scale) {
    return make("DequantizeLinear", {x, node.input(scale), node.input(scale + 5)});
  };
  Value* ids = node.input(0);
  Value* words = real(make("Gather", {node.input(2), ids}), 8);
  Value* sum = make("Add", {words, real(make("Gather", {node.input(3), make.range(make.size(ids, 1))}), 9)});
  if (node.input(1) != nullptr && node.input(4) != nullptr) {
    sum = make("Add", {sum, real(make("Gather", {node.input(4), node.input(1)}), 10)});
  }
  const auto results = layer_norm(n, make, sum, real(node.input(5), 11), real(node.input(6), 12), false);
  Value* count = nullptr;
  if (n.wants_output(1)) {
    count = node.input(7) ? make("ReduceSum", {node.input(7), make.ints({1})}, {{"keepdims", int64_t{0}}})
                          : make.cast(make("Expand", {make.number(DType::Int64, 0), make.size(ids, 0)}), DType::Int32);
  }
  return edit.replace_with({results[0], count});
}

/// With the channels last, as the kernels of ONNX Runtime have them.
Value* group_norm(const NodeView& n, OnnxEdit& edit, Expansion& make, Value* x) {
  const Node& node = n.node();
  const bool is_last = n.flag("channels_last");
  const int64_t activation = n.i("activation");
  require(activation == 0 || activation == 1, "the activation is {}", activation);
  const DType dtype = n.dtype("X"), inner = n.dtype("gamma");
  if (n.rank("X") != 4) edit.cannot("its input has not four dimensions");
  if (is_last) x = make.transpose(x, {0, 3, 1, 2});
  if (dtype != inner) x = make.cast(x, inner);
  Value* y = make("GroupNormalization", {x, node.input(1), node.input(2)},
                  {{"epsilon", n.f("epsilon")}, {"num_groups", n.i("groups")}});
  if (activation == 1) y = make("Swish", {y});
  if (dtype != inner) y = make.cast(y, dtype);
  return is_last ? make.transpose(y, {0, 2, 3, 1}) : y;
}

bool expand_group_norm(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  return edit.replace_with({group_norm(n, edit, make, n.node().input(0))});
}

bool expand_skip_group_norm(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  Value* skip = node.input(3);
  if (n.find_rank("skip") == 2)
    skip = make.unsqueeze(skip, n.flag("channels_last") ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2, 3});
  Value* sum = make("Add", {node.input(0), skip});
  if (node.input(4) != nullptr) {
    sum = make("Add", {sum, n.flag("channels_last") ? node.input(4) : make.reshape(node.input(4), {-1, 1, 1})});
  }
  return edit.replace_with({group_norm(n, edit, make, sum), n.wants_output(1) ? sum : nullptr});
}

/// scale * rms_norm(x) * activation(gate)
bool expand_gated_rms_norm(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  const std::string activation = n.s("activation");
  Value* y = make("RMSNormalization", {node.input(0), node.input(1)}, {{"epsilon", n.f("epsilon")}});
  Value* gate = node.input(2);
  if (activation == "silu" || activation == "swish") {
    gate = make("Swish", {gate});
  } else if (activation == "sigmoid") {
    gate = make("Sigmoid", {gate});
  } else if (activation != "none") {
    edit.cannot("the activation '{}' is not known", activation);
  }
  return edit.replace_with({make("Mul", {y, gate})});
}

constexpr OnnxOp kMsNormOnnx[] = {
    with(nonstandard_row(
             "SimplifiedLayerNormalization(T X, V scale, *, int axis=-1, float epsilon=1e-05, int stash_type=1) "
             "-> (V Y, U? inv_std_var)",
             expand_simplified),
         {.sizes = sizes_of_last_axis}),
    expanded_row("com.microsoft::SimplifiedLayerNormalization(T X, V scale, *, int axis=-1, float epsilon=1e-05, "
                 "int stash_type=1) -> (V Y, U? inv_std_var)",
                 expand_simplified),
    expanded_row("com.microsoft::LayerNormalization(T X, T Scale, T? B, *, int axis=-1, float epsilon=1e-05, "
                 "int stash_type=1) -> (T Y, U? Mean, U? InvStdDev)",
                 expand_layer_norm),
    expanded_row(
        "com.microsoft::SkipLayerNormalization(T input, T skip, T gamma, T? beta, T? bias, *, float epsilon=1e-12) "
        "-> (T output, U? mean, U? inv_std_var, T? input_skip_bias_sum)",
        expand_skip_layer_norm),
    expanded_row(
        "com.microsoft::SkipSimplifiedLayerNormalization(T input, T skip, T gamma, T? bias, *, float epsilon=1e-12) "
        "-> (T output, U? mean, U? inv_std_var, T? input_skip_bias_sum)",
        expand_skip_simplified),
    expanded_row("com.microsoft::EmbedLayerNormalization(T1 input_ids, T1? segment_ids, T word_embedding, "
                 "T position_embedding, T? segment_embedding, T gamma, T beta, T1? mask, T1? position_ids, *, "
                 "float epsilon=1e-12, int? mask_index_type) -> (T output, T1? mask_index, T? embedding_sum)",
                 expand_embed_layer_norm),
    expanded_row(
        "com.microsoft::QEmbedLayerNormalization(T1 input_ids, T1? segment_ids, T2 word_embedding_quant, "
        "T2 position_embedding_quant, T2? segment_embedding, T2 gamma_quant, T2 beta_quant, T1? mask, "
        "T word_embedding_scale, T position_embedding_scale, T? segment_embedding_scale, T gamma_scale, T beta_scale, "
        "T2 word_embedding_zero_point, T2 position_embedding_zero_point, T2? segment_embedding_zero_point, "
        "T2 gamma_zero_point, T2 beta_zero_point, *, float epsilon=1e-12) -> (T layernorm_out, T1 mask_index_out)",
        expand_quantized_embedding),
    expanded_row(
        "com.microsoft::GroupNorm(T X, M gamma, M beta, *, int activation, int channels_last=1, float epsilon=1e-05, "
        "int groups) -> T Y",
        expand_group_norm),
    expanded_row(
        "com.microsoft::SkipGroupNorm(T X, M gamma, M beta, T skip, T? bias, *, int activation, int channels_last=1, "
        "float epsilon=1e-05, int groups) -> (T Y, T? S)",
        expand_skip_group_norm),
    expanded_row(
        "com.microsoft::GatedRMSNorm(T X, T scale, T gate, *, str activation=\"silu\", float epsilon=1e-05) -> T Y",
        expand_gated_rms_norm),
};

}  // namespace

extern const OpFamily kMsNormOps;
constinit const OpFamily kMsNormOps{"ms_norm", kMsNormOnnx, {}};

}  // namespace tonnx
