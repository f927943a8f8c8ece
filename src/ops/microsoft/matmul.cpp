// matmul.cpp - products and convolutions of com.microsoft with what ONNX Runtime fuses into them.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/frame/size_node.h"
#include "ops/microsoft/row.h"

namespace tonnx {
namespace {

/// The attributes of this node that the standard's operator has as well.
std::vector<Attribute> attributes_but(const Node& node, std::initializer_list<std::string_view> dropped) {
  std::vector<Attribute> kept;
  for (const Attribute& attribute : node.attributes) {
    if (std::find(dropped.begin(), dropped.end(), attribute.name) == dropped.end()) kept.push_back(attribute);
  }
  return kept;
}

std::vector<Value*> present(const Node& node, std::initializer_list<size_t> inputs) {
  std::vector<Value*> values;
  for (const size_t i : inputs) {
    if (node.input(i) != nullptr) values.push_back(node.input(i));
  }
  return values;
}

/// `params` are in the order in which the activation has its attributes.
Value* activated(Expansion& make, Value* x, const std::string& name, const std::vector<double>& params, DType dtype) {
  const auto with = [&](std::initializer_list<const char*> names) {
    std::vector<Attribute> attributes;
    size_t at = 0;
    for (const char* each : names) {
      if (at < params.size()) attributes.push_back({each, params[at]});
      ++at;
    }
    return make(name, {x}, attributes);
  };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus" || name == "Softsign" ||
      name == "Gelu" || name == "HardSwish")
    return make(name, {x});
  if (name == "LeakyRelu" || name == "Elu" || name == "ThresholdedRelu") return with({"alpha"});
  if (name == "HardSigmoid") return with({"alpha", "beta"});
  if (name == "Selu") return with({"alpha", "gamma"});
  if (name == "Clip" && params.size() >= 2) {
    return make("Clip", {x, make.number(dtype, params[0]), make.number(dtype, params[1])});
  }
  fail_unsupported("the activation '{}' is not known", name);
}

std::string activation_of(const NodeView& n) { return n.has("activation") ? n.s("activation") : ""; }

Value* fused_conv(const NodeView& n, Expansion& make, Value* x, Value* weight) {
  const Node& node = n.node();
  std::vector<Value*> inputs{x, weight};
  if (node.input(2) != nullptr) inputs.push_back(node.input(2));
  return make("Conv", inputs, attributes_but(node, {"activation", "activation_params"}));
}

bool expand_fused_conv(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  Value* y = fused_conv(n, make, node.input(0), node.input(1));
  if (node.input(3) != nullptr) y = make("Add", {y, node.input(3)});
  const auto params = n.find_floats("activation_params").value_or(std::vector<double>{});
  return edit.replace_with({activated(make, y, activation_of(n), params, n.dtype("X"))});
}

/// The channels are the last dimension, of the weight as well.
bool expand_nhwc_conv(const NodeView& n, OnnxEdit& edit) {
  const int64_t rank = n.rank("X");
  require(rank >= 3 && rank <= 5, "the input has {} dimensions", rank);
  std::vector<int64_t> to_front{0, rank - 1}, to_back{0};
  for (int64_t d = 1; d < rank - 1; ++d) to_front.push_back(d);
  for (int64_t d = 2; d < rank; ++d) to_back.push_back(d);
  to_back.push_back(1);
  Expansion make(edit);
  const Node& node = n.node();
  Value* weight = make.transpose(node.input(1), to_front);
  Value* y = make.transpose(fused_conv(n, make, make.transpose(node.input(0), to_front), weight), to_back);
  if (n.entry().signature.name == "NhwcConv") return edit.replace_with({y});
  if (node.input(3) != nullptr) y = make("Add", {y, node.input(3)});
  const auto params = n.find_floats("activation_params").value_or(std::vector<double>{});
  return edit.replace_with({activated(make, y, activation_of(n), params, n.dtype("X"))});
}

/// The last two dimensions swapped, where asked; with `batch` the first dimension is the rows, and those of the batch
/// follow it.
Value* transposed(const NodeView& n, Expansion& make, const char* input, bool swap, bool batch) {
  Value* x = n.node().input(input == std::string_view("A") ? 0 : 1);
  if (!swap && !batch) return x;
  const int64_t rank = n.rank(input);
  if (rank < 2) return x;  // a vector has nothing to swap
  std::vector<int64_t> order;
  for (int64_t d = 0; d < rank; ++d) order.push_back(d);
  if (batch && rank >= 3) {
    order.erase(order.begin());
    order.insert(order.end() - 1, 0);
  }
  if (swap) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return make.transpose(x, order);
}

Value* product(const NodeView& n, Expansion& make, bool has_batch) {
  Value* a = transposed(n, make, "A", n.flag("transA"), has_batch && n.flag("transBatchA"));
  Value* b = transposed(n, make, "B", n.flag("transB"), has_batch && n.flag("transBatchB"));
  Value* y = make("MatMul", {a, b});
  return n.f("alpha") == 1.0 ? y : make("Mul", {y, make.number(n.dtype("A"), n.f("alpha"))});
}

bool expand_fused_mat_mul(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  return edit.replace_with({product(n, make, true)});
}

bool expand_transpose_mat_mul(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  return edit.replace_with({product(n, make, false)});
}

std::vector<double> activation_numbers(const NodeView& n, const std::string& activation) {
  std::vector<double> numbers;
  if (const auto alpha = n.find_f("activation_alpha")) numbers.push_back(*alpha);
  const char* second = activation == "Selu" ? "activation_gamma" : "activation_beta";
  if (const auto other = n.find_f(second); other && !numbers.empty()) numbers.push_back(*other);
  return numbers;
}

bool expand_fused_mat_mul_activation(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const std::string name = n.s("activation");
  Value* y = product(n, make, true);
  if (name == "Softmax") {
    return edit.replace_with({make("Softmax", {y}, {{"axis", n.find_i("activation_axis").value_or(-1)}})});
  }
  return edit.replace_with({activated(make, y, name, activation_numbers(n, name), n.dtype("A"))});
}

bool expand_fused_gemm(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  const std::string name = activation_of(n);
  const auto attributes =
      attributes_but(node, {"activation", "activation_alpha", "activation_beta", "activation_gamma"});
  Value* y = make("Gemm", present(node, {0, 1, 2}), attributes);
  return edit.replace_with({activated(make, y, name, activation_numbers(n, name), n.dtype("A"))});
}

bool expand_gemm_fast_gelu(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  Value* y = make("MatMul", {node.input(0), node.input(1)});
  if (node.input(2) != nullptr) y = make("Add", {y, node.input(2)});
  return edit.replace_with({make("Gelu", {y}, {{"approximate", std::string("tanh")}})});
}

/// The pads are an input; where they are constant they are the attribute that ConvTranspose has.
bool expand_conv_transpose(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const Node& node = n.node();
  auto attributes = attributes_but(node, {});
  if (node.input(2) != nullptr) {
    const auto pads = n.find_const_ints("Pads");
    if (!pads) edit.cannot("its pads are not constant");
    attributes.push_back({"pads", *pads, AttrType::Ints});
  }
  return edit.replace_with({make("ConvTranspose", present(node, {0, 1, 3}), attributes)});
}

#define TONNX_CONV                                                                                       \
  "str auto_pad=\"NOTSET\", ints? dilations, int group=1, ints? kernel_shape, ints? pads, ints? strides" \
  ") -> T Y"

constexpr OnnxOp kMsMatMulOnnx[] = {
    with(
        expanded_row(
            "com.microsoft::FusedConv(T X, T W, T? B, T? Z, *, str? activation, floats? activation_params, " TONNX_CONV,
            expand_fused_conv),
        {.traits = kSumsProducts, .sizes = sizes_of_conv<1>}),
    with(expanded_row("com.microsoft::NhwcConv(T X, T W, T? B, *, " TONNX_CONV, expand_nhwc_conv),
         {.traits = kSumsProducts}),
    with(expanded_row("com.microsoft::NhwcFusedConv(T X, T W, T? B, T? Z, *, str? activation, floats? "
                      "activation_params, " TONNX_CONV,
                      expand_nhwc_conv),
         {.traits = kSumsProducts}),
    with(expanded_row(
             "com.microsoft::FusedMatMul(T A, T B, *, float alpha=1.0, int transA=0, int transB=0, int transBatchA=0, "
             "int transBatchB=0) -> T Y",
             expand_fused_mat_mul),
         {.traits = kSumsProducts, .sizes = sizes_of_gemm<1>}),
    with(expanded_row(
             "com.microsoft::FusedMatMulActivation(T A, T B, *, str activation, float? activation_alpha, "
             "int? activation_axis, float? activation_beta, float? activation_gamma, float alpha=1.0, int transA=0, "
             "int transB=0, int transBatchA=0, int transBatchB=0) -> T Y",
             expand_fused_mat_mul_activation),
         {.traits = kSumsProducts, .sizes = sizes_of_gemm<1>}),
    with(expanded_row("com.microsoft::TransposeMatMul(T A, T B, *, float alpha=1.0, int transA=0, int transB=0) -> T Y",
                      expand_transpose_mat_mul),
         {.traits = kSumsProducts, .sizes = sizes_of_gemm<1>}),
    with(expanded_row("com.microsoft::FusedGemm(T A, T B, T? C, *, str? activation, float? activation_alpha, "
                      "float? activation_beta, float? activation_gamma, float alpha=1.0, float beta=1.0, int transA=0, "
                      "int transB=0) -> T Y",
                      expand_fused_gemm),
         {.traits = kSumsProducts, .sizes = sizes_of_gemm<1>}),
    with(expanded_row("com.microsoft::GemmFastGelu(T X, T W, T? bias) -> T Y", expand_gemm_fast_gelu),
         {.traits = kSumsProducts, .sizes = sizes_of_product<1>}),
    with(
        expanded_row("com.microsoft::ConvTransposeWithDynamicPads(T X, T W, tensor(int64)? Pads, T? B, *, "
                     "str auto_pad=\"NOTSET\", ints? dilations, int group=1, ints? kernel_shape, ints? output_padding, "
                     "ints? strides) -> T Y",
                     expand_conv_transpose),
        {.traits = kSumsProducts}),
};

}  // namespace

extern const OpFamily kMsMatMulOps;
constinit const OpFamily kMsMatMulOps{"ms_matmul", kMsMatMulOnnx, {}};

}  // namespace tonnx
