// scaled.cpp - multiplies weights by a number for each channel, and looks for the largest of each.
#include "ir/scaled.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/parallel.h"
#include "base/window.h"
#include "ir/half.h"

namespace tonnx {
namespace {

// How the float types lie in files, and how their numbers are rounded.

template <class Number>
struct Plain {
  using Stored = Number;
  static Number widened(Number number) { return number; }
  static Number narrowed(double number) { return static_cast<Number>(number); }
};
struct Half {
  using Stored = uint16_t;
  static constexpr int kDigits = 10, kBias = 15;
  static float widened(uint16_t bits) { return widened_half(bits); }
  static uint16_t narrowed(double number) { return narrowed_half(odd_float(number)); }
};
struct BrainFloat {
  using Stored = uint16_t;
  static constexpr int kDigits = 7, kBias = 127;
  static float widened(uint16_t bits) { return widened_bfloat(bits); }
  static uint16_t narrowed(double number) { return narrowed_bfloat(odd_float(number)); }
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

constexpr int64_t kBlock = 16;  // numbers whose count is known become vectors

template <class Format, class FactorOf>
void scale_block(typename Format::Stored* numbers, FactorOf&& factor_of) {
  for (int64_t i = 0; i < kBlock; ++i) numbers[i] = Format::narrowed(Format::widened(numbers[i]) * factor_of(i));
}

/// The same for numbers of 16 bits, by integers of 64 alone. False, and nothing is changed, where a number or a product
/// has no hidden bit, or is none.
template <class Format, class FactorOf>
bool scale_normal(uint16_t* numbers, FactorOf&& factor_of) {
  constexpr int kDoubleDigits = 52, kDoubleBias = 1023, kShift = kDoubleDigits - Format::kDigits;
  constexpr uint64_t kSign = 0x8000, kRebias = uint64_t{kDoubleBias - Format::kBias} << Format::kDigits;
  constexpr uint64_t kLeast = uint64_t{1} << Format::kDigits;
  constexpr uint64_t kMost = (uint64_t{2 * Format::kBias + 1} << Format::kDigits) - 1;
  uint64_t products[kBlock], outside = 0;  // the highest bit of what is outside becomes one
  for (int64_t i = 0; i < kBlock; ++i) {
    const uint64_t bits = numbers[i], magnitude = bits & (kSign - 1);
    outside |= (magnitude - kLeast) | (kMost - magnitude);
    const uint64_t wide = (magnitude + kRebias) << kShift | (bits & kSign) << 48U;
    products[i] = std::bit_cast<uint64_t>(std::bit_cast<double>(wide) * factor_of(i));
  }
  for (uint64_t& product : products) {
    const uint64_t magnitude = product & (UINT64_MAX >> 1U), last = magnitude >> kShift & 1U;
    const uint64_t rounded = ((magnitude + ((uint64_t{1} << (kShift - 1)) - 1) + last) >> kShift) - kRebias;
    outside |= (rounded - kLeast) | (kMost - rounded);
    product = rounded | (product >> 48U & kSign);
  }
  if (outside >> 63U != 0) return false;
  for (int64_t i = 0; i < kBlock; ++i) numbers[i] = static_cast<uint16_t>(products[i]);
  return true;
}

/// Numbers times what `factor_of` gives for each, in place; the bytes of a file may lie at any address.
template <class Format, class FactorOf>
void scale_run(uint8_t* bytes, int64_t count, FactorOf&& factor_of) {
  using Stored = typename Format::Stored;
  Stored numbers[kBlock];
  int64_t done = 0;
  for (; done + kBlock <= count; done += kBlock) {
    uint8_t* const at = bytes + static_cast<size_t>(done) * sizeof(Stored);
    std::memcpy(numbers, at, sizeof(numbers));
    const auto factor = [&](int64_t i) { return factor_of(done + i); };
    if constexpr (sizeof(Stored) == 2) {
      if (!scale_normal<Format>(numbers, factor)) scale_block<Format>(numbers, factor);
    } else {
      scale_block<Format>(numbers, factor);
    }
    std::memcpy(at, numbers, sizeof(numbers));
  }
  for (; done < count; ++done) {
    uint8_t* const at = bytes + static_cast<size_t>(done) * sizeof(Stored);
    std::memcpy(numbers, at, sizeof(Stored));
    numbers[0] = Format::narrowed(Format::widened(numbers[0]) * factor_of(done));
    std::memcpy(at, numbers, sizeof(Stored));
  }
}

/// The bits of a number but for its sign: of what is not finite they are larger.
template <class Bits>
Bits magnitude_of(Bits bits) {
  return bits & std::numeric_limits<Bits>::max();
}

/// The largest magnitude of numbers of which these are the bits.
template <class Bits>
Bits largest_bits(const uint8_t* numbers, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(Bits);
  Bits largest[kLine] = {}, bits[kLine];
  int64_t done = 0;
  for (; done + kLine <= count; done += kLine) {
    std::memcpy(bits, numbers + static_cast<size_t>(done) * sizeof(Bits), sizeof(bits));
    for (int64_t i = 0; i < kLine; ++i) {  // not std::max: of references GCC makes no vectors
      const Bits magnitude = magnitude_of(bits[i]), before = largest[i];
      largest[i] = magnitude > before ? magnitude : before;
    }
  }
  for (; done < count; ++done) {
    std::memcpy(bits, numbers + static_cast<size_t>(done) * sizeof(Bits), sizeof(Bits));
    largest[0] = std::max(largest[0], magnitude_of(bits[0]));
  }
  return *std::max_element(std::begin(largest), std::end(largest));
}

/// Raises the largest magnitudes of channels by one number of each.
template <class Bits>
void raise_bits(const uint8_t* numbers, int64_t count, Bits* largest) {
  constexpr int64_t kLine = 64 / sizeof(Bits);
  const auto raise = [&]<int64_t kCount>(int64_t at) {
    Bits bits[kCount], raised[kCount];
    std::memcpy(raised, largest + at, sizeof(raised));
    std::memcpy(bits, numbers + static_cast<size_t>(at) * sizeof(Bits), sizeof(bits));
    for (int64_t i = 0; i < kCount; ++i) {
      const Bits magnitude = magnitude_of(bits[i]), before = raised[i];
      raised[i] = magnitude > before ? magnitude : before;
    }
    std::memcpy(largest + at, raised, sizeof(raised));
  };
  int64_t done = 0;
  for (; done + kLine <= count; done += kLine) raise.template operator()<kLine>(done);
  for (; done < count; ++done) raise.template operator()<1>(done);
}

/// The largest magnitudes of all channels among the elements [first, end).
template <class Bits>
std::vector<Bits> largest_among(const Tensor& weights, const ChannelLayout& layout, int64_t first, int64_t end) {
  std::vector<Bits> largest(static_cast<size_t>(layout.channels));
  constexpr int64_t kWindow = (int64_t{1} << 20) / sizeof(Bits);
  const bool is_row = layout.inner == 1 && layout.block == 0;
  const int64_t length = is_row ? layout.outer : layout.inner;
  for (int64_t begin = first; begin < end; begin += kWindow) {
    const int64_t window_end = std::min(end, begin + kWindow);
    const size_t size = static_cast<size_t>(window_end - begin) * sizeof(Bits);
    const BytesWindow window(weights.data.slice(static_cast<size_t>(begin) * sizeof(Bits), size));
    for (int64_t at = begin; at < window_end;) {
      const int64_t stop = std::min(window_end, (at / length + 1) * length);
      const uint8_t* run = window.data() + static_cast<size_t>(at - begin) * sizeof(Bits);
      Bits& of_channel = largest[layout.channel(at)];
      if (is_row)
        raise_bits(run, stop - at, &of_channel);
      else
        of_channel = std::max(of_channel, largest_bits<Bits>(run, stop - at));
      at = stop;
    }
  }
  return largest;
}

}  // namespace

template <class FactorOf>
void ScaledNumbers::scale(uint8_t* run, int64_t count, FactorOf&& factor_of) const {
  with_format(weights_.dtype, [&]<class Format>(Format) { scale_run<Format>(run, count, factor_of); });
}

void ScaledNumbers::compute(size_t offset, uint8_t* into, size_t size) const {
  copy_bytes(weights_.data.slice(offset, size), into);
  const auto width = static_cast<size_t>(byte_size(weights_.dtype, 1));
  const auto end = static_cast<int64_t>((offset + size) / width);
  const auto start = static_cast<int64_t>(offset / width);
  const bool is_row = layout_.inner == 1 && layout_.block == 0;
  for (int64_t at = start; at < end;) {  // a run of elements of one channel at a time, or of one of each
    const int64_t length = is_row ? layout_.outer : layout_.inner;
    const int64_t stop = std::min(end, (at / length + 1) * length);
    const double* factors = factor_.data() + layout_.channel(at);
    uint8_t* run = into + static_cast<size_t>(at - start) * width;
    if (is_row)
      scale(run, stop - at, [factors](int64_t i) { return factors[i]; });
    else
      scale(run, stop - at, [by = *factors](int64_t) { return by; });
    at = stop;
  }
}

std::vector<double> largest_of_channels(const Tensor& weights, const ChannelLayout& layout) {
  return with_format(weights.dtype, [&]<class Format>(Format) {
    using Stored = typename Format::Stored;
    using Bits =
        std::conditional_t<sizeof(Stored) == 2, int16_t, std::conditional_t<sizeof(Stored) == 4, int32_t, int64_t>>;
    std::vector<Bits> largest(static_cast<size_t>(layout.channels));
    std::mutex mutex;
    in_parallel(weights.count(), [&](int64_t first, int64_t end) {
      const std::vector<Bits> part = largest_among<Bits>(weights, layout, first, end);
      const std::lock_guard lock(mutex);
      for (size_t c = 0; c < part.size(); ++c) largest[c] = std::max(largest[c], part[c]);
    });
    std::vector<double> result;
    for (const Bits bits : largest) result.push_back(Format::widened(std::bit_cast<Stored>(bits)));
    return result;
  });
}

}  // namespace tonnx
