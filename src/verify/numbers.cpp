// numbers.cpp - reads elements of tensors as numbers, and measures differences.
#include "verify/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "base/join.h"
#include "ir/half.h"

namespace tonnx::judge {
namespace {

constexpr double kMask = 1e9;      // elements of attention masks say nothing of how large the others are
constexpr size_t kSteps = 256;     // of a type of 8 bits
constexpr int64_t kAtOnce = 4096;  // elements that are read together

template <class T>
void read_as(const Tensor& tensor, int64_t first, std::span<double> numbers) {
  const auto* from = reinterpret_cast<const T*>(tensor.data.data()) + first;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(from[i]);
}

bool is_aligned(const Tensor& tensor, size_t size) {
  return reinterpret_cast<uintptr_t>(tensor.data.data()) % size == 0;  // NOLINT
}

/// Calls `use(a, b)` for runs of elements of both.
template <class Use>
void for_runs(const Tensor& a, const Tensor& b, Use&& use) {
  std::array<double, kAtOnce> first{}, second{};
  for (int64_t at = 0, count = a.count(); at < count; at += kAtOnce) {
    const auto size = static_cast<size_t>(std::min(kAtOnce, count - at));
    read_numbers(a, at, std::span(first).first(size));
    read_numbers(b, at, std::span(second).first(size));
    use(std::span<const double>(first).first(size), std::span<const double>(second).first(size));
  }
}

double largest_of(const Tensor& tensor) {
  double largest = 0;
  for_runs(tensor, tensor, [&](std::span<const double> numbers, std::span<const double>) {
    for (const double number : numbers) {
      const double size = std::abs(number);
      if (size < kMask && size > largest) largest = size;
    }
  });
  return largest;
}

/// The step of a value that was quantised: how far its elements are apart where there are few of them; else 0.
double step_of(const Tensor& tensor) {
  std::set<double> found;
  for_runs(tensor, tensor, [&](std::span<const double> numbers, std::span<const double>) {
    for (const double number : numbers) {
      if (found.size() <= kSteps && std::isfinite(number)) found.insert(number);
    }
  });
  if (found.size() < 2 || found.size() > kSteps) return 0;
  double step = std::numeric_limits<double>::infinity();
  for (auto at = std::next(found.begin()); at != found.end(); ++at) step = std::min(step, *at - *std::prev(at));
  return 1.01 * step;
}

double moved(const Tensor& a, const Tensor& near) {
  double most = 0;
  for_runs(a, near, [&](std::span<const double> wanted, std::span<const double> other) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double distance = std::abs(other[i] - wanted[i]);
      if (std::isfinite(distance)) most = std::max(most, distance);
    }
  });
  return most;
}

void choose_tolerances(const Tensor& a, const Tensor& b, const Tolerance& tolerance, const Expected& expected,
                       Measured& result) {
  if (!is_float(a.dtype) && !is_float(b.dtype)) {
    const bool is_byte = a.dtype == DType::Int8 || a.dtype == DType::UInt8;
    result.atol = tolerance.atol.value_or(is_byte ? 1 : 0);  // rounding may fall either way
    return;
  }
  const double largest = expected.noise * largest_of(a);
  std::tie(result.rtol, result.atol) = tolerance.of(a.dtype, b.dtype, expected.depth, largest);
  if (expected.steps.first > 0) result.atol = std::max(result.atol, expected.steps.first * step_of(a));
  if (expected.steps.second > 0) result.atol = std::max(result.atol, expected.steps.second * step_of(b));
  if (expected.near != nullptr && expected.near->dims == a.dims) result.atol += 4 * moved(a, *expected.near);
}

/// Sums over the elements of two tensors.
struct Sums {
  double squares = 0, dot = 0, length_a = 0, length_b = 0;

  void add(double wanted, double got, Measured& result) {
    const bool is_equal = wanted == got || (std::isnan(wanted) && std::isnan(got));
    double error = is_equal ? 0 : std::abs(got - wanted);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    const double size = std::isfinite(wanted) ? std::abs(wanted) : 0;
    if (!(error <= result.atol + result.rtol * size)) ++result.wrong;
    result.max_abs = std::max(result.max_abs, error);
    squares += error * error;
    if (!std::isfinite(wanted) || !std::isfinite(got)) return;
    dot += wanted * got;
    length_a += wanted * wanted;
    length_b += got * got;
  }
};

double largest_relative(const Tensor& a, const Tensor& b, double largest) {
  const double floor = std::max(1e-3 * largest, 1e-30);
  double most = 0;
  for_runs(a, b, [&](std::span<const double> wanted, std::span<const double> got) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == got[i] || (std::isnan(wanted[i]) && std::isnan(got[i]))) continue;
      const double error = std::abs(got[i] - wanted[i]);
      const double size = std::isfinite(wanted[i]) ? std::abs(wanted[i]) : 0;
      most =
          std::max(most, std::isnan(error) ? std::numeric_limits<double>::infinity() : error / std::max(size, floor));
    }
  });
  return most;
}

double largest_finite(const Tensor& tensor) {
  double largest = 0;
  for_runs(tensor, tensor, [&](std::span<const double> numbers, std::span<const double>) {
    for (const double number : numbers) {
      if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
    }
  });
  return largest;
}

}  // namespace

bool is_number(DType dtype) {
  const char kind = info(dtype).kind;
  return kind == 'f' || kind == 'i' || kind == 'u' || kind == 'b';
}

bool holds_floats(const Tensor& tensor) { return is_float(tensor.dtype); }

void read_numbers(const Tensor& tensor, int64_t first, std::span<double> numbers) {
  switch (tensor.dtype) {
    case DType::Float32:
      if (is_aligned(tensor, 4)) return read_as<float>(tensor, first, numbers);
      break;
    case DType::Float64:
      if (is_aligned(tensor, 8)) return read_as<double>(tensor, first, numbers);
      break;
    case DType::Int64:
      if (is_aligned(tensor, 8)) return read_as<int64_t>(tensor, first, numbers);
      break;
    case DType::Int8: return read_as<int8_t>(tensor, first, numbers);
    case DType::UInt8: return read_as<uint8_t>(tensor, first, numbers);
    default: break;
  }
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = element_as_double(tensor, first + static_cast<int64_t>(i));
}

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> result(static_cast<size_t>(tensor.count()));
  read_numbers(tensor, 0, result);
  return result;
}

TensorPtr tensor_of(DType dtype, std::vector<int64_t> dims, const std::vector<double>& numbers) {
  return make_floats(dtype, std::move(dims), numbers);
}

TensorPtr perturbed(const TensorPtr& tensor) {
  const auto size = noise_of_type(tensor->dtype);
  if (!size) return tensor;
  std::vector<double> numbers = numbers_of(*tensor);
  std::mt19937_64 engine(1);
  for (double& number : numbers) {
    // numbers of rows, classes and places are whole, and nobody rounds them
    if (std::trunc(number) != number) number *= 1 + (engine() % 2 == 0 ? *size : -*size);
  }
  return tensor_of(tensor->dtype, {tensor->dims.begin(), tensor->dims.end()}, numbers);
}

std::vector<TensorPtr> perturbed(const std::vector<TensorPtr>& tensors) {
  std::vector<TensorPtr> result;
  for (const TensorPtr& tensor : tensors) result.push_back(perturbed(tensor));
  return result;
}

TensorPtr converted(const TensorPtr& tensor, DType dtype) {
  if (tensor->dtype == dtype || dtype == DType::Undefined) return tensor;
  require(is_number(tensor->dtype) && is_number(dtype), "{} is given where {} is expected", name_of(tensor->dtype),
          name_of(dtype));
  return tensor_of(dtype, {tensor->dims.begin(), tensor->dims.end()}, numbers_of(*tensor));
}

TensorPtr reshaped(const TensorPtr& tensor, const std::vector<int64_t>& dims) {
  auto result = std::make_shared<Tensor>(*tensor);
  result->dims.assign(dims.begin(), dims.end());
  return result;
}

TensorPtr alike(const TensorPtr& tensor, const Tensor& like) {
  if (tensor->dims == like.dims || tensor->count() != like.count()) return tensor;
  return reshaped(tensor, {like.dims.begin(), like.dims.end()});
}

std::string type_of(const Tensor& tensor) {
  return fmt::format("{}[{}]", name_of(tensor.dtype), fmt::join(tensor.dims.begin(), tensor.dims.end(), ", "));
}

Measured measured(const Tensor& a, const Tensor& b, const Tolerance& tolerance, const Expected& expected) {
  Measured result;
  result.type = type_of(a);
  result.elements = a.count();
  if (a.dims != b.dims) {
    result.is_same = false;
    result.wrong = result.elements;
    result.max_abs = result.max_rel = result.mse = std::numeric_limits<double>::infinity();
    result.cosine = 0;
    result.why = "is " + type_of(b) + " in the second model";
    return result;
  }
  if (result.elements == 0) return result;
  if (!is_number(a.dtype) || !is_number(b.dtype)) {
    result.is_same = a.dtype == b.dtype && a.strings == b.strings && a.data.view() == b.data.view();
    if (!result.is_same) result.why = fmt::format("holds other {}s", name_of(a.dtype));
    return result;
  }
  choose_tolerances(a, b, tolerance, expected, result);
  Sums sums;
  for_runs(a, b, [&](std::span<const double> wanted, std::span<const double> got) {
    for (size_t i = 0; i < wanted.size(); ++i) sums.add(wanted[i], got[i], result);
  });
  if (result.max_abs > 0) result.max_rel = largest_relative(a, b, largest_finite(a));
  result.mse = sums.squares / static_cast<double>(result.elements);
  const double lengths = std::sqrt(sums.length_a) * std::sqrt(sums.length_b);
  result.cosine = lengths > 0 ? std::min(sums.dot / lengths, 1.0) : sums.length_a == sums.length_b ? 1 : 0;
  result.is_same = result.wrong == 0;
  return result;
}

}  // namespace tonnx::judge
