// sketch.cpp - makes sketches of values, and compares them.
#include "verify/sketch.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "verify/numbers.h"

namespace tonnx::judge {
namespace {

constexpr size_t kSample = size_t{1} << 17;  // elements that a sketch is made of, at most

}  // namespace

double Print::same() const {
  if (dtype == DType::Float16) return 2e-2;
  return dtype == DType::BFloat16 ? 5e-2 : 1e-3;
}

Sketcher::Sketcher() : signs_(kSample + kSketchGroups) {
  std::mt19937_64 engine(12);
  for (double& sign : signs_) sign = engine() % 2 == 0 ? 1 : -1;
}

Print Sketcher::print_of(const Tensor& tensor) const {
  Print print;
  print.dims.assign(tensor.dims.begin(), tensor.dims.end());
  print.dtype = tensor.dtype;
  print.bytes = tensor.data.size();
  print.elements = tensor.count();
  for (const int64_t size : tensor.dims) {
    if (size != 1) print.kind += std::to_string(size) + ",";
  }
  if (!is_number(tensor.dtype)) {
    print.kind += "other";
    return print;
  }
  const char sort = info(tensor.dtype).kind;
  // what is quantised may be floats elsewhere
  const bool is_quantised = tensor.dtype == DType::Int8 || tensor.dtype == DType::UInt8;
  print.kind += sort == 'f' || is_quantised ? "float" : sort == 'b' ? "bool" : "int";
  // steps of an odd number pass through all rows and columns
  const auto count = static_cast<size_t>(print.elements);
  const size_t step = ((count + kSample - 1) / kSample) | 1U;
  double squares = 0;
  size_t k = 0;
  const auto add = [&](double number) {
    if (std::isnan(number)) number = 0;
    number = std::clamp(number, -1e30, 1e30);
    print.lowest = k == 0 ? number : std::min(print.lowest, number);
    print.highest = k == 0 ? number : std::max(print.highest, number);
    print.is_whole = print.is_whole && std::rint(number) == number;
    squares += number * number;
    print.sketch[k % kSketchGroups] += number * signs_[k];
    ++k;
  };
  std::array<double, 1024> run{};
  if (step == 1) {
    for (size_t at = 0; at < count; at += run.size()) {
      const auto part = std::span(run).first(std::min(run.size(), count - at));
      read_numbers(tensor, static_cast<int64_t>(at), part);
      for (const double number : part) add(number);
    }
  } else {
    for (size_t at = 0; at < count; at += step) {
      read_numbers(tensor, static_cast<int64_t>(at), std::span(run).first(1));
      add(run[0]);
    }
  }
  print.norm = std::sqrt(squares);
  return print;
}

double distance(const Print& a, const Print& b) {
  double sum = 0;
  for (size_t i = 0; i < kSketchGroups; ++i) sum += (a.sketch[i] - b.sketch[i]) * (a.sketch[i] - b.sketch[i]);
  return std::sqrt(sum) / std::max({a.norm, b.norm, 1e-30});
}

}  // namespace tonnx::judge
