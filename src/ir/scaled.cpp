// scaled.cpp - multiplies weights by a number for each channel, and looks for the largest of each.
#include "ir/scaled.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tonnx {
namespace {

/// Numbers times what `factor_of` gives for each, in place; the bytes of a file may lie at any address.
template <class Number, class FactorOf>
void scale_run(uint8_t* bytes, int64_t count, FactorOf&& factor_of) {
  constexpr int64_t kBlock = 16;  // a copy whose size is known is none
  Number numbers[kBlock];
  int64_t done = 0;
  for (; done + kBlock <= count; done += kBlock) {
    uint8_t* const at = bytes + static_cast<size_t>(done) * sizeof(Number);
    std::memcpy(numbers, at, sizeof(numbers));
    for (int64_t i = 0; i < kBlock; ++i) numbers[i] = static_cast<Number>(numbers[i] * factor_of(done + i));
    std::memcpy(at, numbers, sizeof(numbers));
  }
  for (; done < count; ++done) {
    uint8_t* const at = bytes + static_cast<size_t>(done) * sizeof(Number);
    std::memcpy(numbers, at, sizeof(Number));
    numbers[0] = static_cast<Number>(numbers[0] * factor_of(done));
    std::memcpy(at, numbers, sizeof(Number));
  }
}

/// The largest of the numbers whose bits, but for the sign, these are. Bits of what is not finite are larger.
int32_t largest_bits(const uint8_t* floats, int64_t count) {
  constexpr int64_t kBlock = 16;
  int32_t largest[kBlock] = {}, bits[kBlock];
  int64_t done = 0;
  for (; done + kBlock <= count; done += kBlock) {
    std::memcpy(bits, floats + static_cast<size_t>(done) * sizeof(float), sizeof(bits));
    for (int64_t i = 0; i < kBlock; ++i) {  // not std::max: of references GCC makes no vectors
      const int32_t magnitude = bits[i] & 0x7fffffff, before = largest[i];
      largest[i] = magnitude > before ? magnitude : before;
    }
  }
  for (; done < count; ++done) {
    std::memcpy(bits, floats + static_cast<size_t>(done) * sizeof(float), sizeof(float));
    largest[0] = std::max(largest[0], bits[0] & 0x7fffffff);
  }
  return *std::max_element(std::begin(largest), std::end(largest));
}

/// The same for rows of numbers that each belong to another channel, from channel `first` on.
void raise_bits(const uint8_t* floats, int64_t first, int64_t count, std::vector<int32_t>& largest) {
  auto channel = static_cast<size_t>(first);
  for (int64_t i = 0; i < count; ++i) {
    int32_t bits = 0;
    std::memcpy(&bits, floats + static_cast<size_t>(i) * sizeof(float), sizeof(bits));
    largest[channel] = std::max(largest[channel], bits & 0x7fffffff);
    if (++channel == largest.size()) channel = 0;
  }
}

}  // namespace

template <class FactorOf>
void ScaledNumbers::scale(uint8_t* run, int64_t count, FactorOf&& factor_of) const {
  if (weights_.dtype == DType::Float32) return scale_run<float>(run, count, factor_of);
  if (weights_.dtype == DType::Float64) return scale_run<double>(run, count, factor_of);
  Tensor before;
  before.dtype = weights_.dtype;
  before.data = Bytes(nullptr, run, static_cast<size_t>(byte_size(before.dtype, count)));
  for (int64_t i = 0; i < count; ++i)
    set_element_bits(before.dtype, run, i, bits_of(before.dtype, element_as_double(before, i) * factor_of(i)));
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
  std::vector<double> result(static_cast<size_t>(layout.channels));
  std::vector<int32_t> largest(result.size());
  constexpr int64_t kWindow = int64_t{1} << 16;
  const int64_t count = weights.count(), width = byte_size(weights.dtype, 1);
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(count, kWindow) * width));
  Tensor window;
  window.dtype = weights.dtype;
  for (int64_t first = 0; first < count; first += kWindow) {
    const int64_t end = std::min(count, first + kWindow);
    window.data = Bytes(nullptr, bytes.data(), static_cast<size_t>((end - first) * width));
    copy_bytes(weights.data.slice(static_cast<size_t>(first * width), window.data.size()), bytes.data());
    if (weights.dtype != DType::Float32) {
      for (int64_t i = first; i < end; ++i) {
        const double value = std::abs(element_as_double(window, i - first));
        if (std::isnan(value)) return std::vector<double>(result.size(), value);
        double& of_channel = result[layout.channel(i)];
        of_channel = std::max(of_channel, value);
      }
    } else if (layout.inner == 1 && layout.block == 0) {
      raise_bits(bytes.data(), first % layout.outer, end - first, largest);
    } else {
      for (int64_t at = first; at < end;) {
        const int64_t stop = std::min(end, (at / layout.inner + 1) * layout.inner);
        int32_t& of_channel = largest[layout.channel(at)];
        of_channel = std::max(of_channel, largest_bits(bytes.data() + (at - first) * width, stop - at));
        at = stop;
      }
    }
  }
  for (size_t c = 0; c < result.size() && weights.dtype == DType::Float32; ++c)
    result[c] = std::bit_cast<float>(largest[c]);
  return result;
}

}  // namespace tonnx
