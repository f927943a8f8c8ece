// scaled.h - weights whose channels are each multiplied by a number, when they are written.
#pragma once
#include <vector>

#include "base/computed.h"
#include "ir/tensor.h"

namespace tonnx {

/// Where the output channels lie in the weight: elements of `inner` that follow each other belong to one of `outer`
/// channels, and every `block` of elements of the weight is another group.
struct ChannelLayout {
  int64_t inner = 1, outer = 1, block = 0, channels = 1;

  size_t channel(int64_t element) const {
    const int64_t in_group = element / inner % outer;
    return static_cast<size_t>(block > 0 ? element / block * outer + in_group : in_group);
  }
  bool operator==(const ChannelLayout&) const = default;
};

/// Weights of a float type that are scaled when they are written.
class ScaledNumbers : public ComputedBytes {
 public:
  ScaledNumbers(Tensor weights, const ChannelLayout& layout, std::vector<double> factor);

  const uint8_t* begin() const override { return weights_.data.data(); }
  size_t size() const override { return weights_.data.size(); }
  void compute(size_t offset, uint8_t* into, size_t size) const override;

  const Tensor& weights() const { return weights_; }
  const ChannelLayout& layout() const { return layout_; }
  const std::vector<double>& factor() const { return factor_; }

 private:
  /// Numbers of one channel, or of one channel each.
  template <bool kIsEach>
  void scale(uint8_t* run, int64_t count, size_t channel) const;

  Tensor weights_;
  ChannelLayout layout_;
  std::vector<double> factor_;
  std::vector<float> quick_;  // the same as floats
  bool is_exact_;             // whether products of numbers of 16 bits are floats
};

/// The largest magnitude in each channel of weights of a float type; no finite number where one of its weights is none.
std::vector<double> largest_of_channels(const Tensor& weights, const ChannelLayout& layout);

}  // namespace tonnx
