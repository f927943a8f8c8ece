// whole.h - numbers that come out of files, or are computed with such, as integers.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tonnx {

/// The number cut to an integer: the nearest one of 64 bits where it lies beyond them, and 0 where it is none. A plain
/// cast means nothing then.
inline int64_t whole(double number) {
  constexpr double kFar = 9.2e18;
  return std::isnan(number) ? 0 : static_cast<int64_t>(std::clamp(number, -kFar, kFar));
}

}  // namespace tonnx
