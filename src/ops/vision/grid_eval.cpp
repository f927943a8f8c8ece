// grid_eval.cpp - evaluation of samples where a grid says: GridSample, AffineGrid.
#include <algorithm>
#include <cmath>

#include "ops/frame/eval_elements.h"
#include "ops/vision/rows.h"

namespace tonnx {
namespace {

enum class Padding { Zeros, Border, Reflection };

/// Back and forth between two borders.
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double away = std::fmod(std::fabs(x - low), 2 * range);
  return away <= range ? low + away : high - (away - range);
}

/// How samples lie along one dimension of the image.
struct GridAxis {
  int64_t size;
  bool aligns;
  Padding padding;

  double low() const { return aligns ? 0 : -0.5; }
  double high() const { return static_cast<double>(size) + (aligns ? -1.0 : -0.5); }

  /// The place that a number from -1 to 1 stands for. In the precision of the grid, for what it is rounded to depends
  /// on it.
  double place(double at, bool is_double) const {
    if (is_double) {
      const auto length = static_cast<double>(size);
      return aligns ? (at + 1) / 2 * (length - 1) : ((at + 1) * length - 1) / 2;
    }
    const auto x = static_cast<float>(at), length = static_cast<float>(size);
    return static_cast<double>(aligns ? (x + 1) / 2 * (length - 1) : ((x + 1) * length - 1) / 2);
  }
  /// A place outside brought inside, as the padding asks for. Cubic samples lie where they are: only their elements are
  /// brought inside.
  double inside(double x, bool is_cubic) const {
    if (is_cubic || (x >= low() && x <= high())) return x;
    if (padding == Padding::Border) return std::clamp(x, 0.0, static_cast<double>(size - 1));
    return padding == Padding::Reflection ? reflected(x, low(), high()) : x;
  }
  /// The element at a whole number; -1: it is zero.
  int64_t element(int64_t i) const {
    if (i >= 0 && i < size) return i;
    if (padding == Padding::Zeros) return -1;
    const double x =
        padding == Padding::Border ? static_cast<double>(i) : reflected(static_cast<double>(i), low(), high());
    return std::clamp<int64_t>(static_cast<int64_t>(x), 0, size - 1);
  }
};

struct Tap {
  int64_t at;
  double weight;
};

double cubic(double distance) {
  constexpr double a = -0.75;
  const double d = std::fabs(distance);
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : (((d - 5) * d + 8) * d - 4) * a;
}

/// The elements that count for a place; those that are zero are left out.
std::vector<Tap> taps_of(const GridAxis& axis, double x, std::string_view mode) {
  std::vector<Tap> taps;
  const auto add = [&](int64_t i, double weight) {
    if (const int64_t at = axis.element(i); at >= 0) taps.push_back({at, weight});
  };
  if (mode == "nearest") {
    add(static_cast<int64_t>(x), 1);
    return taps;
  }
  const auto base = static_cast<int64_t>(std::floor(x));
  const int64_t first = mode == "linear" ? 0 : -1, last = mode == "linear" ? 1 : 2;
  for (int64_t i = first; i <= last; ++i) {
    const double distance = x - static_cast<double>(base + i);
    add(base + i, mode == "linear" ? 1 - std::fabs(distance) : cubic(distance));
  }
  return taps;
}

/// The taps of all dimensions multiplied out.
std::vector<Tap> grid_product(const std::vector<Tap>& outer, const std::vector<Tap>& inner, int64_t size) {
  std::vector<Tap> result;
  for (const Tap& a : outer) {
    for (const Tap& b : inner) result.push_back({a.at * size + b.at, a.weight * b.weight});
  }
  return result;
}

}  // namespace

Results eval_grid_sample(const NodeView& n) {
  const TensorPtr x = n.find_constant("X"), grid = n.find_constant("grid");
  const auto dims = static_dims(n.node().output(0));
  const std::string mode = n.s("mode"), padding = n.s("padding_mode");
  if (!dims || x->dims.size() < 3 || grid->dims.size() != x->dims.size() || !is_float(grid->dtype) ||
      !is_plain_number(grid->dtype) || grid->dims[0] != x->dims[0])
    return {};
  const size_t rank = x->dims.size() - 2;
  if (grid->dims.back() != static_cast<int64_t>(rank) || x->count() == 0) return {};
  if (mode != "nearest" && (!is_float(x->dtype) || !is_plain_number(x->dtype))) return {};
  const Padding kind = padding == "border"  ? Padding::Border
                       : padding == "zeros" ? Padding::Zeros
                                            : Padding::Reflection;
  std::vector<GridAxis> axes;
  int64_t plane = 1, taps_of_axis = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4, taps_of_all = 1;
  for (size_t i = 0; i < rank; ++i) {
    axes.push_back({x->dims[i + 2], n.flag("align_corners"), kind});
    plane *= x->dims[i + 2];
    taps_of_all *= taps_of_axis;
    if (taps_of_all > 4096) return {};
  }
  const int64_t channels = x->dims[1], samples = count_of(std::vector(grid->dims.begin() + 1, grid->dims.end() - 1));
  if (!is_feasible({grid->dims[0], samples, taps_of_all, channels + 8})) return {};
  const std::vector<double> places = numbers_of(*grid);
  const bool moves = mode == "nearest";
  const std::vector<double> numbers = moves ? std::vector<double>() : numbers_of(*x);
  std::vector<double> sums(moves ? 0 : static_cast<size_t>(count_of(*dims)));
  Elements moved(x->dtype, *dims);
  for (int64_t i = 0; i < grid->dims[0] * samples; ++i) {
    std::vector<Tap> taps{{0, 1}};
    for (size_t d = 0; d < rank; ++d) {
      // the last number of the grid is the first dimension of the image
      double at = axes[d].place(places[static_cast<size_t>(i) * rank + rank - 1 - d], grid->dtype == DType::Float64);
      if (!(std::fabs(at) < 1e9)) return {};
      if (moves) at = std::nearbyint(at);
      taps = grid_product(taps, taps_of(axes[d], axes[d].inside(at, mode == "cubic"), mode), axes[d].size);
    }
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t from = (i / samples * channels + c) * plane,
                    to = (i / samples * channels + c) * samples + i % samples;
      for (const Tap& tap : taps) {
        if (moves)
          moved.copy(to, *x, from + tap.at);
        else
          sums[static_cast<size_t>(to)] += tap.weight * numbers[static_cast<size_t>(from + tap.at)];
      }
    }
  }
  return moves ? moved.done() : tensor_of(x->dtype, *dims, sums);
}

Results eval_affine_grid(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr theta = n.find_constant("theta");
  const auto dims = static_dims(n.node().output(0));
  if (!dims || theta->dims.size() != 3 || !is_plain_number(theta->dtype)) return {};
  const auto rank = static_cast<size_t>(theta->dims[1]);
  if (rank < 2 || rank > 3 || theta->dims[2] != theta->dims[1] + 1 || dims->size() != rank + 2 ||
      (*dims)[0] != theta->dims[0])
    return {};
  const std::vector<double> matrix = numbers_of(*theta);
  const bool aligns = n.flag("align_corners");
  std::vector<double> result;
  const std::vector<int64_t> sizes{dims->begin() + 1, dims->end() - 1};
  for (const int64_t size : sizes) {
    if (aligns && size == 1) return {};
  }
  for (int64_t batch = 0; batch < (*dims)[0]; ++batch) {
    IndexWalk walk(sizes);
    for (int64_t i = count_of(sizes); i > 0; --i, walk.next()) {
      double at[4] = {};
      for (size_t d = 0; d < rank; ++d) {
        const auto place = static_cast<double>(walk[rank - 1 - d]), size = static_cast<double>(sizes[rank - 1 - d]);
        at[d] = aligns ? 2 * place / (size - 1) - 1 : (2 * place + 1) / size - 1;
      }
      at[rank] = 1;
      for (size_t row = 0; row < rank; ++row) {
        double sum = 0;
        for (size_t d = 0; d <= rank; ++d)
          sum += matrix[(static_cast<size_t>(batch) * rank + row) * (rank + 1) + d] * at[d];
        result.push_back(sum);
      }
    }
  }
  return tensor_of(theta->dtype, *dims, result);
}

}  // namespace tonnx
