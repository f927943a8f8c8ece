// activations.cpp - ONNX: products and sums that are an activation become it.
#include "passes/frame/onnx_match.h"
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

constexpr double kRootHalf = 0.70710678118654752, kRootTwoByPi = 0.79788456080286536, kCubic = 0.044715;

Attribute number(const char* name, double value) { return {name, value, AttrType::None, {}, {}}; }

bool is_float32(const Value* value) { return value->type.dtype == DType::Float32; }

/// What the last node gives becomes what the activation gives.
bool become(Node& last, Rewriter& rewriter, NewNode made) {
  if (made.inputs[0] == nullptr || !have_same_type(made.inputs[0], last.output(0))) return false;
  Value* value = rewriter.add(last, std::move(made), last.output(0)->name);
  return value != nullptr && rewriter.replace(last.output(0), value);
}

/// node = number * a * b. It may be more than `a` alone before the number makes it smaller: then what is infinite for
/// large numbers would not be in the activation.
struct Product {
  Value *a, *b;
  double number;
  bool may_overflow;
};
std::optional<Product> find_product(const Node& node) {
  Product result{nullptr, nullptr, 1, false};
  const Node* product = &node;
  if (const auto outer = scaled_by(&node)) {
    result.number = outer->number;
    result.may_overflow = true;
    product = made_by(outer->of, kMul);
  }
  if (!is_onnx(product, kMul) || product->input(0) == nullptr || product->input(1) == nullptr) return std::nullopt;
  if (product->input(0)->constant || product->input(1)->constant) return std::nullopt;
  result.a = product->input(0);
  result.b = product->input(1);
  return result;
}

/// 1 + erf(x / sqrt(2))
bool is_erf_part(const Value* value, const Value* x) {
  const auto sum = as_shifted(value);
  return sum && is_near(sum->number, 1, x->type.dtype) && is_scaled(operand_of(sum->of, kErf), x, kRootHalf);
}

/// x * x * x
bool is_cube(const Value* value, const Value* x) {
  if (const Node* power = made_by(value, kPow)) return power->input(0) == x && uniform_value(power->input(1)) == 3.0;
  const Node* product = made_by(value, kMul);
  if (product == nullptr) return false;
  return (product->input(0) == x && as_square(product->input(1)) == x) ||
         (product->input(1) == x && as_square(product->input(0)) == x);
}

/// x + 0.044715 * x ^ 3
bool is_cubic(const Value* value, const Value* x) {
  const Node* sum = made_by(value, kAdd);
  if (sum == nullptr) return false;
  const Value* other = sum->input(0) == x ? sum->input(1) : sum->input(0);
  if (sum->input(0) != x && sum->input(1) != x) return false;
  const auto scaled = as_scaled(other);
  return scaled && is_near(scaled->number, kCubic, x->type.dtype) && is_cube(scaled->of, x);
}

/// x * sqrt(2 / pi) * (1 + 0.044715 * x * x), with the factors in any order
bool is_factored_cubic(const Value* value, const Value* x) {
  const Node* product = made_by(value, kMul);
  if (product == nullptr) return false;
  for (const size_t i : {0, 1}) {
    if (!is_scaled(product->input(i), x, kRootTwoByPi)) continue;
    const auto sum = as_shifted(product->input(1 - i));
    const auto scaled = sum && is_near(sum->number, 1, x->type.dtype) ? as_scaled(sum->of) : std::nullopt;
    if (scaled && is_near(scaled->number, kCubic, x->type.dtype) && as_square(scaled->of) == x) return true;
  }
  return false;
}

/// 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ^ 3))
bool is_tanh_part(const Value* value, const Value* x) {
  const auto sum = as_shifted(value);
  const Value* inside = sum && is_near(sum->number, 1, x->type.dtype) ? operand_of(sum->of, kTanh) : nullptr;
  if (inside == nullptr) return false;
  const auto scaled = as_scaled(inside);
  if (scaled && is_near(scaled->number, kRootTwoByPi, x->type.dtype) && is_cubic(scaled->of, x)) return true;
  return is_factored_cubic(inside, x);
}

/// 1. x * 0.5 * (1 + erf(x / sqrt(2))), x * 0.5 * (1 + tanh(...)): Gelu
bool find_gelu(Node& node, Rewriter& rewriter, Value* x, const Value* part, double scale) {
  if (!is_near(scale, 0.5, x->type.dtype)) return false;
  if (is_erf_part(part, x)) return become(node, rewriter, {.op = "Gelu", .inputs = {x}});
  if (!is_tanh_part(part, x)) return false;
  Attribute how{"approximate", std::string("tanh"), AttrType::None, {}, {}};
  return become(node, rewriter, {.op = "Gelu", .inputs = {x}, .attributes = {how}});
}

/// 2. x * clip(x + 3, 0, 6) / 6, x * HardSigmoid(x, 1 / 6, 0.5): HardSwish
bool find_hard_swish(Node& node, Rewriter& rewriter, Value* x, const Value* part, double scale) {
  const DType dtype = x->type.dtype;
  bool is_found = false;
  if (const Node* gate = made_by(part, kHardSigmoid)) {
    is_found = gate->input(0) == x && scale == 1 && is_near(float_of(*gate, "alpha").value_or(0.2), 1.0 / 6, dtype) &&
               is_near(float_of(*gate, "beta").value_or(0.5), 0.5, dtype);
  } else if (const auto clipped = as_clipped(part)) {
    const auto sum = as_shifted(clipped->first);
    is_found = sum && sum->of == x && sum->number == 3 && clipped->second.low == 0 && clipped->second.high == 6 &&
               is_near(scale, 1.0 / 6, dtype);
  }
  return is_found && become(node, rewriter, {.op = "HardSwish", .inputs = {x}});
}

/// 3. x * tanh(Softplus(x)): Mish
bool find_mish(Node& node, Rewriter& rewriter, Value* x, const Value* part, double scale) {
  const bool is_found = scale == 1 && operand_of(operand_of(part, kTanh), kSoftplus) == x;
  return is_found && become(node, rewriter, {.op = "Mish", .inputs = {x}});
}

/// 4. x * Sigmoid(alpha * x): Swish
bool find_swish(Node& node, Rewriter& rewriter, Value* x, const Value* part, double scale) {
  Value* inside = scale == 1 ? operand_of(part, kSigmoid) : nullptr;
  if (inside == nullptr) return false;
  const WithNumber alpha = inside == x ? WithNumber{x, 1} : as_product(inside);
  if (alpha.of != x) return false;
  NewNode swish{.op = "Swish", .inputs = {x}};
  if (alpha.number != 1) swish.attributes.push_back(number("alpha", alpha.number));
  return become(node, rewriter, std::move(swish));
}

bool find_products(Node& node, Rewriter& rewriter, bool is_loose) {
  const auto product = find_product(node);
  if (!product || product->may_overflow != is_loose) return false;
  for (const bool is_swapped : {false, true}) {
    const WithNumber first = as_product(is_swapped ? product->b : product->a),
                     second = as_product(is_swapped ? product->a : product->b);
    Value* x = first.of;
    const double scale = product->number * first.number * second.number;
    if (find_gelu(node, rewriter, x, second.of, scale) || find_hard_swish(node, rewriter, x, second.of, scale) ||
        find_mish(node, rewriter, x, second.of, scale) || find_swish(node, rewriter, x, second.of, scale))
      return true;
  }
  return false;
}

/// 5. clip(x + b, 0, m) / m, clip(a * x + b, 0, 1): HardSigmoid
bool find_hard_sigmoid(Node& node, Rewriter& rewriter) {
  double scale = 1;
  std::optional<std::pair<Value*, Bounds>> clipped;
  if (const auto scaled = scaled_by(&node)) {
    scale = scaled->number;
    clipped = as_clipped(scaled->of);
  } else if (is_onnx(node, kClip)) {
    const auto low = float_of(node, "min"), high = float_of(node, "max");
    if (low && high) clipped = {node.input(0), Bounds{*low, *high}};
  }
  if (!clipped || clipped->second.low != 0 || !is_float32(node.output(0)) ||
      !is_near(clipped->second.high * scale, 1, DType::Float32))
    return false;
  const auto sum = as_shifted(clipped->first);
  if (!sum) return false;
  const WithNumber x = as_product(sum->of);
  if (!std::isfinite(x.number) || x.number == 0 || !std::isfinite(sum->number)) return false;
  return become(node, rewriter,
                {.op = "HardSigmoid",
                 .inputs = {x.of},
                 .attributes = {number("alpha", x.number * scale), number("beta", sum->number * scale)}});
}

/// 6. max(x, a * x) with 0 < a <= 1: LeakyRelu.  7. max(x, 0), clip(x, 0, inf): Relu
bool find_relu(Node& node, Rewriter& rewriter) {
  if (!is_float32(node.output(0))) return false;
  if (is_onnx(node, kClip) && float_of(node, "min") == 0.0 && float_of(node, "max") == HUGE_VAL)
    return become(node, rewriter, {.op = "Relu", .inputs = {node.input(0)}});
  if (!is_onnx(node, kMax) || node.inputs().size() != 2) return false;
  for (const size_t i : {0, 1}) {
    Value *x = node.input(i), *other = node.input(1 - i);
    if (x == nullptr || x->constant) continue;
    if (uniform_value(other) == 0.0) return become(node, rewriter, {.op = "Relu", .inputs = {x}});
    const auto scaled = as_scaled(other);
    if (!scaled || scaled->of != x || !(scaled->number > 0 && scaled->number <= 1)) continue;
    return become(node, rewriter, {.op = "LeakyRelu", .inputs = {x}, .attributes = {number("alpha", scaled->number)}});
  }
  return false;
}

/// value = k * Relu(-x), or no factor: k as a constant of one number or more
std::optional<std::pair<const Value*, TensorPtr>> as_negative_part(const Value* value) {
  TensorPtr factor = make_scalar(DType::Float32, 1);
  const Value* part = value;
  if (const Node* product = made_by(value, kMul)) {
    const size_t at = product->input(0) != nullptr && product->input(0)->constant ? 0 : 1;
    if (product->input(at) == nullptr || !product->input(at)->constant || product->input(at)->sparse)
      return std::nullopt;
    factor = product->input(at)->constant;
    part = product->input(1 - at);
  }
  const Value* x = operand_of(operand_of(part, kRelu), kNeg);
  return x ? std::optional(std::pair{x, factor}) : std::nullopt;
}

/// 8. Relu(x) - k * Relu(-x), Relu(x) + k * Relu(-x): PRelu with the slope k or -k
bool find_prelu(Node& node, Rewriter& rewriter) {
  const bool is_sum = is_onnx(node, kAdd);
  if ((!is_sum && !is_onnx(node, kSub)) || !is_float32(node.output(0))) return false;
  for (const size_t i : {0, 1}) {
    if (i == 1 && !is_sum) break;
    Value* x = operand_of(node.input(i), kRelu);
    const auto part = x ? as_negative_part(node.input(1 - i)) : std::nullopt;
    const auto numbers = part && part->first == x ? floats_of(*part->second, 1 << 16) : std::nullopt;
    if (!numbers || !x->type.shape) continue;
    std::vector<double> slope;
    for (const double each : *numbers) {
      if (!std::isfinite(each)) return false;
      slope.push_back(is_sum ? -each : each);
    }
    if (static_cast<int64_t>(part->second->dims.size()) > *x->type.rank() || !have_same_type(x, node.output(0)))
      return false;
    Value* with = rewriter.constant(*node.graph, make_floats(DType::Float32, part->second->dims, slope), "slope");
    return become(node, rewriter, {.op = "PRelu", .inputs = {x, with}});
  }
  return false;
}

/// 9. x / (1 + |x|): Softsign
bool find_softsign(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kDiv) || !is_float32(node.output(0))) return false;
  const auto sum = as_shifted(node.input(1));
  const bool is_found = sum && sum->number == 1 && operand_of(sum->of, kAbs) == node.input(0);
  return is_found && become(node, rewriter, {.op = "Softsign", .inputs = {node.input(0)}});
}

/// 10. log(1 + exp(x)): Softplus, which is finite for large numbers.  11. 1 / (1 + exp(-x)): Sigmoid
bool find_exponential(Node& node, Rewriter& rewriter) {
  const bool is_log = is_onnx(node, kLog);
  const bool is_inverse = is_onnx(node, kReciprocal) || (is_onnx(node, kDiv) && uniform_value(node.input(0)) == 1.0);
  if ((!is_log && !is_inverse) || !is_float32(node.output(0))) return false;
  const auto sum = as_shifted(node.input(is_onnx(node, kDiv) ? 1 : 0));
  Value* inside = sum && sum->number == 1 ? operand_of(sum->of, kExp) : nullptr;
  if (inside == nullptr) return false;
  if (is_log) return become(node, rewriter, {.op = "Softplus", .inputs = {inside}});
  Value* x = operand_of(inside, kNeg);
  return x != nullptr && become(node, rewriter, {.op = "Sigmoid", .inputs = {x}});
}

bool has_one_output(const Node& node) {
  return node.domain.empty() && node.outputs().size() == 1 && node.output(0) != nullptr;
}

}  // namespace

bool recognise_activations(Node& node, Rewriter& rewriter) {
  if (!has_one_output(node)) return false;
  return find_products(node, rewriter, false) || find_hard_sigmoid(node, rewriter) || find_relu(node, rewriter) ||
         find_prelu(node, rewriter) || find_softsign(node, rewriter);
}

bool recognise_overflowing_activations(Node& node, Rewriter& rewriter) {
  if (!has_one_output(node)) return false;
  return find_products(node, rewriter, true) || find_exponential(node, rewriter);
}

}  // namespace tonnx
