// eval.cpp - evaluation of convolutions: of floats, of quantised integers, and transposed.
#include <cmath>

#include "ops/conv/conv.h"
#include "ops/conv/rows.h"
#include "ops/window/sliding.h"

namespace tonnx {
namespace {

/// Adds the weights of one channel times what lies under them. Transposed it is the result that the window slides over.
template <bool kTransposed>
void add_plane(const SlidingAxes& axes, const double* weight, const double* from, double* to) {
  const auto& [a, b, c] = axes;
  for (int64_t i = 0; i < a.kernel; ++i) {
    const auto [first_a, last_a] = a.inside(i);
    for (int64_t j = 0; j < b.kernel; ++j) {
      const auto [first_b, last_b] = b.inside(j);
      for (int64_t k = 0; k < c.kernel; ++k) {
        const auto [first_c, last_c] = c.inside(k);
        const double factor = *weight++;
        for (int64_t x = first_a; x < last_a; ++x) {
          for (int64_t y = first_b; y < last_b; ++y) {
            const int64_t window = (x * b.windows + y) * c.windows;
            const int64_t element = (a.at(x, i) * b.size + b.at(y, j)) * c.size + c.at(0, k);
            if constexpr (kTransposed) {
              for (int64_t z = first_c; z < last_c; ++z) to[element + z * c.stride] += factor * from[window + z];
            } else if (c.stride == 1) {
              for (int64_t z = first_c; z < last_c; ++z) to[window + z] += factor * from[element + z];
            } else {
              for (int64_t z = first_c; z < last_c; ++z) to[window + z] += factor * from[element + z * c.stride];
            }
          }
        }
      }
    }
  }
}

/// What a convolution is made of: numbers, and how they hang together.
struct Convolution {
  std::vector<double> x, weight, bias;  // no bias: empty
  SlidingAxes axes;
  int64_t batch, inputs, outputs, group;  // channels on both sides

  bool is_feasible() const {
    return tonnx::is_feasible({batch, outputs, inputs / group, kernel_count(axes), window_count(axes)});
  }
};

/// The weight is [outputs, inputs / group, ...], or, transposed, [inputs, outputs / group, ...].
template <bool kTransposed>
std::vector<double> convolved(const Convolution& c) {
  const int64_t in = c.inputs / c.group, out = c.outputs / c.group, taps = kernel_count(c.axes);
  const int64_t from_size = kTransposed ? window_count(c.axes) : element_count(c.axes);
  const int64_t to_size = kTransposed ? element_count(c.axes) : window_count(c.axes);
  std::vector<double> result(static_cast<size_t>(c.batch * c.outputs * to_size));
  const int64_t work = in * taps * window_count(c.axes);
  for_each_in_parallel(c.batch * c.outputs, work, [&](int64_t plane) {
    const int64_t n = plane / c.outputs, o = plane % c.outputs, g = o / out;
    double* to = result.data() + plane * to_size;
    if (!c.bias.empty()) std::fill(to, to + to_size, c.bias[static_cast<size_t>(o)]);
    for (int64_t i = 0; i < in; ++i) {
      const int64_t weight = kTransposed ? ((g * in + i) * out + o % out) * taps : (o * in + i) * taps;
      add_plane<kTransposed>(c.axes, c.weight.data() + weight, c.x.data() + (n * c.inputs + g * in + i) * from_size,
                             to);
    }
  });
  return result;
}

Dims kernel_of(const Tensor& weight) { return {weight.dims.begin() + 2, weight.dims.end()}; }

/// What the node says of a convolution that is not transposed; nothing where its parts do not fit.
std::optional<Convolution> convolution_of(const NodeView& n, std::string_view x_name, const Tensor& x, const Tensor& w,
                                          const TensorPtr& bias) {
  const auto dims = static_dims(n.node().output(0));
  const int64_t group = n.i("group");
  if (!dims || x.dims.size() < 3 || w.dims.size() != x.dims.size() || dims->size() != x.dims.size() || group < 1)
    return std::nullopt;
  if (w.dims[1] > INT64_MAX / group || x.dims[1] != w.dims[1] * group || w.dims[0] % group != 0 ||
      (*dims)[0] != x.dims[0] || (*dims)[1] != w.dims[0] || (bias && bias->dims != std::vector{w.dims[0]}))
    return std::nullopt;
  const auto axes = sliding_axes(window_of(n, kernel_of(w), x_name), x.dims, *dims);
  if (!axes) return std::nullopt;
  Convolution c{.axes = *axes, .batch = x.dims[0], .inputs = x.dims[1], .outputs = w.dims[0], .group = group};
  if (!c.is_feasible()) return std::nullopt;
  c.x = numbers_of(x);
  c.weight = numbers_of(w);
  if (bias) c.bias = numbers_of(*bias);
  return c;
}

/// Takes the zero point off, one for all or one for each of the first dimension; says whether it could.
bool subtract_zero(std::vector<double>& values, const TensorPtr& zero, int64_t rows) {
  if (!zero) return true;
  const auto count = static_cast<size_t>(zero->count());
  if (count != 1 && (static_cast<int64_t>(count) != rows || zero->dims.size() != 1)) return false;
  const size_t row = count == 1 ? values.size() : values.size() / count;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] -= element_as_double(*zero, static_cast<int64_t>(count == 1 ? 0 : i / row));
  return true;
}

}  // namespace

Results eval_conv(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("X"), w = n.find_constant("W");
  if (!is_float(x->dtype) || w->dtype != x->dtype || !is_plain_number(x->dtype)) return {};
  const auto c = convolution_of(n, "X", *x, *w, n.find_constant("B"));
  if (!c) return {};
  return tensor_of(x->dtype, *static_dims(n.node().output(0)), convolved<false>(*c));
}

Results eval_conv_transpose(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("X"), w = n.find_constant("W"), bias = n.find_constant("B");
  const auto dims = static_dims(n.node().output(0));
  const int64_t group = n.i("group");
  if (!dims || x->dims.size() < 3 || w->dims.size() != x->dims.size() || dims->size() != x->dims.size() || group < 1 ||
      !is_float(x->dtype) || w->dtype != x->dtype || !is_plain_number(x->dtype))
    return {};
  if (x->dims[1] != w->dims[0] || w->dims[0] % group != 0 || (*dims)[0] != x->dims[0] ||
      w->dims[1] > INT64_MAX / group || (*dims)[1] != w->dims[1] * group ||
      (bias && bias->dims != std::vector{(*dims)[1]}))
    return {};
  const auto pads = find_transposed_pads(n);
  const size_t rank = x->dims.size() - 2;
  if (!pads || pads->size() != rank) return {};
  Window window;
  window.kernel = kernel_of(*w);
  window.strides = spatial_ints(n, "strides", rank, 1, 1);
  window.dilations = spatial_ints(n, "dilations", rank, 1, 1);
  window.begin.assign(pads->begin(), pads->end());
  const auto axes = sliding_axes(window, *dims, x->dims);
  if (!axes) return {};
  Convolution c{.axes = *axes, .batch = x->dims[0], .inputs = x->dims[1], .outputs = (*dims)[1], .group = group};
  if (!c.is_feasible()) return {};
  c.x = numbers_of(*x);
  c.weight = numbers_of(*w);
  if (bias) c.bias = numbers_of(*bias);
  return tensor_of(x->dtype, *dims, convolved<true>(c));
}

Results eval_conv_integer(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("x"), w = n.find_constant("w");
  auto c = convolution_of(n, "x", *x, *w, nullptr);
  if (!c || !is_integer(x->dtype) || !is_integer(w->dtype)) return {};
  if (!subtract_zero(c->x, n.find_constant("x_zero_point"), 1) ||
      !subtract_zero(c->weight, n.find_constant("w_zero_point"), w->dims[0]))
    return {};
  return tensor_of(DType::Int32, *static_dims(n.node().output(0)), convolved<false>(*c));
}

Results eval_qlinear_conv(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("x"), w = n.find_constant("w"), y_zero = n.find_constant("y_zero_point");
  const TensorPtr x_scale = n.find_constant("x_scale"), w_scale = n.find_constant("w_scale"),
                  y_scale = n.find_constant("y_scale");
  auto c = convolution_of(n, "x", *x, *w, n.find_constant("B"));
  if (!c || !is_integer(x->dtype) || !is_integer(w->dtype) || x_scale->count() != 1 || y_scale->count() != 1 ||
      y_zero->count() != 1 || (w_scale->count() != 1 && w_scale->dims != std::vector{w->dims[0]}))
    return {};
  if (!subtract_zero(c->x, n.find_constant("x_zero_point"), 1) ||
      !subtract_zero(c->weight, n.find_constant("w_zero_point"), w->dims[0]))
    return {};
  std::vector<double> sums = convolved<false>(*c);
  const double zero = element_as_double(*y_zero, 0);
  const int64_t plane = window_count(c->axes);
  for (size_t i = 0; i < sums.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / plane % c->outputs;
    // in float32, as the scales are: whether a number is half way between two depends on it
    const auto scale = static_cast<float>(element_as_double(*x_scale, 0)) *
                       static_cast<float>(element_as_double(*w_scale, w_scale->count() == 1 ? 0 : channel)) /
                       static_cast<float>(element_as_double(*y_scale, 0));
    sums[i] = std::nearbyint(static_cast<double>(static_cast<float>(sums[i]) * scale)) + zero;
  }
  const bool is_signed = is_signed_int(y_zero->dtype);
  if (y_zero->dtype != DType::UInt8 && y_zero->dtype != DType::Int8) return {};
  for (double& sum : sums) sum = std::clamp(sum, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
  return tensor_of(y_zero->dtype, *static_dims(n.node().output(0)), sums);
}

namespace {

/// The parts of a deformable convolution: each element of the window is taken where an offset says.
struct Deformed {
  Convolution c;
  std::vector<double> offset, mask;  // no mask: empty
  int64_t offset_group;

  /// An element between elements; what lies outside is zero.
  double sample(const double* plane, double y, double x) const {
    const int64_t height = c.axes[1].size, width = c.axes[2].size;
    if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width))) return 0;
    const double low_y = std::floor(y), low_x = std::floor(x);
    double sum = 0;
    for (int corner = 0; corner < 4; ++corner) {
      const auto row = static_cast<int64_t>(low_y) + corner / 2, column = static_cast<int64_t>(low_x) + corner % 2;
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      const double weight_y = corner / 2 == 1 ? y - low_y : 1 - (y - low_y);
      const double weight_x = corner % 2 == 1 ? x - low_x : 1 - (x - low_x);
      sum += weight_y * weight_x * plane[row * width + column];
    }
    return sum;
  }

  std::vector<double> result() const {
    const SlidingAxis &rows = c.axes[1], &columns = c.axes[2];
    const int64_t in = c.inputs / c.group, out = c.outputs / c.group, taps = kernel_count(c.axes);
    const int64_t windows = window_count(c.axes), plane = element_count(c.axes);
    std::vector<double> sums(static_cast<size_t>(c.batch * c.outputs * windows));
    for_each_in_parallel(c.batch * c.outputs, in * taps * windows * 8, [&](int64_t p) {
      const int64_t n = p / c.outputs, o = p % c.outputs;
      for (int64_t w = 0; w < windows; ++w) {
        double sum = c.bias.empty() ? 0 : c.bias[static_cast<size_t>(o)];
        for (int64_t i = 0; i < in; ++i) {
          const int64_t channel = o / out * in + i, g = channel / (c.inputs / offset_group);
          for (int64_t t = 0; t < taps; ++t) {
            const int64_t tap = ((n * offset_group + g) * taps + t);
            const double y = static_cast<double>(rows.at(w / columns.windows, t / columns.kernel)) +
                             offset[static_cast<size_t>(tap * 2 * windows + w)];
            const double x = static_cast<double>(columns.at(w % columns.windows, t % columns.kernel)) +
                             offset[static_cast<size_t>((tap * 2 + 1) * windows + w)];
            const double share = mask.empty() ? 1 : mask[static_cast<size_t>(tap * windows + w)];
            sum += c.weight[static_cast<size_t>((o * in + i) * taps + t)] * share *
                   sample(c.x.data() + (n * c.inputs + channel) * plane, y, x);
          }
        }
        sums[static_cast<size_t>(p * windows + w)] = sum;
      }
    });
    return sums;
  }
};

}  // namespace

/// Over two dimensions.
Results eval_deform_conv(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("X"), w = n.find_constant("W"), offset = n.find_constant("offset"),
                  mask = n.find_constant("mask"), bias = n.find_constant("B");
  const auto dims = static_dims(n.node().output(0));
  const int64_t group = n.i("group"), offset_group = n.i("offset_group");
  if (!dims || x->dims.size() != 4 || w->dims.size() != 4 || dims->size() != 4 || group < 1 || offset_group < 1 ||
      !is_float(x->dtype) || !is_plain_number(x->dtype))
    return {};
  if (w->dims[1] > INT64_MAX / group || x->dims[1] != w->dims[1] * group || w->dims[0] % group != 0 ||
      x->dims[1] % offset_group != 0 || (*dims)[0] != x->dims[0] || (*dims)[1] != w->dims[0] ||
      (bias && bias->dims != std::vector{w->dims[0]}))
    return {};
  Window window;
  window.kernel = kernel_of(*w);
  window.strides = spatial_ints(n, "strides", 2, 1, 1);
  window.dilations = spatial_ints(n, "dilations", 2, 1, 1);
  const std::vector<int64_t> pads = spatial_ints(n, "pads", 4, 0, 0);
  window.begin = {Dim(pads[0]), Dim(pads[1])};
  const auto axes = sliding_axes(window, x->dims, *dims);
  if (!axes) return {};
  Deformed deformed{
      .c = {.axes = *axes, .batch = x->dims[0], .inputs = x->dims[1], .outputs = w->dims[0], .group = group},
      .offset_group = offset_group};
  Convolution& c = deformed.c;
  if (!is_feasible({8, c.batch, c.outputs, c.inputs / group, kernel_count(*axes), window_count(*axes)})) return {};
  const int64_t moved = c.batch * offset_group * kernel_count(*axes) * window_count(*axes);
  if (offset->count() != 2 * moved || (mask && mask->count() != moved)) return {};
  c.x = numbers_of(*x);
  c.weight = numbers_of(*w);
  if (bias) c.bias = numbers_of(*bias);
  deformed.offset = numbers_of(*offset);
  if (mask) deformed.mask = numbers_of(*mask);
  return tensor_of(x->dtype, *dims, deformed.result());
}

}  // namespace tonnx
