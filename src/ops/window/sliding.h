// sliding.h - windows that slide over up to three dimensions, as numbers: what convolutions and pools walk along.
#pragma once
#include <algorithm>
#include <array>

#include "ops/frame/eval_elements.h"
#include "ops/window/window.h"

namespace tonnx {

/// One dimension. Window `s` and element `k` of it meet the tensor at `s * stride + k * dilation - begin`.
struct SlidingAxis {
  int64_t size = 1;     // of what the window slides over
  int64_t windows = 1;  // how many there are
  int64_t kernel = 1, stride = 1, dilation = 1, begin = 0;

  int64_t at(int64_t window, int64_t k) const { return window * stride + k * dilation - begin; }
  /// The windows whose element `k` lies inside: from the first to before the second.
  std::pair<int64_t, int64_t> inside(int64_t k) const {
    const int64_t shift = begin - k * dilation;  // at(s, k) = s * stride - shift
    const int64_t first = shift <= 0 ? 0 : (shift + stride - 1) / stride;
    const int64_t last = size + shift <= 0 ? 0 : (size + shift + stride - 1) / stride;
    return {std::min(first, windows), std::clamp(last, std::min(first, windows), windows)};
  }
};

/// The spatial dimensions, those that are missing in front.
using SlidingAxes = std::array<SlidingAxis, 3>;

/// Those that the window has over a tensor [N, C, sizes] with a result [N, C, windows]; nothing past three dimensions.
inline std::optional<SlidingAxes> sliding_axes(const Window& window, const std::vector<int64_t>& dims,
                                               const std::vector<int64_t>& windows) {
  const size_t rank = window.rank();
  if (rank < 1 || rank > 3 || dims.size() != rank + 2 || windows.size() != rank + 2) return std::nullopt;
  SlidingAxes axes;
  for (size_t i = 0; i < rank; ++i) {
    const auto kernel = window.kernel[i].constant(), begin = window.begin[i].constant();
    if (!kernel || !begin) return std::nullopt;
    axes[3 - rank + i] = {dims[i + 2], windows[i + 2], *kernel, window.strides[i], window.dilations[i], *begin};
  }
  return axes;
}

inline int64_t kernel_count(const SlidingAxes& axes) { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
inline int64_t window_count(const SlidingAxes& axes) { return axes[0].windows * axes[1].windows * axes[2].windows; }
inline int64_t element_count(const SlidingAxes& axes) { return axes[0].size * axes[1].size * axes[2].size; }

}  // namespace tonnx
