// layer_norm.cpp - ONNX: means and quotients that are a normalised layer become it.
#include <algorithm>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"
#include "passes/recognise/onnx/norms.h"

namespace tonnx {
namespace {

/// The first of the axes, where they are the last ones of the tensor.
std::optional<int64_t> first_trailing_axis(const Reduced& reduced) {
  const auto rank = *reduced.of->type.rank();
  const auto count = static_cast<int64_t>(reduced.axes.size());
  return count > 0 && reduced.keeps_dims && reduced.axes.front() == rank - count ? std::optional(reduced.axes.front())
                                                                                 : std::nullopt;
}

/// What is divided by the root of something: a / sqrt(b), a * (1 / sqrt(b)), a * b ^ -0.5.
struct Quotient {
  Value *above, *under;
};
std::optional<Quotient> find_quotient(const Node& node) {
  if (is_onnx(node, kDiv)) {
    Value* under = operand_of(node.input(1), kSqrt);
    if (under == nullptr) {
      const Node* power = made_by(node.input(1), kPow);
      under = power && uniform_value(power->input(1)) == 0.5 ? power->input(0) : nullptr;
    }
    return under ? std::optional(Quotient{node.input(0), under}) : std::nullopt;
  }
  if (!is_onnx(node, kMul)) return std::nullopt;
  for (const size_t i : {0, 1}) {
    const Value* inverse = node.input(1 - i);
    Value* under = operand_of(operand_of(inverse, kReciprocal), kSqrt);
    if (const Node* power = made_by(inverse, kPow); power && uniform_value(power->input(1)) == -0.5)
      under = power->input(0);
    if (const Node* quotient = made_by(inverse, kDiv); quotient && uniform_value(quotient->input(0)) == 1.0)
      under = operand_of(quotient->input(1), kSqrt);
    if (under != nullptr && node.input(i) != nullptr) return Quotient{node.input(i), under};
  }
  return std::nullopt;
}

/// mean(square) + epsilon over the last axes
struct MeanSquare {
  Value* of;
  const Node* square;
  int64_t axis;
  double epsilon;
};
std::optional<MeanSquare> find_mean_square(const Value* value) {
  const auto sum = as_shifted(value);
  if (!sum || !(sum->number >= 0) || !std::isfinite(sum->number)) return std::nullopt;
  const auto mean = as_reduced(made_by(sum->of, kReduceMean), kReduceMean);
  const auto axis = mean ? first_trailing_axis(*mean) : std::nullopt;
  Value* of = axis ? as_square(mean->of) : nullptr;
  return of ? std::optional(MeanSquare{of, mean->of->producer, *axis, sum->number}) : std::nullopt;
}

/// x - mean(x): x. It may be there twice.
Value* find_centred(const Value* value, int64_t axis) {
  const Node* difference = producer_of(value, kSub);
  if (difference == nullptr) return nullptr;
  const Value* mean_value = difference->input(1);
  const auto mean = mean_value ? as_reduced(mean_value->producer, kReduceMean) : std::nullopt;
  if (!mean || mean->of != difference->input(0) || first_trailing_axis(*mean) != axis) return nullptr;
  return difference->input(0);
}

/// Whether a value is used by these nodes only.
bool is_only_for(const Value* value, const Node* first, const Node* second) {
  return std::all_of(value->uses.begin(), value->uses.end(),
                     [&](const Use& use) { return use.user != nullptr && (use.user == first || use.user == second); });
}

}  // namespace

std::optional<Normalised> find_normalised(const Node& node) {
  const auto quotient = find_quotient(node);
  const auto variance = quotient ? find_mean_square(quotient->under) : std::nullopt;
  if (!variance) return std::nullopt;
  Value* x = find_centred(quotient->above, variance->axis);
  if (x == nullptr || find_centred(variance->of, variance->axis) != x) return std::nullopt;
  if (!is_only_for(quotient->above, &node, variance->square) || !is_only_for(variance->of, &node, variance->square))
    return std::nullopt;
  return Normalised{x, variance->axis, variance->epsilon};
}

std::optional<Affine> find_affine(const Node& node, Symbol op, Symbol norm_op) {
  if (!is_onnx(node, op)) return std::nullopt;
  for (const size_t i : {0, 1}) {
    Node* norm = made_by(node.input(i), norm_op);
    if (norm != nullptr && norm->outputs().size() == 1 && have_same_type(node.input(i), node.output(0)))
      return Affine{norm, node.input(1 - i)};
  }
  return std::nullopt;
}

namespace {

/// A constant of ones with the sizes of the last axes; null where these are not known or large.
Value* ones(const Value* x, int64_t axis, Node& node, Rewriter& rewriter) {
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (size_t i = static_cast<size_t>(axis); i < x->type.shape->size(); ++i) {
    const auto size = (*x->type.shape)[i].constant();
    if (!size || *size < 1 || *size > (1 << 20) || (count *= *size) > (1 << 20)) return nullptr;
    dims.push_back(*size);
  }
  const std::vector<double> numbers(static_cast<size_t>(count), 1.0);
  return rewriter.constant(*node.graph, make_floats(x->type.dtype, dims, numbers), "scale");
}

bool become(Node& node, Rewriter& rewriter, const char* op, const Normalised& found) {
  Value* x = found.x;
  if (!rewriter.has_op(op) || !have_same_type(x, node.output(0))) return false;
  Value* scale = ones(x, found.axis, node, rewriter);
  if (scale == nullptr) return false;
  NewNode norm{.op = op, .inputs = {x, scale}};
  const int64_t from_back = found.axis - *x->type.rank();
  if (from_back != -1) norm.attributes.push_back({"axis", from_back, AttrType::None, {}, {}});
  norm.attributes.push_back({"epsilon", found.epsilon, AttrType::None, {}, {}});
  Value* made = rewriter.add(node, std::move(norm), node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

/// How a constant lies on the last axes of a normalised tensor: the same sizes, and only ones in front of them.
bool lies_on_last(const Value* constant, const Value* scale) {
  if (constant == nullptr || !constant->constant || constant->sparse || constant->producer) return false;
  if (constant->constant->dtype != scale->constant->dtype) return false;
  const auto &dims = constant->constant->dims, &wanted = scale->constant->dims;
  return dims == wanted;
}

bool is_one(const Value* value) { return uniform_value(value) == 1.0; }

bool replace_with_norm(Node& norm, Node& node, std::vector<Value*> inputs, Rewriter& rewriter) {
  Value* made = rewriter.add(node, {.op = norm.op.view(), .inputs = std::move(inputs), .attributes = norm.attributes},
                             node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

/// The product of a normalisation that has no scale yet with a constant for its last axes.
bool take_scale(Node& node, Symbol norm_op, Rewriter& rewriter) {
  const auto product = find_affine(node, kMul, norm_op);
  if (!product || !is_one(product->norm->input(1)) || product->norm->input(2)) return false;
  if (!lies_on_last(product->constant, product->norm->input(1))) return false;
  return replace_with_norm(*product->norm, node, {product->norm->input(0), product->constant}, rewriter);
}

}  // namespace

bool recognise_layer_norm(Node& node, Rewriter& rewriter) {
  if (node.outputs().size() != 1 || !rewriter.has_op("LayerNormalization")) return false;
  // 1. (x - mean(x)) / sqrt(mean((x - mean(x)) ^ 2) + epsilon): LayerNormalization(x, 1)
  const auto found = find_normalised(node);
  if (found && found->x->type.dtype == DType::Float32 && become(node, rewriter, "LayerNormalization", *found))
    return true;
  // 2. LayerNormalization(x, 1) * scale
  if (take_scale(node, kLayerNormalization, rewriter)) return true;
  // 3. LayerNormalization(x, scale) + bias
  const auto sum = find_affine(node, kAdd, kLayerNormalization);
  if (!sum || sum->norm->input(2) || !lies_on_last(sum->constant, sum->norm->input(1))) return false;
  return replace_with_norm(*sum->norm, node, {sum->norm->input(0), sum->norm->input(1), sum->constant}, rewriter);
}

bool recognise_rms_norm(Node& node, Rewriter& rewriter) {
  if (node.outputs().size() != 1 || !rewriter.has_op("RMSNormalization")) return false;
  // 1. x / sqrt(mean(x ^ 2) + epsilon): RMSNormalization(x, 1)
  if (const auto quotient = find_quotient(node)) {
    const auto square = find_mean_square(quotient->under);
    if (square && square->of == quotient->above && square->of->type.dtype == DType::Float32 &&
        become(node, rewriter, "RMSNormalization", {square->of, square->axis, square->epsilon}))
      return true;
  }
  // 2. RMSNormalization(x, 1) * scale
  return take_scale(node, kRmsNormalization, rewriter);
}

}  // namespace tonnx
