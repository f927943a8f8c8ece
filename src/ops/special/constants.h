// constants.h - numbers that special functions are made of.
#pragma once
#include <limits>
#include <numbers>

namespace tonnx {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kPi = std::numbers::pi;

}  // namespace tonnx
