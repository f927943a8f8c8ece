// eval.cpp - evaluation of pools: over sliding windows, whole planes and regions.
#include <cmath>

#include "ops/pool/rows.h"
#include "ops/window/sliding.h"

namespace tonnx {
namespace {

/// The windows of a pool over X.
struct Pool {
  Window window;
  SlidingAxes axes;
  std::vector<int64_t> dims;  // of the result
  int64_t planes;
};

std::optional<Pool> pool_of(const NodeView& n, const Tensor& x) {
  const auto dims = static_dims(n.node().output(0));
  if (!dims || !is_plain_number(x.dtype) || x.dims.size() < 3) return std::nullopt;
  const Window window = window_of(n);
  const auto axes = sliding_axes(window, x.dims, *dims);
  if (!axes || (*dims)[0] != x.dims[0] || (*dims)[1] != x.dims[1]) return std::nullopt;
  const int64_t planes = x.dims[0] * x.dims[1];
  if (!is_feasible({planes, kernel_count(*axes), window_count(*axes)})) return std::nullopt;
  return Pool{window, *axes, *dims, planes};
}

/// Calls `use(at)` for each element of a plane that the window has.
template <class Use>
void for_each_element(const SlidingAxes& axes, int64_t window, Use&& use) {
  const auto& [a, b, c] = axes;
  const int64_t x = window / (b.windows * c.windows), y = window / c.windows % b.windows, z = window % c.windows;
  for (int64_t i = 0; i < a.kernel; ++i) {
    const int64_t at_a = a.at(x, i);
    if (at_a < 0 || at_a >= a.size) continue;
    for (int64_t j = 0; j < b.kernel; ++j) {
      const int64_t at_b = b.at(y, j);
      if (at_b < 0 || at_b >= b.size) continue;
      for (int64_t k = 0; k < c.kernel; ++k) {
        const int64_t at_c = c.at(z, k);
        if (at_c >= 0 && at_c < c.size) use((at_a * b.size + at_b) * c.size + at_c);
      }
    }
  }
}

/// `of_window(plane, window)` for each.
template <class OfWindow>
std::vector<double> pooled(const Pool& pool, OfWindow&& of_window) {
  const int64_t windows = window_count(pool.axes);
  std::vector<double> result(static_cast<size_t>(pool.planes * windows));
  for_each_in_parallel(pool.planes, windows * kernel_count(pool.axes), [&](int64_t plane) {
    for (int64_t w = 0; w < windows; ++w) result[static_cast<size_t>(plane * windows + w)] = of_window(plane, w);
  });
  return result;
}

/// How many elements of each dimension count: those inside, or those in the pads that were asked for too.
int64_t counted(const Pool& pool, int64_t window, bool pads_count) {
  int64_t result = 1;
  for (size_t i = 3; i-- > 0;) {
    const SlidingAxis& axis = pool.axes[i];
    const int64_t at = window % axis.windows;
    window /= axis.windows;
    const size_t given = i + pool.window.rank();  // the number of the dimension, plus three
    const int64_t end = given < 3 ? 0 : pool.window.end[given - 3].constant().value_or(0);
    const int64_t low = pads_count ? -axis.begin : 0, high = pads_count ? axis.size + end : axis.size;
    int64_t inside = 0;
    for (int64_t k = 0; k < axis.kernel; ++k) inside += axis.at(at, k) >= low && axis.at(at, k) < high ? 1 : 0;
    result *= inside;
  }
  return result;
}

double root(double sum, int64_t p) {
  return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1.0 / static_cast<double>(p));
}

}  // namespace

Results eval_max_pool(const NodeView& n) {
  const TensorPtr x = n.find_constant("X");
  const auto pool = pool_of(n, *x);
  if (!pool) return {};
  const std::vector<double> numbers = numbers_of(*x);
  const int64_t plane_size = element_count(pool->axes), windows = window_count(pool->axes);
  std::vector<int64_t> places(static_cast<size_t>(pool->planes * windows));
  const std::vector<double> values = pooled(*pool, [&](int64_t plane, int64_t window) {
    const double* elements = numbers.data() + plane * plane_size;
    int64_t best = -1;
    for_each_element(pool->axes, window, [&](int64_t at) {
      const bool is_better = best < 0 || elements[at] > elements[best] || std::isnan(elements[at]);
      if (is_better && (best < 0 || !std::isnan(elements[best]))) best = at;
    });
    places[static_cast<size_t>(plane * windows + window)] = best;
    return best < 0 ? 0 : elements[best];
  });
  if (std::any_of(places.begin(), places.end(), [](int64_t at) { return at < 0; })) return {};
  Results results(tensor_of(x->dtype, pool->dims, values));
  const bool by_column = n.i("storage_order") != 0;
  const int64_t rows = pool->axes[1].size, columns = pool->axes[2].size, layers = pool->axes[0].size;
  NewTensor indices(DType::Int64, pool->dims);
  for (int64_t i = 0; i < indices.count(); ++i) {
    int64_t at = places[static_cast<size_t>(i)];
    if (by_column) at = (at % columns * rows + at / columns % rows) * layers + at / columns / rows;
    indices.set(i, i / windows * plane_size + at);
  }
  results.push_back(indices.done());
  return results;
}

Results eval_average_pool(const NodeView& n) {
  const TensorPtr x = n.find_constant("X");
  const auto pool = pool_of(n, *x);
  if (!pool) return {};
  const std::vector<double> numbers = numbers_of(*x);
  const bool pads_count = n.flag("count_include_pad");
  const int64_t plane_size = element_count(pool->axes);
  return tensor_of(x->dtype, pool->dims, pooled(*pool, [&](int64_t plane, int64_t window) {
                     double sum = 0;
                     for_each_element(pool->axes, window, [&](int64_t at) {
                       sum += numbers[static_cast<size_t>(plane * plane_size + at)];
                     });
                     return sum / static_cast<double>(counted(*pool, window, pads_count));
                   }));
}

Results eval_lp_pool(const NodeView& n) {
  const TensorPtr x = n.find_constant("X");
  const auto pool = pool_of(n, *x);
  const int64_t p = n.i("p");
  if (!pool || p < 1) return {};
  const std::vector<double> numbers = numbers_of(*x);
  const int64_t plane_size = element_count(pool->axes);
  return tensor_of(x->dtype, pool->dims, pooled(*pool, [&](int64_t plane, int64_t window) {
                     double sum = 0;
                     for_each_element(pool->axes, window, [&](int64_t at) {
                       const double size = std::fabs(numbers[static_cast<size_t>(plane * plane_size + at)]);
                       sum += p == 1 ? size : std::pow(size, static_cast<double>(p));
                     });
                     return root(sum, p);
                   }));
}

namespace {

/// `of_plane(elements, count)` for each channel of X as a whole.
template <class OfPlane>
Results over_planes(const NodeView& n, OfPlane&& of_plane) {
  const TensorPtr x = n.find_constant("X");
  const auto dims = static_dims(n.node().output(0));
  if (!dims || x->dims.size() < 2 || !is_plain_number(x->dtype)) return {};
  const int64_t planes = x->dims[0] * x->dims[1], size = planes == 0 ? 0 : x->count() / planes;
  if (count_of(*dims) != planes || size == 0) return {};
  const std::vector<double> numbers = numbers_of(*x);
  std::vector<double> result;
  for (int64_t i = 0; i < planes; ++i) result.push_back(of_plane(numbers.data() + i * size, size));
  return tensor_of(x->dtype, *dims, result);
}

}  // namespace

Results eval_global_average_pool(const NodeView& n) {
  return over_planes(n, [](const double* x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += x[i];
    return sum / static_cast<double>(count);
  });
}

Results eval_global_max_pool(const NodeView& n) {
  return over_planes(n, [](const double* x, int64_t count) {
    double most = x[0];
    for (int64_t i = 1; i < count; ++i) most = x[i] > most || std::isnan(x[i]) ? x[i] : most;
    return most;
  });
}

Results eval_global_lp_pool(const NodeView& n) {
  const int64_t p = n.i("p");
  if (p < 1) return {};
  return over_planes(n, [p](const double* x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::pow(std::fabs(x[i]), static_cast<double>(p));
    return root(sum, p);
  });
}

// Regions

namespace {

/// One dimension of a region: where it starts, and how it is divided.
struct RegionAxis {
  double start, bin;
  int64_t samples;  // in each bin
  int64_t size;     // of the feature map

  double at(int64_t bin_number, int64_t sample) const {
    return start + static_cast<double>(bin_number) * bin +
           (static_cast<double>(sample) + 0.5) * bin / static_cast<double>(samples);
  }
};

/// The elements on both sides of a place, and how much each counts; nothing where it is outside.
struct Between {
  int64_t low, high;
  double low_weight, high_weight;
};

std::optional<Between> between(double at, int64_t size) {
  if (!(at >= -1.0 && at <= static_cast<double>(size))) return std::nullopt;
  const double place = std::clamp(at, 0.0, static_cast<double>(size - 1));
  const auto low = static_cast<int64_t>(place);
  const double beyond = place - static_cast<double>(low);
  return Between{low, std::min(low + 1, size - 1), 1 - beyond, beyond};
}

/// One bin of one channel.
double region_value(const double* plane, const RegionAxis& rows, const RegionAxis& columns, int64_t row, int64_t column,
                    bool is_max) {
  double result = 0;
  bool is_first = true;
  for (int64_t i = 0; i < rows.samples; ++i) {
    for (int64_t j = 0; j < columns.samples; ++j) {
      const auto y = between(rows.at(row, i), rows.size), x = between(columns.at(column, j), columns.size);
      double terms[4] = {};
      if (y && x) {
        terms[0] = y->low_weight * x->low_weight * plane[y->low * columns.size + x->low];
        terms[1] = y->low_weight * x->high_weight * plane[y->low * columns.size + x->high];
        terms[2] = y->high_weight * x->low_weight * plane[y->high * columns.size + x->low];
        terms[3] = y->high_weight * x->high_weight * plane[y->high * columns.size + x->high];
      }
      // the greatest of the four weighted neighbours, not of their sums: that is how it is defined
      const double sample = is_max ? *std::max_element(terms, terms + 4) : terms[0] + terms[1] + terms[2] + terms[3];
      result = is_max ? (is_first ? sample : std::max(result, sample)) : result + sample;
      is_first = false;
    }
  }
  const int64_t count = std::max<int64_t>(rows.samples * columns.samples, 1);
  return is_max ? result : result / static_cast<double>(count);
}

}  // namespace

Results eval_roi_align(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("X"), rois = n.find_constant("rois"), batches = n.find_constant("batch_indices");
  const auto dims = static_dims(n.node().output(0));
  const std::string mode = n.s("mode"), transform = n.s("coordinate_transformation_mode");
  if (!dims || x->dims.size() != 4 || rois->dims.size() != 2 || rois->dims[1] != 4 || x->count() == 0 ||
      !is_plain_number(x->dtype) || batches->dims != std::vector{rois->dims[0]} || (mode != "avg" && mode != "max") ||
      (transform != "half_pixel" && transform != "output_half_pixel"))
    return {};
  const bool is_half = transform == "half_pixel";
  const std::vector<double> numbers = numbers_of(*x), boxes = numbers_of(*rois);
  const double scale = n.f("spatial_scale");
  const int64_t ratio = n.i("sampling_ratio");
  std::vector<double> result;
  for (int64_t r = 0; r < rois->dims[0]; ++r) {
    const int64_t batch = element_as_int(*batches, r);
    if (batch < 0 || batch >= x->dims[0]) return {};
    RegionAxis axes[2];
    for (size_t d = 0; d < 2; ++d) {
      const auto at = static_cast<size_t>(r) * 4 + 1 - d;  // y comes second
      const double start = boxes[at] * scale - (is_half ? 0.5 : 0), end = boxes[at + 2] * scale - (is_half ? 0.5 : 0);
      const double length = is_half ? end - start : std::max(end - start, 1.0);
      const double bin = length / static_cast<double>((*dims)[d + 2]);
      if (!(bin < 1e6)) return {};
      const int64_t samples = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(std::max(bin, 0.0)));
      axes[d] = {start, bin, samples, x->dims[d + 2]};
    }
    if (!is_feasible({8, rois->dims[0], (*dims)[1], (*dims)[2], (*dims)[3], axes[0].samples, axes[1].samples}))
      return {};
    for (int64_t c = 0; c < (*dims)[1]; ++c) {
      const double* plane = numbers.data() + (batch * x->dims[1] + c) * x->dims[2] * x->dims[3];
      for (int64_t i = 0; i < (*dims)[2]; ++i) {
        for (int64_t j = 0; j < (*dims)[3]; ++j) {
          result.push_back(region_value(plane, axes[0], axes[1], i, j, mode == "max"));
        }
      }
    }
  }
  return tensor_of(x->dtype, *dims, result);
}

Results eval_max_roi_pool(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("X"), rois = n.find_constant("rois");
  const auto dims = static_dims(n.node().output(0));
  if (!dims || x->dims.size() != 4 || rois->dims.size() != 2 || rois->dims[1] != 5 || !is_plain_number(x->dtype))
    return {};
  const std::vector<double> numbers = numbers_of(*x), boxes = numbers_of(*rois);
  const int64_t height = x->dims[2], width = x->dims[3];
  if (!is_feasible({rois->dims[0], (*dims)[1], (*dims)[2], (*dims)[3], height, width})) return {};
  std::vector<double> result;
  for (int64_t r = 0; r < rois->dims[0]; ++r) {
    const double* box = boxes.data() + r * 5;
    if (!(box[0] >= 0 && box[0] < static_cast<double>(x->dims[0]))) return {};
    int64_t first[2], length[2];
    for (size_t d = 0; d < 2; ++d) {
      const double start = std::round(box[2 - d] * n.f("spatial_scale")),
                   end = std::round(box[4 - d] * n.f("spatial_scale"));
      if (!(std::fabs(start) < 1e9 && std::fabs(end) < 1e9)) return {};
      first[d] = static_cast<int64_t>(start);
      length[d] = std::max<int64_t>(static_cast<int64_t>(end) - first[d] + 1, 1);
    }
    const auto edge = [&](size_t d, int64_t i, bool is_end) {
      // in float32, as everywhere: the edge of a bin depends on it
      const float bin = static_cast<float>(length[d]) / static_cast<float>((*dims)[d + 2]);
      const float at = static_cast<float>(is_end ? i + 1 : i) * bin;
      return std::clamp<int64_t>(static_cast<int64_t>(is_end ? std::ceil(at) : std::floor(at)) + first[d], 0,
                                 d == 0 ? height : width);
    };
    for (int64_t c = 0; c < (*dims)[1]; ++c) {
      const double* plane = numbers.data() + (static_cast<int64_t>(box[0]) * x->dims[1] + c) * height * width;
      for (int64_t i = 0; i < (*dims)[2]; ++i) {
        for (int64_t j = 0; j < (*dims)[3]; ++j) {
          double most = -HUGE_VAL;
          bool is_empty = true;
          for (int64_t h = edge(0, i, false); h < edge(0, i, true); ++h) {
            for (int64_t w = edge(1, j, false); w < edge(1, j, true); ++w) {
              most = std::max(most, plane[h * width + w]);
              is_empty = false;
            }
          }
          result.push_back(is_empty ? 0 : most);
        }
      }
    }
  }
  return tensor_of(x->dtype, *dims, result);
}

}  // namespace tonnx
