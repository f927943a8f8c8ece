// rounding.cpp - tolerances from types and depths.
#include "verify/rounding.h"

#include <algorithm>
#include <cmath>

#include "ops/frame/op_def.h"
#include "verify/operator_class.h"

namespace tonnx::judge {
namespace {

constexpr double kUsualSum = 256;  // numbers that a layer adds up where nobody knows
constexpr double kFunction = 4;    // exp and its like are off by as much as a sum of so many numbers
constexpr double kLargestTolerance = 0.1;
constexpr double kRoundingOfOne = 1.2e-7;  // a sigmoid whose result is tiny was computed from what is not

struct Steps {
  double epsilon, times, smallest;
  bool counts_numbers;  // otherwise layers: such types are added up in wider ones
};

Steps steps_of(Precision precision) {
  switch (precision) {
    case Precision::Float64: return {std::ldexp(1.0, -52), 4, 1e-11, true};
    case Precision::Float32: return {std::ldexp(1.0, -23), 4, 0, true};
    case Precision::Float16: return {std::ldexp(1.0, -10), 2, 0, false};
    case Precision::BFloat16: return {std::ldexp(1.0, -7), 2, 0, false};
    case Precision::Quantised: break;
  }
  return {1.0 / 254, 1.25, 0, false};
}

std::optional<Precision> precision_of(DType dtype) {
  switch (dtype) {
    case DType::Float64: return Precision::Float64;
    case DType::Float32: return Precision::Float32;
    case DType::Float16: return Precision::Float16;
    case DType::BFloat16: return Precision::BFloat16;
    case DType::Int8: return Precision::Quantised;
    default: return std::nullopt;
  }
}

/// Roundings fall either way, so that they grow with the root of their number.
double expected(Precision precision, const Depth& depth) {
  const Steps step = steps_of(precision);
  const double count = std::max(step.counts_numbers ? depth.numbers : depth.layers, 1.0);
  return std::max(step.times * step.epsilon * std::sqrt(count), step.smallest);
}

bool multiplies(std::string_view op) {
  for (const std::string_view part : {"Conv", "MatMul", "Gemm", "LSTM", "GRU", "RNN"}) {
    if (op.find(part) != op.npos) return true;
  }
  return false;
}

}  // namespace

Depth deepest(const Depth& a, const Depth& b) { return {std::max(a.layers, b.layers), std::max(a.numbers, b.numbers)}; }
Depth operator+(const Depth& a, const Depth& b) { return {a.layers + b.layers, a.numbers + b.numbers}; }

Depth depth_of(std::string_view op) {
  const bool is_sum = accumulates(operator_class(op));
  return {is_sum ? 1.0 : 0.0, is_sum ? kUsualSum : kFunction};
}

Depth depth_of(const Node& node) {
  Depth depth = depth_of(node.op.view());
  if (sums_products(node)) depth = {1, std::max(depth.numbers, kUsualSum)};
  const std::string_view op = node.op.view();
  if (!multiplies(op) && !sums_products(node)) return depth;
  // all of a weight but the outputs, which are the first dimension of most weights, and the last of those of MatMul
  const bool is_product = op.find("MatMul") != op.npos || op == "mm" || op == "matmul";
  double sum = 0;
  for (const Value* input : node.inputs()) {
    if (input == nullptr || !input->constant || input->constant->dims.size() < 2) continue;
    const auto& dims = input->constant->dims;
    const int64_t outputs = is_product ? dims.back() : dims.front();
    if (outputs > 0) sum += static_cast<double>(input->constant->count() / outputs);
  }
  if (sum > 0) depth.numbers = std::max(sum, kFunction);
  return depth;
}

GraphDepths::GraphDepths(const Model& model) {
  std::unordered_map<const Value*, Depth> depths;
  whole_.depth = walk(*model.graph, depths);
  for (const Value* value : model.graph->initializers()) {
    if (!value->constant) continue;
    if (value->constant->dtype == DType::BFloat16) whole_.precision = Precision::BFloat16;
    if (value->constant->dtype == DType::Float16 && whole_.precision == Precision::Float32)
      whole_.precision = Precision::Float16;
  }
  if (has_quantised_) whole_.precision = Precision::Quantised;
}

Depth GraphDepths::walk(const Graph& graph, std::unordered_map<const Value*, Depth>& depths) {
  for (const Node& node : graph) {
    Depth before, own = depth_of(node);
    has_quantised_ = has_quantised_ || quantises(node.op.view());
    for (const Value* input : node.inputs()) {
      if (const auto at = depths.find(input); at != depths.end()) before = deepest(before, at->second);
    }
    const auto bodies = subgraphs_of(node);
    if (!bodies.empty()) own = {0, kFunction};
    for (const GraphPtr& inner : bodies) own = deepest(own, walk(*inner, depths));
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      depths[output] = before + own;
      by_name_[output->name] = {before + own, own};
    }
  }
  Depth result;
  for (const Value* output : graph.outputs()) {
    if (const auto at = depths.find(output); at != depths.end()) result = deepest(result, at->second);
  }
  return result;
}

const Depth* GraphDepths::find(const std::string& value) const {
  const auto at = by_name_.find(value);
  return at == by_name_.end() ? nullptr : &at->second.all;
}
const Depth* GraphDepths::find_own(const std::string& value) const {
  const auto at = by_name_.find(value);
  return at == by_name_.end() ? nullptr : &at->second.own;
}

bool Tolerance::is_quantised() const {
  return std::find(precisions.begin(), precisions.end(), Precision::Quantised) != precisions.end();
}

std::pair<double, double> Tolerance::of(DType a, DType b, const Depth& depth, double largest) const {
  if (is_given()) return {rtol.value_or(0), atol.value_or(0)};
  const bool is_double = a == DType::Float64 && b == DType::Float64;
  double fitting = 0;
  for (const DType dtype : {a, b}) {
    if (const auto precision = precision_of(dtype)) fitting = std::max(fitting, expected(*precision, depth));
  }
  // weights of fewer bits make the values in between coarser, even where an output is wide
  for (const Precision precision : precisions) {
    if (!is_double) fitting = std::max(fitting, expected(precision, depth));
  }
  fitting = std::min(fitting, kLargestTolerance);
  return {fitting, std::max(fitting * largest, is_double ? 0.0 : kRoundingOfOne)};
}

std::optional<double> noise_of_type(DType dtype) {
  const auto precision = precision_of(dtype);
  if (!precision || *precision == Precision::Quantised) return std::nullopt;
  const Steps step = steps_of(*precision);
  return step.counts_numbers ? 64 * step.epsilon : 1e-3;
}

}  // namespace tonnx::judge
