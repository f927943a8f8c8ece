// scaled.cpp - multiplies weights by a number for each channel, and looks for the largest of each.
#include "ir/scaled.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/parallel.h"
#include "base/wide_vectors.h"
#include "ir/float_formats.h"

namespace tonnx {
namespace {

constexpr int64_t kBlock = 32;  // numbers whose count is known become vectors

/// What numbers are multiplied by: one number for all of them, or one for each.
template <bool kIsEach>
struct Factors {
  const double* exact;
  const float* quick;  // the nearest floats
  Factors behind(int64_t count) const { return kIsEach ? Factors{exact + count, quick + count} : *this; }
  double of(int64_t i) const { return exact[kIsEach ? i : 0]; }
  float quick_of(int64_t i) const { return quick[kIsEach ? i : 0]; }
};

template <class Number>
Number load(const uint8_t* from, int64_t index) {
  Number number;  // the bytes of a file may lie at any address
  std::memcpy(&number, from + static_cast<size_t>(index) * sizeof(Number), sizeof(Number));
  return number;
}

template <class Format, bool kIsEach>
[[gnu::always_inline]] inline void scale_block(uint8_t* numbers, const Factors<kIsEach>& factors) {
  typename Format::Stored products[kBlock];
  for (int64_t i = 0; i < kBlock; ++i)
    products[i] = Format::narrowed(Format::widened(load<typename Format::Stored>(numbers, i)) * factors.of(i));
  std::memcpy(numbers, products, sizeof(products));
}

/// One number of 16 bits times a float. The highest bit of `outside` becomes one where the result may not be what the
/// product itself is rounded to: where there is no hidden bit, or the float, which is less than three units of its last
/// place off, is near the middle between two results.
template <class Format, bool kIsExact>
[[gnu::always_inline]] inline uint32_t quick_product(uint32_t bits, float factor, uint32_t& outside) {
  constexpr uint32_t kUnit = 1U << Format::kPlaces, kNear = 4;
  const auto product = std::bit_cast<uint32_t>(Format::quickly_widened(bits, outside) * factor);
  const uint32_t magnitude = product & 0x7fffffffU;
  outside |= (Format::kMost - magnitude) | ((magnitude - Format::kLeast) & ~(magnitude - 1));
  if constexpr (!kIsExact) {
    const uint32_t from = (magnitude & (kUnit - 1)) - (kUnit / 2 - kNear);
    outside |= ~(from | (2 * kNear - from));
  }
  return Format::quickly_narrowed(product);
}

/// The same as scale_block by floats, two numbers at a time as they lie in 32 bits. False, and nothing is changed,
/// where that may make a difference.
template <class Format, bool kIsExact, bool kIsEach>
[[gnu::always_inline]] inline bool scale_quickly(uint8_t* numbers, const Factors<kIsEach>& factors) {
  uint32_t products[kBlock / 2], outside = 0;
  for (int64_t i = 0; i < kBlock / 2; ++i) {
    const auto pair = load<uint32_t>(numbers, i);
    const uint32_t low = quick_product<Format, kIsExact>(pair & 0xffffU, factors.quick_of(2 * i), outside);
    const uint32_t high = quick_product<Format, kIsExact>(pair >> 16U, factors.quick_of(2 * i + 1), outside);
    products[i] = low | high << 16U;
  }
  if (outside >> 31U != 0) return false;
  std::memcpy(numbers, products, sizeof(products));
  return true;
}

/// Numbers times factors, in place.
template <class Format, bool kIsExact, bool kIsEach>
[[gnu::always_inline]] inline void scale_run(uint8_t* bytes, int64_t count, const Factors<kIsEach>& factors) {
  using Stored = typename Format::Stored;
  int64_t done = 0;
  for (; done + kBlock <= count; done += kBlock) {
    uint8_t* const at = bytes + static_cast<size_t>(done) * sizeof(Stored);
    const Factors<kIsEach> these = factors.behind(done);
    if constexpr (sizeof(Stored) == 2) {
      if (scale_quickly<Format, kIsExact>(at, these)) continue;
    }
    scale_block<Format>(at, these);
  }
  for (; done < count; ++done) {
    const Stored number = Format::narrowed(Format::widened(load<Stored>(bytes, done)) * factors.of(done));
    std::memcpy(bytes + static_cast<size_t>(done) * sizeof(Stored), &number, sizeof(Stored));
  }
}

template <class Format, bool kIsExact, bool kIsEach>
TONNX_WIDE void scale_run_widely(uint8_t* bytes, int64_t count, const Factors<kIsEach>& factors) {
  scale_run<Format, kIsExact>(bytes, count, factors);
}

template <bool kIsExact, bool kIsEach>
void scale_any(DType dtype, uint8_t* bytes, int64_t count, const Factors<kIsEach>& factors) {
  with_format(dtype, [&]<class Format>(Format) {
    if (has_wide_vectors())
      scale_run_widely<Format, kIsExact>(bytes, count, factors);
    else
      scale_run<Format, kIsExact>(bytes, count, factors);
  });
}

/// A factor as a float, if it has all digits of one; otherwise no number, so that nothing becomes of it.
float quick_factor(double factor) {
  const auto near = static_cast<float>(factor);
  const bool is_normal = factor == 0 || std::isnormal(near);
  return is_normal ? near : std::numeric_limits<float>::quiet_NaN();
}

/// Whether products of numbers of 16 bits with the factor are floats: they have 11 digits at most, and floats 24.
bool is_short(double factor) {
  constexpr uint64_t kRest = (uint64_t{1} << (52 - 12)) - 1;
  return (std::bit_cast<uint64_t>(factor) & kRest) == 0;
}

/// The bits of a number but for its sign: of what is not finite they are larger.
template <class Bits>
Bits magnitude_of(Bits bits) {
  return bits & std::numeric_limits<Bits>::max();
}

/// The largest magnitude of numbers of which these are the bits, by vectors of so many of them.
template <class Bits, size_t kCount>
[[gnu::always_inline]] inline Bits largest_by_vectors(const uint8_t* numbers, int64_t count) {
  typedef Bits Vector __attribute__((vector_size(kCount * sizeof(Bits))));  // NOLINT: `using` knows no such sizes
  constexpr int64_t kVectors = 4, kLine = kVectors * kCount;
  Vector largest[kVectors] = {}, bits[kVectors];
  int64_t done = 0;
  for (; done + kLine <= count; done += kLine) {
    std::memcpy(bits, numbers + static_cast<size_t>(done) * sizeof(Bits), sizeof(bits));
    for (int64_t i = 0; i < kVectors; ++i) {
      const Vector magnitude = bits[i] & std::numeric_limits<Bits>::max();
      largest[i] = magnitude > largest[i] ? magnitude : largest[i];
    }
  }
  Bits result = 0, all[kLine];
  std::memcpy(all, largest, sizeof(all));
  for (const Bits one : all) result = std::max(result, one);
  for (; done < count; ++done) {
    std::memcpy(all, numbers + static_cast<size_t>(done) * sizeof(Bits), sizeof(Bits));
    result = std::max(result, magnitude_of(all[0]));
  }
  return result;
}

TONNX_WIDE int32_t largest_by_wide_vectors(const uint8_t* numbers, int64_t count) {
  return largest_by_vectors<int32_t, kWideVector / sizeof(int32_t)>(numbers, count);
}

template <class Bits>
Bits largest_bits(const uint8_t* numbers, int64_t count) {
  if constexpr (sizeof(Bits) == sizeof(int32_t)) {  // the one for which there is more in wide vectors than their size
    if (has_wide_vectors()) return largest_by_wide_vectors(numbers, count);
  }
  return largest_by_vectors<Bits, 16 / sizeof(Bits)>(numbers, count);
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
  constexpr int64_t kWindow = (int64_t{1} << 17) / sizeof(Bits);  // few enough to stay in a cache
  const bool is_in_file = weights.data.owner() && weights.data.owner()->fd() >= 0;
  std::vector<uint8_t> window(is_in_file ? static_cast<size_t>(std::min(end - first, kWindow)) * sizeof(Bits) : 0);
  const bool is_row = layout.inner == 1 && layout.block == 0;
  const int64_t length = is_row ? layout.outer : layout.inner;
  for (int64_t begin = first; begin < end; begin += kWindow) {
    const int64_t window_end = std::min(end, begin + kWindow);
    const size_t size = static_cast<size_t>(window_end - begin) * sizeof(Bits);
    const Bytes part = weights.data.slice(static_cast<size_t>(begin) * sizeof(Bits), size);
    if (is_in_file) copy_bytes(part, window.data());  // not its pages: to find them takes longer, and they hold memory
    const uint8_t* const numbers = is_in_file ? window.data() : part.data();
    for (int64_t at = begin; at < window_end;) {
      const int64_t stop = std::min(window_end, (at / length + 1) * length);
      const uint8_t* run = numbers + static_cast<size_t>(at - begin) * sizeof(Bits);
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

ScaledNumbers::ScaledNumbers(Tensor weights, const ChannelLayout& layout, std::vector<double> factor)
    : weights_(std::move(weights)), layout_(layout), factor_(std::move(factor)) {
  for (const double each : factor_) quick_.push_back(quick_factor(each));
  is_exact_ = std::all_of(factor_.begin(), factor_.end(), is_short);
}

template <bool kIsEach>
void ScaledNumbers::scale(uint8_t* run, int64_t count, size_t channel) const {
  const Factors<kIsEach> factors{factor_.data() + channel, quick_.data() + channel};
  if (is_exact_)
    scale_any<true>(weights_.dtype, run, count, factors);
  else
    scale_any<false>(weights_.dtype, run, count, factors);
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
    uint8_t* run = into + static_cast<size_t>(at - start) * width;
    if (is_row)
      scale<true>(run, stop - at, layout_.channel(at));
    else
      scale<false>(run, stop - at, layout_.channel(at));
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
    constexpr int64_t kPart = int64_t{1} << 18, kCost = int64_t{1} << 18;  // a thread is worth having for 4 of them
    const int64_t count = weights.count();
    const auto look = [&](int64_t first, int64_t end) {
      const std::vector<Bits> part = largest_among<Bits>(weights, layout, first * kPart, std::min(end * kPart, count));
      const std::lock_guard lock(mutex);
      for (size_t c = 0; c < part.size(); ++c) largest[c] = std::max(largest[c], part[c]);
    };
    in_parallel((count + kPart - 1) / kPart, look, kCost);
    std::vector<double> result;
    for (const Bits bits : largest) result.push_back(Format::widened(std::bit_cast<Stored>(bits)));
    return result;
  });
}

}  // namespace tonnx
