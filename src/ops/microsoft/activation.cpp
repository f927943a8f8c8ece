// activation.cpp - activations of com.microsoft, alone and behind a bias, and those that the first ONNX files have.
#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/microsoft/row.h"

namespace tonnx {
namespace {

bool expand_gelu(const NodeView& n, OnnxEdit& edit) {
  return edit.replace_with({edit.before("Gelu", {n.node().input(0)})});
}

Value* with_bias(Expansion& make, const Node& node) {
  return node.input(1) ? make("Add", {node.input(0), node.input(1)}) : node.input(0);
}

bool expand_fast_gelu(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  return edit.replace_with({make("Gelu", {with_bias(make, n.node())}, {{"approximate", std::string("tanh")}})});
}

bool expand_bias_gelu(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  return edit.replace_with({make("Gelu", {with_bias(make, n.node())})});
}

bool expand_quick_gelu(const NodeView& n, OnnxEdit& edit) {
  return edit.replace_with({edit.before("Swish", {n.node().input(0)}, {{"alpha", n.f("alpha")}})});
}

bool expand_bias_add(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  return edit.replace_with({make("Add", {with_bias(make, n.node()), n.node().input(2)})});
}

/// The left half times Gelu of the right one.
bool expand_bias_split_gelu(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const auto halves =
      make.all(2, "Split", {with_bias(make, n.node())}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}});
  return edit.replace_with({make("Mul", {halves[0], make("Gelu", {halves[1]})})});
}

/// All behind the axis is one row. The bias has the leading dimensions of the data, and then ones up to the axis, or
/// ones in front, which makes it fit by itself.
bool expand_bias_softmax(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  n.i("is_inner_broadcast");
  Value* sum = with_bias(make, n.node());
  const int64_t axis = n.axis("axis", "data");
  if (axis == n.rank("data") - 1) return edit.replace_with({make("Softmax", {sum})});
  Value* flat = make("Softmax", {make("Flatten", {sum}, {{"axis", axis}})});
  return edit.replace_with({make("Reshape", {flat, make("Shape", {n.node().input(0)})})});
}

bool expand_bias_dropout(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  std::vector<Value*> inputs{with_bias(make, node)};
  if (node.input(3) || node.input(4)) inputs.push_back(node.input(3));
  if (node.input(4)) inputs.push_back(node.input(4));
  std::vector<Attribute> attributes;
  if (const auto seed = n.find_i("seed")) attributes.push_back({"seed", *seed});
  const auto dropped = make.all(n.wants_output(1) ? 2 : 1, "Dropout", inputs, attributes);
  Value* y = node.input(2) ? make("Add", {dropped[0], node.input(2)}) : dropped[0];
  return edit.replace_with({y, dropped.size() > 1 ? dropped[1] : nullptr});
}

/// alpha * x + beta
bool expand_affine(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const DType dtype = n.dtype("X");
  Value* y = make("Mul", {n.node().input(0), make.number(dtype, n.f("alpha"))});
  return edit.replace_with({make("Add", {y, make.number(dtype, n.f("beta"))})});
}

bool expand_scale(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  return edit.replace_with({make("Mul", {n.node().input(0), make.number(n.dtype("input"), n.f("scale"))})});
}

/// alpha * tanh(beta * x)
bool expand_scaled_tanh(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const DType dtype = n.dtype("input");
  Value* inner = make("Mul", {n.node().input(0), make.number(dtype, n.find_f("beta").value_or(1.0))});
  Value* y = make("Mul", {make("Tanh", {inner}), make.number(dtype, n.find_f("alpha").value_or(1.0))});
  return edit.replace_with({y});
}

/// alpha * softplus(beta * x)
bool expand_parametric_softplus(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const DType dtype = n.dtype("X");
  Value* inner = make("Mul", {n.node().input(0), make.number(dtype, n.find_f("beta").value_or(1.0))});
  Value* y = make("Mul", {make("Softplus", {inner}), make.number(dtype, n.find_f("alpha").value_or(1.0))});
  return edit.replace_with({y});
}

/// scale * x, plus one number for each channel
bool expand_image_scaler(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const DType dtype = n.dtype("input");
  Value* y = n.node().input(0);
  if (n.f("scale") != 1.0) y = make("Mul", {y, make.number(dtype, n.f("scale"))});
  if (const auto bias = n.find_floats("bias")) {
    const auto count = static_cast<int64_t>(bias->size());
    y = make("Add", {y, make.numbers(dtype, {1, count, 1, 1}, *bias)});
  }
  return edit.replace_with({y});
}

constexpr OnnxOp kMsActivationOnnx[] = {
    expanded_row("com.microsoft::Gelu(T X) -> T Y", expand_gelu),
    expanded_row("com.microsoft::FastGelu(T X, T? bias) -> T Y", expand_fast_gelu),
    expanded_row("com.microsoft::QuickGelu(T X, *, float alpha=1.702) -> T Y", expand_quick_gelu),
    expanded_row("com.microsoft::BiasGelu(T A, T B) -> T C", expand_bias_gelu),
    expanded_row("com.microsoft::BiasAdd(T X, T bias, T skip) -> T Y", expand_bias_add),
    expanded_row("com.microsoft::BiasSplitGelu(T X, T bias) -> T Y", expand_bias_split_gelu),
    expanded_row("com.microsoft::BiasSoftmax(T data, T bias, *, int axis=1, int is_inner_broadcast) -> T output",
                 expand_bias_softmax),
    expanded_row("com.microsoft::BiasDropout(T data, T bias, T? residual, T1? ratio, T2? training_mode, *, int? seed) "
                 "-> (T output, T2? mask)",
                 expand_bias_dropout),
    nonstandard_row("Affine(T X, *, float alpha=1.0, float beta=0.0) -> T Y", expand_affine),
    nonstandard_row("Scale(T input, *, float scale=1.0) -> T output", expand_scale),
    nonstandard_row("ScaledTanh(T input, *, float? alpha, float? beta) -> T output", expand_scaled_tanh),
    nonstandard_row("ParametricSoftplus(T X, *, float? alpha, float? beta) -> T Y", expand_parametric_softplus),
    nonstandard_row("ImageScaler(T input, *, floats? bias, float scale=1.0) -> T output", expand_image_scaler),
};

}  // namespace

extern const OpFamily kMsActivationOps;
constinit const OpFamily kMsActivationOps{"ms_activation", kMsActivationOnnx, {}};

}  // namespace tonnx
