// half.h - the two float types of 16 bits, as floats and back.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace tonnx {

inline float widened_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16U, rest = half & 0x7fffU;
  // exponents of the two types differ by 112; numbers without a hidden bit become right by the subtraction
  const uint32_t shifted = rest << 13U;
  const float tiny = std::bit_cast<float>(shifted + (113U << 23U)) - std::bit_cast<float>(113U << 23U);
  const uint32_t normal = shifted + ((rest >= 0x7c00U ? 224U : 112U) << 23U);
  return std::bit_cast<float>((rest < 0x400U ? std::bit_cast<uint32_t>(tiny) : normal) | sign);
}

inline float widened_bfloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16U); }

/// To nearest, ties to even. Every case is computed and one is chosen: so it becomes vector code.
inline uint16_t narrowed_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16U) & 0x8000U, rest = bits & 0x7fffffffU;
  // adding a half aligns the last place of the result with the last place of a float
  const uint32_t tiny = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5F) - 0x3f000000U;
  const uint32_t normal = (rest - 0x38000000U + 0xfffU + ((rest >> 13U) & 1U)) >> 13U;
  const uint32_t past = rest > 0x7f800000U ? 0x7e00U : 0x7c00U;
  const uint32_t finite = rest < 0x38800000U ? tiny : normal;
  return static_cast<uint16_t>(sign | (rest >= 0x47800000U ? past : finite));
}

inline uint16_t narrowed_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t near = bits + 0x7fffU + ((bits >> 16U) & 1U), none = bits | 0x400000U;
  return static_cast<uint16_t>(((bits & 0x7fffffffU) > 0x7f800000U ? none : near) >> 16U);
}

/// The float next to it whose last bit says that it is not exact, so that rounding it again rounds the number itself.
inline float odd_float(double value) {
  const auto near = static_cast<float>(value);
  const auto back = static_cast<double>(near);
  const uint32_t above = std::fabs(back) > std::fabs(value) ? 1U : 0U, inexact = back != value ? 1U : 0U;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(near) - above) | inexact);
}

}  // namespace tonnx
