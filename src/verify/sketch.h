// sketch.h - what is kept of a value: sums of its elements with random signs, whose distance is about that of values.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace tonnx::judge {

constexpr size_t kSketchGroups = 64;

struct Print {
  std::string kind;  // sizes but for ones, and what sort of numbers it holds: only these are compared
  std::vector<int64_t> dims;
  DType dtype = DType::Undefined;
  uint64_t bytes = 0;
  int64_t elements = 0;
  std::array<double, kSketchGroups> sketch{};
  double norm = 0, lowest = 0, highest = 0;
  bool is_whole = true;  // holds nothing but whole numbers

  double largest() const { return std::max(-lowest, highest); }
  /// Many values of zeros or ones look the same.
  bool is_telling() const { return lowest < highest; }
  /// Values that are as close as this are taken for the same.
  double same() const;
};

class Sketcher {
 public:
  Sketcher();
  Print print_of(const Tensor& tensor) const;

 private:
  std::vector<double> signs_;
};

/// About how far two values are apart, as a share of the larger one.
double distance(const Print& a, const Print& b);

}  // namespace tonnx::judge
