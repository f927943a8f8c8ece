// float_formats.h - the float types of 16, 32 and 64 bits, for code that is compiled once for each.
#pragma once
#include <bit>
#include <cstdint>

#include "ir/dtype.h"
#include "ir/half.h"

namespace tonnx {

// How each type lies in files, the type in memory that has all of its numbers, and how numbers become those of it: to
// nearest, ties to even.

template <class Number>
struct Plain {
  using Stored = Number;
  static Number widened(Number number) { return number; }
  static Number narrowed(float number) { return static_cast<Number>(number); }
  static Number narrowed(double number) { return static_cast<Number>(number); }
};

// Of the types of 16 bits besides: how many places a float has more, the floats whose hidden bit both have, and how a
// number becomes a float, or a float a number where it is zero or among those. The highest bit of `outside` becomes one
// for what is no number.

struct Half {
  using Stored = uint16_t;
  static constexpr uint32_t kPlaces = 13, kLeast = 0x38800000, kMost = 0x477fdfff;
  static float widened(uint16_t bits) { return widened_half(bits); }
  static uint16_t narrowed(float number) { return narrowed_half(number); }
  static uint16_t narrowed(double number) { return narrowed_half(odd_float(number)); }
  static float quickly_widened(uint32_t bits, uint32_t& outside) {
    const uint32_t magnitude = bits & 0x7fffU;
    outside |= 0x7bffU - magnitude;
    const float wide = std::bit_cast<float>(magnitude << kPlaces) * 0x1p112F;  // by which the exponents differ
    return std::bit_cast<float>(std::bit_cast<uint32_t>(wide) | (bits & 0x8000U) << 16U);
  }
  static uint32_t quickly_narrowed(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fffffffU, last = magnitude >> kPlaces & 1U;
    const uint32_t near = (magnitude - 0x38000000U + 0xfffU + last) >> kPlaces;
    return (magnitude == 0 ? 0 : near) | (bits >> 16U & 0x8000U);
  }
};
struct BrainFloat {
  using Stored = uint16_t;
  static constexpr uint32_t kPlaces = 16, kLeast = 0x00800000, kMost = 0x7f7fffff;
  static float widened(uint16_t bits) { return widened_bfloat(bits); }
  static uint16_t narrowed(float number) { return narrowed_bfloat(number); }
  static uint16_t narrowed(double number) { return narrowed_bfloat(odd_float(number)); }
  static float quickly_widened(uint32_t bits, uint32_t&) { return std::bit_cast<float>(bits << kPlaces); }
  static uint32_t quickly_narrowed(uint32_t bits) { return (bits + 0x7fffU + (bits >> kPlaces & 1U)) >> kPlaces; }
};

/// Calls `use` with what is known of a float type.
template <class Use>
auto with_format(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::Float16: return use(Half{});
    case DType::BFloat16: return use(BrainFloat{});
    case DType::Float64: return use(Plain<double>{});
    default: return use(Plain<float>{});
  }
}

}  // namespace tonnx
