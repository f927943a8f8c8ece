// integer_products.cpp - ONNX: products of quantised numbers that are computed as floats become those of integers.
#include <algorithm>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"
#include "passes/recognise/onnx/quantized.h"

namespace tonnx {
namespace {

constexpr double kSpan = 255;  // by how much two numbers of 8 bits differ at most
constexpr double kExactInFloat32 = 0x1p24, kExactInInt32 = 0x1p31;
constexpr int64_t kMostWeights = int64_t{1} << 31;

/// Constant weights that are whole numbers, in 8 bits.
struct WeightSums {
  TensorPtr tensor;
  int64_t zero_point = 0;
  double largest_sum = 0;  // of the positive, or the negative, weights that are multiplied for one result
};

/// How the weights of one result lie: of each row of `inner` numbers one belongs to each of `inner` results, or all of
/// `terms` numbers in a row to one.
struct Layout {
  int64_t terms, inner;
};
std::optional<Layout> layout_of(const Node& product, const Tensor& weights) {
  const std::vector<int64_t> dims(weights.dims.begin(), weights.dims.end());
  if (dims.size() < 2 || weights.count() == 0 || weights.count() > kMostWeights) return std::nullopt;
  if (is_onnx(product, kMatMul)) return Layout{dims[dims.size() - 2], dims.back()};
  return Layout{weights.count() / dims[0], 1};
}

std::optional<WeightSums> weights_of(const Node& product, const Value* value, bool is_unsigned) {
  if (value == nullptr || !value->constant || value->sparse || !is_float(value->constant->dtype)) return std::nullopt;
  const Tensor& tensor = *value->constant;
  const auto layout = layout_of(product, tensor);
  if (!layout) return std::nullopt;
  const int64_t count = tensor.count();
  double low = 0, high = 0;
  std::vector<double> above(static_cast<size_t>(layout->inner)), below(above);
  WeightSums result;
  for (int64_t i = 0; i < count; ++i) {
    const double number = element_as_double(tensor, i);
    if (!(std::floor(number) == number && std::abs(number) <= kSpan)) return std::nullopt;
    low = std::min(low, number);
    high = std::max(high, number);
    const auto at = static_cast<size_t>(i % layout->inner);
    (number > 0 ? above : below)[at] += std::abs(number);
    if ((i / layout->inner + 1) % layout->terms != 0) continue;
    result.largest_sum = std::max({result.largest_sum, above[at], below[at]});
    above[at] = below[at] = 0;
  }
  const bool is_signed = low >= -128 && high <= 127 && !is_unsigned;
  if (!is_signed) result.zero_point = low >= -128 && high <= 127 ? 128 : static_cast<int64_t>(-low);
  if (high + static_cast<double>(result.zero_point) > (is_signed ? 127 : kSpan)) return std::nullopt;
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<int64_t>(element_as_double(tensor, i)) + result.zero_point;
    bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(number);
  }
  auto made = std::make_shared<Tensor>();
  made->dtype = is_signed ? DType::Int8 : DType::UInt8;
  made->dims = tensor.dims;
  made->data = Bytes::own(std::move(bytes));
  result.tensor = std::move(made);
  return result;
}

/// A product of floats that stand for quantised numbers.
struct IntProduct {
  Centered x;
  WeightSums weights;
};
std::optional<IntProduct> as_product(const Node* node, bool is_unsigned, double more = 0) {
  if (!is_onnx(node, kMatMul) && !is_onnx(node, kConv)) return std::nullopt;
  const auto x = as_centered(node->input(0));
  if (!x || x->x->constant) return std::nullopt;
  auto weights = weights_of(*node, node->input(1), is_unsigned);
  if (!weights) return std::nullopt;
  const double limit = node->output(0)->type.dtype == DType::Float32 ? kExactInFloat32 : kExactInInt32;
  if (kSpan * weights->largest_sum + more >= limit) return std::nullopt;
  return IntProduct{*x, std::move(*weights)};
}

std::vector<Attribute> window_of(const Node& node) {
  std::vector<Attribute> result;
  for (const Attribute& attribute : node.attributes) {
    if (is_onnx(node, kConv)) result.push_back(attribute);
  }
  return result;
}

/// The bias of a convolution as 32 bits: null where there is none, nothing where it is not made of whole numbers.
std::optional<TensorPtr> bias_of(const Node& conv) {
  const Value* bias = is_onnx(conv, kConv) ? conv.input(2) : nullptr;
  if (bias == nullptr) return TensorPtr();
  const auto numbers = bias->constant && !bias->sparse ? floats_of(*bias->constant, kMostWeights) : std::nullopt;
  if (!numbers) return std::nullopt;
  const bool fits = std::all_of(numbers->begin(), numbers->end(), [](double number) {
    return std::floor(number) == number && std::abs(number) < kExactInInt32;
  });
  return fits ? std::optional(make_floats(DType::Int32, bias->constant->dims, *numbers)) : std::nullopt;
}

/// 1. QuantizeLinear(scale * product): QLinearMatMul, QLinearConv
bool find_qlinear(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kQuantize) || node.input(2) == nullptr || uniform_value(node.input(1)) == std::nullopt ||
      node.input(1)->type.rank() != 0 || int_of(node, "block_size").value_or(0) != 0)
    return false;
  const Node* scaled = made_by(node.input(0), kMul);
  for (const size_t i : {0, 1}) {
    const Value* sum = scaled ? scaled->input(i) : nullptr;
    if (sum == nullptr || !have_same_type(sum, scaled->output(0))) continue;
    const auto rank = *sum->type.rank();
    const auto scale = as_spread(scaled->input(1 - i), rank);
    if (const Node* cast = made_by(sum, kCast)) sum = cast->input(0);
    const Node* product = scale && only_user(sum) ? sum->producer : nullptr;
    if (!is_onnx(product, kMatMul) && !is_onnx(product, kConv)) continue;
    const bool is_conv = is_onnx(product, kConv);
    if (scale->axis && *scale->axis != (is_conv ? 1 : rank - 1)) continue;
    const auto bias = bias_of(*product);
    if (!bias) continue;
    double largest = 0;
    for (int64_t k = 0; *bias && k < (*bias)->count(); ++k)
      largest = std::max(largest, std::abs(element_as_double(**bias, k)));
    const auto found = as_product(product, false, largest);
    const DType out = node.output(0)->type.dtype;
    if (!found || found->x.x->type.dtype != out) continue;
    if (out == DType::Int8 && found->weights.tensor->dtype != DType::Int8) continue;
    Graph& graph = *node.graph;
    const Value* weight = product->input(1);
    const Spread one{{1}, {}};
    const bool is_spread = scale->axis.has_value();
    NewNode made{.op = is_conv ? "QLinearConv" : "QLinearMatMul", .attributes = window_of(*product)};
    made.inputs = {
        found->x.x,
        spread_constant(rewriter, graph, is_spread ? one : *scale, "x_scale"),
        found->x.input(rewriter, graph, true),
        rewriter.constant(graph, found->weights.tensor, weight->name),
        spread_constant(rewriter, graph, is_spread ? *scale : one, "w_scale"),
        number_constant(rewriter, graph, found->weights.tensor->dtype, static_cast<double>(found->weights.zero_point),
                        "w_zero_point"),
        node.input(1),
        node.input(2),
    };
    if (*bias) made.inputs.push_back(rewriter.constant(graph, *bias, product->input(2)->name));
    Value* y = rewriter.add(node, std::move(made), node.output(0)->name);
    if (y != nullptr && rewriter.replace(node.output(0), y)) return true;
  }
  return false;
}

/// Whether somebody quantised these numbers: pixels are numbers of 8 bits too, and are filtered as floats.
bool is_quantised(const Centered& x) {
  return x.zero_point != nullptr || x.number != 0 || producer_with(x.x, kQuantizes) != nullptr;
}

/// 2. Products of numbers of 8 bits as floats, without a bias: MatMulInteger, ConvInteger
bool find_integer_product(Node& node, Rewriter& rewriter) {
  const bool is_conv = is_onnx(node, kConv);
  if (is_conv && node.input(2) != nullptr) return false;
  const auto found = as_product(&node, is_conv);  // ONNX Runtime convolves unsigned numbers only
  if (!found || !is_quantised(found->x) || (is_conv && found->x.x->type.dtype != DType::UInt8)) return false;
  Graph& graph = *node.graph;
  const WeightSums& weights = found->weights;
  NewNode made{.op = is_conv ? "ConvInteger" : "MatMulInteger", .attributes = window_of(node)};
  made.inputs = {found->x.x, rewriter.constant(graph, weights.tensor, node.input(1)->name)};
  const bool has_zero = weights.zero_point != 0;
  if (Value* zero = found->x.input(rewriter, graph, has_zero)) made.inputs.push_back(zero);
  if (has_zero)
    made.inputs.push_back(number_constant(rewriter, graph, weights.tensor->dtype,
                                          static_cast<double>(weights.zero_point), "w_zero_point"));
  Value* sums = rewriter.add(node, std::move(made), node.output(0)->name);
  return sums != nullptr && become_integers(node.output(0), sums, rewriter, node);
}

}  // namespace

bool recognise_qlinear(Node& node, Rewriter& rewriter) { return find_qlinear(node, rewriter); }

bool recognise_integer_products(Node& node, Rewriter& rewriter) { return find_integer_product(node, rewriter); }

}  // namespace tonnx
