// eval.cpp - evaluation of normalisations by mean and variance: of batches, layers, groups, instances.
#include <cmath>

#include "ops/frame/eval_map.h"
#include "ops/norm/rows.h"

namespace tonnx {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 27;

bool is_fine(const Tensor& x) {
  return is_float(x.dtype) && contains(kComputed, x.dtype) && x.count() > 0 && x.count() <= kMostNumbers;
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const double* numbers, int64_t count) {
  Moments m;
  for (int64_t i = 0; i < count; ++i) m.mean += numbers[i];
  m.mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) m.variance += (numbers[i] - m.mean) * (numbers[i] - m.mean);
  m.variance /= static_cast<double>(count);
  return m;
}

/// Groups of that many neighbours get the mean zero and the variance one.
void normalize(std::vector<double>& numbers, int64_t group, double epsilon) {
  for (size_t first = 0; first < numbers.size(); first += static_cast<size_t>(group)) {
    double* part = numbers.data() + first;
    const Moments m = moments_of(part, group);
    const double factor = 1 / std::sqrt(m.variance + epsilon);
    for (int64_t i = 0; i < group; ++i) part[i] = (part[i] - m.mean) * factor;
  }
}

/// The elements of `x`, broadcast to these sizes, or with one element for each channel; nothing where they do not fit.
std::optional<std::vector<double>> spread(const Tensor& x, const std::vector<int64_t>& dims, bool per_channel) {
  std::vector<int64_t> strides;
  if (per_channel) {
    if (dims.size() < 2 || x.dims != std::vector{dims[1]}) return std::nullopt;
    strides.assign(dims.size(), 0);
    strides[1] = 1;
  } else {
    if (broadcast_dims(x.dims, dims) != dims) return std::nullopt;
    strides = broadcast_strides(x.dims, dims);
  }
  std::vector<double> numbers(static_cast<size_t>(count_of(dims)));
  NumberReader(x, dims, strides).read(0, static_cast<int64_t>(numbers.size()), numbers.data());
  return numbers;
}

/// numbers * scale + bias
bool scale_and_shift(std::vector<double>& numbers, const std::vector<int64_t>& dims, const TensorPtr& scale,
                     const TensorPtr& bias, bool per_channel) {
  const auto factors = spread(*scale, dims, per_channel);
  if (!factors) return false;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] *= (*factors)[i];
  if (!bias) return true;
  const auto summands = spread(*bias, dims, per_channel);
  if (!summands) return false;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += (*summands)[i];
  return true;
}

/// All dimensions from `axis` on, as one size.
int64_t inner_size(const std::vector<int64_t>& dims, size_t axis) {
  int64_t size = 1;
  for (size_t i = axis; i < dims.size(); ++i) size *= dims[i];
  return size;
}

bool is_stash_known(const NodeView& n) { return n.i("stash_type") == 1 || n.dtype("X") == DType::Float64; }

}  // namespace

Results eval_batch_normalization(const NodeView& n) {
  const Tensor& x = *n.find_constant("X");
  if (!is_fine(x) || x.dims.size() < 2) return {};
  const auto channels = static_cast<size_t>(x.dims[1]), spatial = static_cast<size_t>(inner_size(x.dims, 2)),
             batches = static_cast<size_t>(x.dims[0]);
  std::vector<double> numbers = numbers_of(x);
  const TensorPtr given_mean = n.find_constant("input_mean"), given_variance = n.find_constant("input_var");
  for (const char* name : {"scale", "B", "input_mean", "input_var"}) {
    if (n.find_constant(name)->dims != std::vector{x.dims[1]} || !is_float(n.dtype(name))) return {};
  }
  std::vector<double> mean = numbers_of(*given_mean), variance = numbers_of(*given_variance), running_mean = mean,
                      running_variance = variance;
  const bool is_training = n.flag("training_mode");
  for (size_t c = 0; is_training && c < channels; ++c) {
    std::vector<double> part;
    for (size_t b = 0; b < batches; ++b) {
      const auto first = numbers.begin() + static_cast<std::ptrdiff_t>((b * channels + c) * spatial);
      part.insert(part.end(), first, first + static_cast<std::ptrdiff_t>(spatial));
    }
    const Moments m = moments_of(part.data(), static_cast<int64_t>(part.size()));
    const double momentum = float_attribute(n, "momentum");
    running_mean[c] = running_mean[c] * momentum + m.mean * (1 - momentum);
    running_variance[c] = running_variance[c] * momentum + m.variance * (1 - momentum);
    mean[c] = m.mean;
    variance[c] = m.variance;
  }
  const double epsilon = float_attribute(n, "epsilon");
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t c = i / spatial % channels;
    numbers[i] = (numbers[i] - mean[c]) / std::sqrt(variance[c] + epsilon);
  }
  if (!scale_and_shift(numbers, x.dims, n.find_constant("scale"), n.find_constant("B"), true)) return {};
  Results results(tensor_of(x.dtype, x.dims, numbers));
  if (is_training) {
    results.push_back(tensor_of(given_mean->dtype, given_mean->dims, running_mean));
    results.push_back(tensor_of(given_variance->dtype, given_variance->dims, running_variance));
  }
  return results;
}

Results eval_instance_normalization(const NodeView& n) {
  const Tensor& x = *n.find_constant("input");
  if (!is_fine(x) || x.dims.size() < 3) return {};
  std::vector<double> numbers = numbers_of(x);
  normalize(numbers, inner_size(x.dims, 2), float_attribute(n, "epsilon"));
  if (!scale_and_shift(numbers, x.dims, n.find_constant("scale"), n.find_constant("B"), true)) return {};
  return tensor_of(x.dtype, x.dims, numbers);
}

Results eval_group_normalization(const NodeView& n) {
  const Tensor& x = *n.find_constant("X");
  const int64_t groups = n.i("num_groups");
  if (!is_fine(x) || x.dims.size() < 2 || groups < 1 || x.dims[1] % groups != 0 || !is_stash_known(n)) return {};
  std::vector<double> numbers = numbers_of(x);
  normalize(numbers, inner_size(x.dims, 1) / groups, float_attribute(n, "epsilon"));
  if (!scale_and_shift(numbers, x.dims, n.find_constant("scale"), n.find_constant("bias"), true)) return {};
  return tensor_of(x.dtype, x.dims, numbers);
}

Results eval_layer_normalization(const NodeView& n) {
  const Tensor& x = *n.find_constant("X");
  if (!is_fine(x) || x.dims.empty() || !is_stash_known(n)) return {};
  const auto axis = static_cast<size_t>(n.axis("axis", "X"));
  const int64_t group = inner_size(x.dims, axis);
  std::vector<double> numbers = numbers_of(x), means, factors;
  const double epsilon = float_attribute(n, "epsilon");
  for (size_t first = 0; first < numbers.size(); first += static_cast<size_t>(group)) {
    const Moments m = moments_of(numbers.data() + first, group);
    means.push_back(m.mean);
    factors.push_back(1 / std::sqrt(m.variance + epsilon));
  }
  normalize(numbers, group, epsilon);
  const TensorPtr bias = n.has("B") ? n.find_constant("B") : nullptr;
  if (!scale_and_shift(numbers, x.dims, n.find_constant("Scale"), bias, false)) return {};
  Results results(tensor_of(x.dtype, x.dims, numbers));
  std::vector<int64_t> dims = x.dims;
  std::fill(dims.begin() + static_cast<std::ptrdiff_t>(axis), dims.end(), 1);
  for (size_t i = 1; i < n.output_count(); ++i) {
    const DType stash = n.node().output(i) ? n.node().output(i)->type.dtype : DType::Float32;
    if (!is_float(stash)) return {};
    results.push_back(tensor_of(stash, dims, i == 1 ? means : factors));
  }
  return results;
}

Results eval_rms_normalization(const NodeView& n) {
  const Tensor& x = *n.find_constant("X");
  const TensorPtr scale = n.find_constant("scale");
  if (!is_fine(x) || x.dims.empty() || !is_stash_known(n) || scale->dtype != x.dtype) return {};
  const int64_t group = inner_size(x.dims, static_cast<size_t>(n.axis("axis", "X")));
  std::vector<double> numbers = numbers_of(x);
  for (size_t first = 0; first < numbers.size(); first += static_cast<size_t>(group)) {
    double sum = 0;
    for (int64_t i = 0; i < group; ++i)
      sum += numbers[first + static_cast<size_t>(i)] * numbers[first + static_cast<size_t>(i)];
    const double root = std::sqrt(sum / static_cast<double>(group) + float_attribute(n, "epsilon"));
    for (int64_t i = 0; i < group; ++i) numbers[first + static_cast<size_t>(i)] /= root;
  }
  if (!scale_and_shift(numbers, x.dims, scale, nullptr, false)) return {};
  return tensor_of(scale->dtype, x.dims, numbers);
}

/// The standard deviation is made larger by a little, not the variance.
Results eval_mean_variance_normalization(const NodeView& n) {
  constexpr double kLittle = 1e-9;
  const Tensor& x = *n.find_constant("X");
  if (!is_fine(x)) return {};
  const auto rank = static_cast<int64_t>(x.dims.size());
  std::vector<bool> reduced(x.dims.size(), false);
  for (const int64_t axis : n.ints("axes")) reduced[static_cast<size_t>(NodeView::normalized(axis, rank))] = true;
  std::vector<int64_t> dims, strides;
  const std::vector<int64_t> dense = strides_of(x.dims);
  int64_t group = 1;
  for (const bool last : {false, true}) {
    for (size_t i = 0; i < x.dims.size(); ++i) {
      if (reduced[i] != last) continue;
      dims.push_back(x.dims[i]);
      strides.push_back(dense[i]);
      if (last) group *= x.dims[i];
    }
  }
  std::vector<double> numbers(static_cast<size_t>(x.count())), result(numbers.size());
  NumberReader(x, dims, strides).read(0, x.count(), numbers.data());
  for (size_t first = 0; first < numbers.size(); first += static_cast<size_t>(group)) {
    const Moments m = moments_of(numbers.data() + first, group);
    const double divisor = std::sqrt(m.variance) + kLittle;
    for (size_t i = first; i < first + static_cast<size_t>(group); ++i) numbers[i] = (numbers[i] - m.mean) / divisor;
  }
  Walk(dims, strides).for_each([&](int64_t from, int64_t to) {
    result[static_cast<size_t>(to)] = numbers[static_cast<size_t>(from)];
  });
  return tensor_of(x.dtype, x.dims, result);
}

}  // namespace tonnx
