// verify_numbers.cpp - draws inputs, and compares tensors element by element.
#include "api/verify_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_map>

#include "base/budget.h"
#include "ops/frame/op_def.h"

namespace tonnx::v1 {
namespace {

constexpr double kUsualSum = 256, kUsualStep = 4;  // numbers that a layer adds up where nobody knows, and others
constexpr double kLargestTolerance = 0.1, kRoundingOfOne = 1.2e-7, kMask = 1e9;

/// Numbers that the node adds up for one element: all of a weight but the outputs, which are the first dimension of
/// most weights, and the last of those of MatMul.
Depth own_depth(const core::Node& node) {
  const std::string_view op = node.op.view();
  if (!core::sums_products(node)) return {0, kUsualStep};
  const bool is_product = op.find("MatMul") != op.npos || op == "mm" || op == "matmul";
  double sum = 0;
  for (const core::Value* input : node.inputs()) {
    if (input == nullptr || !input->constant || input->constant->dims.size() < 2) continue;
    const auto& dims = input->constant->dims;
    const int64_t outputs = is_product ? dims.back() : dims.front();
    if (outputs > 0) sum += static_cast<double>(input->constant->count() / outputs);
  }
  return {1, sum > 0 ? sum : kUsualSum};
}

using Depths = std::unordered_map<const core::Value*, Depth>;

Depth deepest(const Depth& a, const Depth& b) { return {std::max(a.layers, b.layers), std::max(a.numbers, b.numbers)}; }

Depth walk(const core::Graph& graph, Depths& depths) {
  for (const core::Node& node : graph) {
    Depth before, own = own_depth(node);
    for (const core::Value* input : node.inputs()) {
      if (const auto at = depths.find(input); at != depths.end()) before = deepest(before, at->second);
    }
    for (const core::GraphPtr& inner : core::subgraphs_of(node)) own = deepest(own, walk(*inner, depths));
    for (const core::Value* output : node.outputs())
      depths[output] = {before.layers + own.layers, before.numbers + own.numbers};
  }
  Depth result;
  for (const core::Value* output : graph.outputs()) {
    if (const auto at = depths.find(output); at != depths.end()) result = deepest(result, at->second);
  }
  return result;
}

struct Precision {
  double epsilon, times, smallest;
  bool counts_numbers;  // otherwise layers: such types are added up in wider ones
};

std::optional<Precision> precision_of(core::DType dtype) {
  switch (dtype) {
    case core::DType::Float64: return Precision{std::ldexp(1.0, -52), 4, 1e-11, true};
    case core::DType::Float32: return Precision{std::ldexp(1.0, -23), 4, 0, true};
    case core::DType::Float16: return Precision{std::ldexp(1.0, -10), 2, 0, false};
    case core::DType::BFloat16: return Precision{std::ldexp(1.0, -7), 2, 0, false};
    default: return std::nullopt;
  }
}
constexpr Precision kQuantised{1.0 / 254, 1.25, 0, false};

double expected(const Precision& type, const Depth& depth) {
  const double count = std::max(type.counts_numbers ? depth.numbers : depth.layers, 1.0);
  return std::max(type.times * type.epsilon * std::sqrt(count), type.smallest);
}

bool is_number(core::DType dtype) {
  const char kind = core::info(dtype).kind;
  return kind == 'f' || kind == 'i' || kind == 'u' || kind == 'b';
}

Tensor tensor_of_numbers(DType dtype, const std::vector<int64_t>& dims, const std::vector<double>& numbers) {
  return Access::tensor(core::make_floats(core_of(dtype), dims, numbers));
}

/// A few sines along the longest dimension.
double wave(size_t place, const std::array<double, 4>& pace) {
  double sum = 0;
  for (size_t k = 0; k < pace.size(); ++k)
    sum += std::sin(static_cast<double>(place) * pace[k]) / static_cast<double>(k + 1);
  return sum;
}

}  // namespace

std::vector<double> numbers_of(const Tensor& tensor) {
  const core::Tensor& inner = *Access::tensor(tensor);
  std::vector<double> result(static_cast<size_t>(inner.count()));
  const std::span<const std::byte> bytes = tensor.bytes();
  if (inner.dtype == core::DType::Float32) {
    const auto* first = reinterpret_cast<const float*>(bytes.data());
    std::copy_n(first, result.size(), result.begin());
  } else {
    for (size_t i = 0; i < result.size(); ++i) result[i] = core::element_as_double(inner, static_cast<int64_t>(i));
  }
  return result;
}

bool holds_numbers(const Tensor& tensor) { return is_number(core_of(tensor.dtype())); }

Rounding Rounding::at(const std::string& value) const {
  Rounding result{depth, precision, is_quantised};
  if (const auto found = depths.find(value); found != depths.end()) result.depth = found->second;
  return result;
}

Rounding rounding_of(const core::Model& model) {
  Rounding result;
  Depths depths;
  result.depth = walk(*model.graph, depths);
  for (const auto& [value, depth] : depths) {
    if (value != nullptr) result.depths.emplace(value->name, depth);
  }
  const auto look = [&](core::DType dtype) {
    if (dtype == core::DType::BFloat16 || (dtype == core::DType::Float16 && result.precision != core::DType::BFloat16))
      result.precision = dtype;
  };
  for (const core::Value* value : model.graph->initializers()) {
    if (value->constant) look(value->constant->dtype);
  }
  for (const core::Node& node : *model.graph) {
    const std::string_view op = node.op.view();
    result.is_quantised |= op.find("Quantize") != op.npos || op.starts_with("QLinear") ||
                           op.find("Integer") != op.npos || op.find("quantize") != op.npos;
  }
  return result;
}

namespace {

/// A float, of the kind that the draw is of.
class Floats {
 public:
  Floats(std::mt19937_64& engine, int draw) : engine_(engine), kind_(draw % 6) {
    std::uniform_real_distribution<double> paces(0.01, 1);
    for (double& each : pace_) each = paces(engine_);
  }

  double at(size_t place) {
    switch (kind_) {
      case 0: return uniform_(engine_);
      case 1: return normal_(engine_);
      case 2: return wave(place, pace_) + 0.01 * normal_(engine_);
      case 3: return 255 * uniform_(engine_);
      case 4: return uniform_(engine_) < 0.1 ? 4 * normal_(engine_) : 0;
      default: return 0.05 * normal_(engine_);
    }
  }

 private:
  std::mt19937_64& engine_;
  int kind_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  std::normal_distribution<double> normal_;
  std::array<double, 4> pace_{};
};

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
}

/// All of it, then the beginning of each row.
void fill_mask(std::vector<double>& numbers, const std::vector<int64_t>& dims, int draw, std::mt19937_64& engine) {
  const auto row = static_cast<size_t>(dims.empty() ? 1 : std::max<int64_t>(dims.back(), 1));
  const auto size = static_cast<int64_t>(row);
  for (size_t start = 0; start < numbers.size(); start += row) {
    const auto end = static_cast<size_t>(draw == 0 ? size : between(engine, std::max<int64_t>(size / 2, 1), size));
    for (size_t i = 0; i < row && start + i < numbers.size(); ++i) numbers[start + i] = i < end ? 1 : 0;
  }
}

}  // namespace

Tensor random_tensor(DType dtype, const std::vector<int64_t>& dims, const InputHint& hint, const Draw& draw) {
  constexpr int64_t kUsualLimit = 10;  // of integers of which nothing is known
  std::vector<double> numbers(core::room_for<double>({core::count_of(dims)}));
  const char kind = core::info(core_of(dtype)).kind;
  core::require(kind == 'f' || kind == 'i' || kind == 'u' || kind == 'b', "a random input cannot be of {}",
                name_of(dtype));
  std::mt19937_64 engine(draw.seed);
  Floats floats(engine, draw.number);
  const bool is_small = dims.size() <= 1;
  const bool is_integer = kind == 'i' || kind == 'u';
  if (draw.is_cautious && is_integer) {
    std::fill(numbers.begin(), numbers.end(), 1);
  } else if (!hint.choices.empty() && is_small) {
    std::fill(numbers.begin(), numbers.end(), hint.choices[static_cast<size_t>(draw.number) % hint.choices.size()]);
  } else if (kind == 'b' && is_small) {
    std::fill(numbers.begin(), numbers.end(), draw.number % 2 == 0 ? 1 : 0);
  } else if (hint.is_length) {
    const int64_t low = draw.number == 0 ? draw.length : std::max<int64_t>(draw.length / 2, 1);
    for (double& number : numbers) number = static_cast<double>(between(engine, low, draw.length));
  } else if (hint.is_mask) {
    fill_mask(numbers, dims, draw.number, engine);
  } else if (kind == 'f' && !hint.limit) {
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = floats.at(i);
  } else {
    const int64_t limit = kind == 'b' ? 2 : std::max<int64_t>(hint.limit.value_or(kUsualLimit), 1);
    for (double& number : numbers) number = static_cast<double>(between(engine, 0, limit - 1));
  }
  return tensor_of_numbers(dtype, dims, numbers);
}

Tensor perturbed(const Tensor& tensor) {
  const auto precision = precision_of(core_of(tensor.dtype()));
  if (!precision) return tensor;
  const double size = precision->counts_numbers ? 64 * precision->epsilon : 1e-3;
  std::vector<double> numbers = numbers_of(tensor);
  std::mt19937_64 engine(1);
  for (double& number : numbers) {
    // numbers of rows, classes and places are whole, and nobody rounds them
    if (std::trunc(number) != number) number *= 1 + (engine() % 2 == 0 ? size : -size);
  }
  return tensor_of_numbers(tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}, numbers);
}

Tensor converted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype || dtype == DType::Undefined) return tensor;
  core::require(is_number(core_of(tensor.dtype())) && is_number(core_of(dtype)),
                "an input holds {} where {} is expected", core::name_of(core_of(tensor.dtype())),
                core::name_of(core_of(dtype)));
  return tensor_of_numbers(dtype, {tensor.dims().begin(), tensor.dims().end()}, numbers_of(tensor));
}

namespace {

/// rtol and atol for floats whose largest element is `largest`.
std::pair<double, double> tolerances(core::DType a, core::DType b, double largest, const Rounding& rounding,
                                     const VerifyOptions& options) {
  if (options.rtol || options.atol) return {options.rtol.value_or(0), options.atol.value_or(0)};
  double fitting = 0;
  const bool is_double = a == core::DType::Float64 && b == core::DType::Float64;
  for (const core::DType dtype : {a, b, is_double ? a : rounding.precision}) {
    if (const auto precision = precision_of(dtype)) fitting = std::max(fitting, expected(*precision, rounding.depth));
  }
  if (rounding.is_quantised) fitting = std::max(fitting, expected(kQuantised, rounding.depth));
  fitting = std::min(fitting, kLargestTolerance);
  return {fitting, std::max(fitting * largest, is_double ? 0.0 : kRoundingOfOne)};
}

double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double number : numbers) {
    if (std::isfinite(number) && std::abs(number) < kMask) largest = std::max(largest, std::abs(number));
  }
  return largest;
}

}  // namespace

OutputComparison compared(std::string name, const Tensor& a, const Tensor& b, const Tensor* near,
                          const Rounding& rounding, const VerifyOptions& options, double noise) {
  OutputComparison result;
  result.name = std::move(name);
  const auto type_of = [](const Tensor& tensor) {
    return text_of(Type::tensor(tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}));
  };
  result.type = type_of(a);
  result.elements = a.count();
  if (!std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end())) {
    result.is_same = false;
    result.wrong = result.elements;
    result.max_abs = result.max_rel = result.mse = std::numeric_limits<double>::infinity();
    result.why = "is " + type_of(b) + " in the second model";
    return result;
  }
  const core::DType x = core_of(a.dtype()), y = core_of(b.dtype());
  if (!is_number(x) || !is_number(y)) {
    result.is_same = x == y && std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end()) &&
                     Access::tensor(a)->strings == Access::tensor(b)->strings;
    if (!result.is_same) result.why = "holds other " + std::string(core::name_of(x)) + "s";
    return result;
  }
  const std::vector<double> wanted = numbers_of(a), got = numbers_of(b);
  const double largest = largest_of(wanted);
  if (core::is_float(x) || core::is_float(y)) {
    std::tie(result.rtol, result.atol) = tolerances(x, y, noise * largest, rounding, options);
    if (near != nullptr && near->count() == a.count()) {
      double moved = 0;
      const std::vector<double> other = numbers_of(*near);
      for (size_t i = 0; i < other.size(); ++i) {
        const double distance = std::abs(other[i] - wanted[i]);
        if (std::isfinite(distance)) moved = std::max(moved, distance);
      }
      result.atol += 4 * moved;
    }
  } else {
    const bool is_byte = x == core::DType::Int8 || x == core::DType::UInt8;
    result.atol = options.atol.value_or(is_byte ? 1 : 0);  // rounding may fall either way
  }
  double squares = 0, dot = 0, length_a = 0, length_b = 0;
  const double floor = std::max(1e-3 * largest, 1e-30);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool is_equal = wanted[i] == got[i] || (std::isnan(wanted[i]) && std::isnan(got[i]));
    double error = is_equal ? 0 : std::abs(got[i] - wanted[i]);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    const double size = std::isfinite(wanted[i]) ? std::abs(wanted[i]) : 0;
    if (!(error <= result.atol + result.rtol * size)) ++result.wrong;
    result.max_abs = std::max(result.max_abs, error);
    result.max_rel = std::max(result.max_rel, error / std::max(size, floor));
    squares += error * error;
    if (!std::isfinite(wanted[i]) || !std::isfinite(got[i])) continue;
    dot += wanted[i] * got[i];
    length_a += wanted[i] * wanted[i];
    length_b += got[i] * got[i];
  }
  if (!wanted.empty()) result.mse = squares / static_cast<double>(wanted.size());
  const double lengths = std::sqrt(length_a) * std::sqrt(length_b);
  result.cosine = lengths > 0 ? std::min(dot / lengths, 1.0) : length_a == length_b ? 1 : 0;
  result.is_same = result.wrong == 0;
  return result;
}

}  // namespace tonnx::v1
