// qdq.cpp - ONNX: sums, products and averages of quantised numbers that are rounded to 8 bits again become the plain
// operator between DequantizeLinear and QuantizeLinear, which runtimes compute in one.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/budget.h"
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"
#include "passes/recognise/onnx/quantized.h"

namespace tonnx {
namespace {

double lowest(DType dtype) { return dtype == DType::Int8 ? -128 : 0; }

bool is_number_of(double number, DType dtype) {
  return std::floor(number) == number && number >= lowest(dtype) && number <= lowest(dtype) + 255;
}

/// Whether multiples of a scale lie halfway between two integers, more than rounding has it now and then.
bool has_halves(float scale) {
  constexpr int kTried = 2048;
  for (int i = 1; i <= kTried; ++i) {
    const float multiple = static_cast<float>(i) * scale;
    if (multiple - std::floor(multiple) == 0.5F) return true;
  }
  return false;
}

/// Whether Round(x + zero) is Round(x) + zero for multiples x of these scales: of two integers that are as near, Round
/// takes the even one, which an odd number makes the other one.
bool keeps_halves(double zero, const std::vector<double>& scales) {
  return std::fmod(zero, 2) == 0 ||
         std::none_of(scales.begin(), scales.end(), [](double scale) { return has_halves(static_cast<float>(scale)); });
}

/// Numbers of 8 bits, less their zero point, times one number.
struct Term {
  Value* x;
  double zero_point = 0;
  double scale = 1;
};

/// The term that a value is: as it is written out, or as DequantizeLinear.
std::optional<Term> as_term(const Value* value, DType dtype) {
  if (value == nullptr || value->type.dtype != DType::Float32) return std::nullopt;
  if (const Node* node = producer_of(value, kDequantize)) {
    const auto scale = uniform_value(node->input(1));
    const auto zero = node->input(2) ? uniform_value(node->input(2)) : std::optional(0.0);
    Value* x = node->input(0);
    const bool is_one = scale && zero && node->input(1)->type.rank() == 0 && x && x->type.dtype == dtype;
    return is_one ? std::optional(Term{x, *zero, *scale}) : std::nullopt;
  }
  const auto scaled = scaled_by(value->producer);
  const auto centered = as_centered(scaled ? scaled->of : value);
  if (!centered || centered->zero_point != nullptr || centered->x->type.dtype != dtype || centered->x->constant)
    return std::nullopt;
  return Term{centered->x, centered->number, scaled ? scaled->number : 1.0};
}

class QdqWriter {
 public:
  QdqWriter(Node& node, Rewriter& rewriter) : node_(node), rewriter_(rewriter) {}

  Value* number(double value, DType dtype = DType::Float32) {
    return number_constant(rewriter_, *node_.graph, dtype, value, dtype == DType::Float32 ? "scale" : "zero_point");
  }
  Value* add(NewNode made) { return rewriter_.add(node_, std::move(made), node_.output(0)->name); }
  Value* dequantized(const Term& term) {
    const DType dtype = term.x->type.dtype;
    return add({.op = "DequantizeLinear", .inputs = {term.x, number(term.scale), number(term.zero_point, dtype)}});
  }
  /// In the place of the node, which is a Clip to the range of the type.
  bool quantize(Value* y, double scale, double zero_point, DType to) {
    if (y == nullptr) return false;
    Value* q = add({.op = "QuantizeLinear", .inputs = {y, number(scale), number(zero_point, to)}});
    return q != nullptr && become_integers(node_.output(0), q, rewriter_, node_);
  }
  Value* joined(std::string_view op, const Term& a, const Term& b) {
    Value *left = dequantized(a), *right = dequantized(b);
    return left && right ? add({.op = op, .inputs = {left, right}}) : nullptr;
  }

 private:
  Node& node_;
  Rewriter& rewriter_;
};

/// Zero points that a sum was written out with: a * left + fixed + b * right, where `fixed` is
/// zero - (left * a_zero + right * b_zero), in 32 bits.
struct ZeroPoints {
  double a, b, sum;
};
std::optional<ZeroPoints> zero_points_of(float left, float right, float fixed, DType dtype) {
  constexpr int kCount = 256;
  if (!budget().try_take(Resource::Steps, kCount * kCount)) return std::nullopt;
  const auto low = static_cast<float>(lowest(dtype));
  const bool is_any = keeps_halves(1, {left, right});
  for (int i = 0; i < kCount; ++i) {
    for (int j = 0; j < kCount; ++j) {
      const float a = low + static_cast<float>(i), b = low + static_cast<float>(j);
      const float moved = left * a + right * b;
      const float zero = std::nearbyint(fixed + moved);
      if (zero - moved == fixed && is_number_of(zero, dtype) && (is_any || std::fmod(zero, 2.0F) == 0))
        return ZeroPoints{a, b, zero};
    }
  }
  return std::nullopt;
}

/// 1. Round(a * left + fixed + b * right)
bool find_sum(Node& clip, const Value* rounded, DType to, Rewriter& rewriter) {
  const Node* sum = made_by(rounded, kAdd);
  for (const size_t i : {0, 1}) {
    if (sum == nullptr) return false;
    const auto shifted = as_shifted(sum->input(i));
    auto a = as_term(shifted ? shifted->of : sum->input(i), to), b = as_term(sum->input(1 - i), to);
    if (!a || !b || a->zero_point != 0 || b->zero_point != 0) continue;
    const auto zeros = zero_points_of(static_cast<float>(a->scale), static_cast<float>(b->scale),
                                      shifted ? static_cast<float>(shifted->number) : 0.0F, to);
    if (!zeros) continue;
    a->zero_point = zeros->a;
    b->zero_point = zeros->b;
    QdqWriter write(clip, rewriter);
    return write.quantize(write.joined("Add", i == 0 ? *a : *b, i == 0 ? *b : *a), 1, zeros->sum, to);
  }
  return false;
}

/// 2. Round((a - a_zero) * (b - b_zero) * ratio + zero)
bool find_product(Node& clip, Value* rounded, DType to, Rewriter& rewriter) {
  const auto shifted = as_shifted(rounded);
  const double zero = shifted ? shifted->number : 0;
  const auto scaled = as_scaled(shifted ? shifted->of : rounded);
  const Node* product = made_by(scaled ? scaled->of : shifted ? shifted->of : rounded, kMul);
  if (product == nullptr || !is_number_of(zero, to)) return false;
  auto a = as_term(product->input(0), to), b = as_term(product->input(1), to);
  if (!a || !b || a->scale != 1 || b->scale != 1) return false;
  if (scaled) a->scale = scaled->number;
  if (!(a->scale > 0) || !keeps_halves(zero, {a->scale})) return false;
  QdqWriter write(clip, rewriter);
  return write.quantize(write.joined("Mul", *a, *b), 1, zero, to);
}

/// What averages are multiples of: of as many numbers as lie in a window, of which some are padding at times.
std::vector<double> steps_of_average(const Node& pool, double scale) {
  constexpr int64_t kMost = 64;
  int64_t count = 1;
  for (const int64_t size : ints_of(pool, "kernel_shape").value_or(std::vector<int64_t>()))
    count = std::min(std::clamp<int64_t>(size, 1, kMost) * count, kMost);
  const bool has_padding = has(pool, "pads") || has(pool, "auto_pad") || int_of(pool, "ceil_mode").value_or(0) != 0;
  std::vector<double> steps;
  for (int64_t i = has_padding ? 1 : count; i <= count; ++i) steps.push_back(scale / static_cast<double>(i));
  return steps;
}

/// 3. Round(AveragePool(dequantised) / scale + zero)
bool find_average(Node& clip, Value* rounded, DType to, Rewriter& rewriter) {
  const auto shifted = as_shifted(rounded);
  const double zero = shifted ? shifted->number : 0;
  const Node* div = made_by(shifted ? shifted->of : rounded, kDiv);
  const auto scale = div ? uniform_value(div->input(1)) : std::nullopt;
  Value* pooled = div ? div->input(0) : nullptr;
  const Node* pool = made_by(pooled, kAveragePool);
  const auto term = pool ? as_term(pool->input(0), to) : std::nullopt;
  if (!scale || !(*scale > 0) || !term || !(term->scale > 0) || !is_number_of(zero, to)) return false;
  if (!keeps_halves(zero, steps_of_average(*pool, term->scale / *scale))) return false;
  QdqWriter write(clip, rewriter);
  Value* x = write.dequantized(*term);
  Value* y = x ? write.add({.op = "AveragePool", .inputs = {x}, .attributes = pool->attributes}) : nullptr;
  return write.quantize(y, *scale, zero, to);
}

/// Scales x and y of which, for so many numbers, x / (y * count) is `factor` in 32 bits.
struct Scales {
  float x, y;
};
std::optional<Scales> scales_of_average(float factor, double count) {
  constexpr int kTried = 16;  // not every number is a quotient by the first one
  for (int i = 0; i < kTried; ++i) {
    const float y = 1 + static_cast<float>(i) / kTried, divisor = y * static_cast<float>(count);
    const float near = factor * divisor;
    for (const float x : {near, std::nextafter(near, 0.0F), std::nextafter(near, INFINITY)}) {
      if (x > 0 && std::isfinite(x) && x / divisor == factor) return Scales{x, y};
    }
  }
  return std::nullopt;
}

/// 4. QuantizeLinear(ReduceSum(x - x_zero) * factor) over all of an image
bool find_global_average(Node& node, Rewriter& rewriter) {
  if (node.input(2) == nullptr || uniform_value(node.input(1)) != 1.0 || node.input(1)->type.rank() != 0) return false;
  const auto scaled = as_scaled(node.input(0));
  const auto sum = scaled && only_user(scaled->of) ? as_reduced(scaled->of->producer, kReduceSum) : std::nullopt;
  auto term = sum && sum->keeps_dims ? as_term(sum->of, node.output(0)->type.dtype) : std::nullopt;
  if (!term || term->scale != 1 || !sum->of->type.shape || sum->of->type.shape->size() < 3) return false;
  const Shape& shape = *sum->of->type.shape;
  double count = 1;
  for (size_t d = 2; d < shape.size(); ++d) count *= static_cast<double>(shape[d].constant().value_or(0));
  std::vector<int64_t> spatial;
  for (size_t d = 2; d < shape.size(); ++d) spatial.push_back(static_cast<int64_t>(d));
  if (sum->axes != spatial || count < 1 || count > 0x1p24) return false;
  const auto scales = scales_of_average(static_cast<float>(scaled->number), count);
  if (!scales) return false;
  term->scale = scales->x;
  QdqWriter write(node, rewriter);
  Value* x = write.dequantized(*term);
  Value* y = x ? write.add({.op = "GlobalAveragePool", .inputs = {x}}) : nullptr;
  Value* q = y ? write.add({.op = "QuantizeLinear", .inputs = {y, write.number(scales->y), node.input(2)}}) : nullptr;
  return q != nullptr && rewriter.replace(node.output(0), q);
}

}  // namespace

bool recognise_qdq(Node& node, Rewriter& rewriter) {
  if (is_onnx(node, kQuantize)) return find_global_average(node, rewriter);
  if (!is_onnx(node, kClip) || node.output(0)->type.dtype != DType::Float32) return false;
  const auto low = float_of(node, "min"), high = float_of(node, "max");
  const DType to = low == -128.0 && high == 127.0 ? DType::Int8
                   : low == 0.0 && high == 255.0  ? DType::UInt8
                                                  : DType::Undefined;
  Value* rounded = to == DType::Undefined ? nullptr : operand_of(node.input(0), kRound);
  return rounded && (find_sum(node, rounded, to, rewriter) || find_product(node, rounded, to, rewriter) ||
                     find_average(node, rounded, to, rewriter));
}

}  // namespace tonnx
