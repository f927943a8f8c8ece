// weights_eval.cpp - sums over quantised weights, and weights less their zero points.
#include "ops/quantize/weights_eval.h"

#include <algorithm>
#include <numeric>

namespace tonnx {
namespace {

constexpr int64_t kLanes = 16;          // so many weights at once: the compiler makes vectors of them
constexpr int64_t kManyRows = 1 << 20;  // of 255, the most that two numbers of 8 bits differ by, are within 32 bits

/// The weights of one outer place in rows, where each column belongs to another sum; those of a single sum stand in
/// rows of 16, whose columns are parts of it.
struct Rows {
  int64_t count, width;
  std::vector<int32_t> zeros;  // of each column

  Rows(const SumLayout& layout, const std::vector<int64_t>& zero_points, int64_t outer)
      : count(layout.terms * layout.inner), width(layout.inner == 1 ? kLanes : layout.inner) {
    if (zero_points.size() != 1 && layout.inner != 1) {
      zeros.assign(zero_points.begin(), zero_points.end());
    } else {
      const int64_t zero = zero_points[zero_points.size() == 1 ? 0 : static_cast<size_t>(outer)];
      zeros.assign(static_cast<size_t>(width), static_cast<int32_t>(zero));
    }
  }
};

/// Calls `use(i)` for each below the count.
template <class Use>
void each_lane(int64_t count, Use&& use) {
  int64_t first = 0;
  for (; first + kLanes <= count; first += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) use(first + lane);
  }
  for (; first < count; ++first) use(first);
}

template <class T>
void add_row(const T* weights, int64_t count, const int32_t* zeros, int32_t* above, int32_t* below) {
  each_lane(count, [=](int64_t i) {
    const int32_t value = weights[i] - zeros[i];
    above[i] += value > 0 ? value : 0;
    below[i] += value < 0 ? -value : 0;
  });
}

/// Not 0 where one of them does not fit into 8 bits.
template <class T>
int32_t center_row(const T* weights, int64_t count, const int32_t* zeros, uint8_t* to) {
  int32_t beyond = 0;
  each_lane(count, [=, &beyond](int64_t i) {
    const int32_t value = weights[i] - zeros[i];
    to[i] = static_cast<uint8_t>(value);
    beyond |= (value + 128) >> 8;
  });
  return beyond;
}

template <class T>
int64_t largest_sum_of(const T* weights, const Rows& rows, bool is_one_sum) {
  const auto width = static_cast<size_t>(rows.width);
  std::vector<int32_t> above(width), below(width);
  std::vector<int64_t> all_above(width), all_below(width);
  for (int64_t first = 0; first < rows.count; first += kManyRows * rows.width) {
    const int64_t end = std::min(rows.count, first + kManyRows * rows.width);
    for (int64_t at = first; at < end; at += rows.width)
      add_row(weights + at, std::min(rows.width, end - at), rows.zeros.data(), above.data(), below.data());
    for (size_t i = 0; i < width; ++i) {
      all_above[i] += std::exchange(above[i], 0);
      all_below[i] += std::exchange(below[i], 0);
    }
  }
  const auto of = [&](const std::vector<int64_t>& sums) {
    if (is_one_sum) return std::accumulate(sums.begin(), sums.end(), int64_t{0});
    return sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
  };
  return std::max(of(all_above), of(all_below));
}

/// Calls `use(weights, rows, o)` for the weights of each outer place, which are of the type that they are.
template <class Use>
void each_outer(const Tensor& weights, const std::vector<int64_t>& zero_points, const SumLayout& layout, Use&& use) {
  for (int64_t o = 0; o < layout.outer; ++o) {
    const Rows rows(layout, zero_points, o);
    const uint8_t* data = weights.data.data() + o * rows.count;
    if (weights.dtype == DType::Int8) {
      use(reinterpret_cast<const int8_t*>(data), rows, o);
    } else {
      use(data, rows, o);
    }
  }
}

}  // namespace

SumLayout SumLayout::of_conv(const std::vector<int64_t>& dims) {
  return {dims[0], count_of(std::vector(dims.begin() + 1, dims.end())), 1};
}

SumLayout SumLayout::of_matrix(const std::vector<int64_t>& dims) {
  if (dims.size() == 1) return {1, dims[0], 1};
  return {count_of(std::vector(dims.begin(), dims.end() - 2)), dims[dims.size() - 2], dims.back()};
}

double largest_sum(const Tensor& weights, const std::vector<int64_t>& zero_points, const SumLayout& layout) {
  int64_t largest = 0;
  each_outer(weights, zero_points, layout, [&](const auto* data, const Rows& rows, int64_t) {
    largest = std::max(largest, largest_sum_of(data, rows, layout.inner == 1));
  });
  return static_cast<double>(largest);
}

TensorPtr centered_in_bytes(const Tensor& weights, const std::vector<int64_t>& zero_points, const SumLayout& layout) {
  std::vector<uint8_t> bytes(weights.data.size());
  int32_t beyond = 0;
  each_outer(weights, zero_points, layout, [&](const auto* data, const Rows& rows, int64_t o) {
    uint8_t* to = bytes.data() + o * rows.count;
    for (int64_t at = 0; at < rows.count; at += rows.width)
      beyond |= center_row(data + at, std::min(rows.width, rows.count - at), rows.zeros.data(), to + at);
  });
  if (beyond != 0) return nullptr;
  auto result = std::make_shared<Tensor>();
  result->dtype = DType::Int8;
  result->dims = weights.dims;
  result->data = Bytes::own(std::move(bytes));
  return result;
}

}  // namespace tonnx
