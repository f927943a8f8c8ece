// eval.cpp - evaluation of spectra and of windows for them.
#include <cmath>
#include <complex>
#include <numbers>

#include "ops/frame/eval_elements.h"
#include "ops/signal/rows.h"

namespace tonnx {
namespace {

using Complex = std::complex<double>;

/// The discrete transform: halves of even lengths are transformed by themselves, an odd rest term by term.
std::vector<Complex> transformed(const std::vector<Complex>& x, double sign) {
  const size_t count = x.size();
  const auto turn = [&](size_t i) {
    return std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(count));
  };
  std::vector<Complex> result(count);
  if (count <= 1) return x;
  if (count % 2 == 0) {
    std::vector<Complex> even(count / 2), odd(count / 2);
    for (size_t i = 0; i < count / 2; ++i) {
      even[i] = x[2 * i];
      odd[i] = x[2 * i + 1];
    }
    even = transformed(even, sign);
    odd = transformed(odd, sign);
    for (size_t i = 0; i < count / 2; ++i) {
      const Complex part = turn(i) * odd[i];
      result[i] = even[i] + part;
      result[i + count / 2] = even[i] - part;
    }
    return result;
  }
  std::vector<Complex> turns(count);
  for (size_t i = 0; i < count; ++i) turns[i] = turn(i);
  for (size_t k = 0; k < count; ++k) {
    for (size_t i = 0; i < count; ++i) result[k] += x[i] * turns[i * k % count];
  }
  return result;
}

/// About how many steps a transform takes: what is left of the length when it is halved as often as it goes.
int64_t transform_steps(int64_t length) {
  int64_t odd = std::max<int64_t>(length, 1);
  while (odd % 2 == 0) odd /= 2;
  return odd + 64;
}

bool is_float_tensor(const TensorPtr& x) { return is_float(x->dtype) && is_plain_number(x->dtype); }

/// One line of numbers, real ones or pairs.
struct SampleLine {
  const std::vector<double>& numbers;
  bool is_complex;

  Complex at(int64_t i) const {
    const auto place = static_cast<size_t>(i);
    return is_complex ? Complex(numbers[2 * place], numbers[2 * place + 1]) : Complex(numbers[place], 0);
  }
};

}  // namespace

Results eval_dft(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("input"), given = n.find_constant("dft_length");
  const auto dims = static_dims(n.node().output(0));
  const auto axes = n.find_const_ints("axis");
  if (!dims || x->dims.size() < 2 || dims->size() != x->dims.size() || !is_float_tensor(x) ||
      (given && given->count() != 1) || (n.has("axis") && (!axes || axes->size() != 1)))
    return {};
  const auto rank = static_cast<int64_t>(x->dims.size());
  const auto axis = static_cast<size_t>(n.has("axis") ? NodeView::normalized((*axes)[0], rank) : rank - 2);
  const int64_t parts = x->dims.back();
  if (axis + 1 >= x->dims.size() || (parts != 1 && parts != 2)) return {};
  const bool inverse = n.flag("inverse"), is_real_result = inverse && n.flag("onesided");
  // the parts that cancel out are rounding errors in every engine, of any size: the way back is left to the run
  if (inverse && !is_real_result) return {};
  const int64_t size = x->dims[axis];
  const int64_t length = given ? element_as_int(*given, 0) : is_real_result ? 2 * (size - 1) : size;
  std::vector<int64_t> sizes(x->dims.begin(), x->dims.end() - 1), result_sizes(dims->begin(), dims->end() - 1);
  const AroundAxis from = around_axis(sizes, axis), to = around_axis(result_sizes, axis);
  if (length < 1 || to.size > length || !is_feasible({from.outer, from.inner, length, transform_steps(length)}))
    return {};
  const std::vector<double> numbers = numbers_of(*x);
  const SampleLine line{numbers, parts == 2};
  const auto width = static_cast<size_t>(dims->back());
  std::vector<double> result(static_cast<size_t>(count_of(*dims)));
  for (int64_t o = 0; o < from.outer; ++o) {
    for (int64_t i = 0; i < from.inner; ++i) {
      std::vector<Complex> values(static_cast<size_t>(length));
      const int64_t known = std::min(size, is_real_result ? length / 2 + 1 : length);
      for (int64_t k = 0; k < known; ++k) values[static_cast<size_t>(k)] = line.at((o * size + k) * from.inner + i);
      // the other half of the spectrum of real numbers
      for (int64_t k = 0; is_real_result && 2 * k <= length; ++k) {
        Complex& value = values[static_cast<size_t>(k)];
        if (k == 0 || 2 * k == length) value = value.real();
        if (k > 0 && 2 * k < length) values[static_cast<size_t>(length - k)] = std::conj(value);
      }
      const std::vector<Complex> y = transformed(values, inverse ? 1 : -1);
      const double share = inverse ? static_cast<double>(length) : 1;
      for (int64_t k = 0; k < to.size; ++k) {
        const auto place = static_cast<size_t>((o * to.size + k) * to.inner + i) * width;
        result[place] = y[static_cast<size_t>(k)].real() / share;
        if (width == 2) result[place + 1] = y[static_cast<size_t>(k)].imag() / share;
      }
    }
  }
  return tensor_of(x->dtype, *dims, result);
}

Results eval_stft(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("signal"), window = n.find_constant("window"),
                  frame = n.find_constant("frame_length");
  const auto dims = static_dims(n.node().output(0));
  const auto steps = n.find_const_ints("frame_step");
  if (!dims || dims->size() != 4 || !steps || steps->size() != 1 || (*steps)[0] < 1 || x->dims.size() < 2 ||
      x->dims.size() > 3 || !is_float_tensor(x) || (frame && frame->count() != 1) ||
      (window && !is_float_tensor(window)))
    return {};
  const int64_t parts = x->dims.size() == 3 ? x->dims[2] : 1, size = x->dims[1], step = (*steps)[0];
  const int64_t length = frame ? element_as_int(*frame, 0) : window ? window->count() : size;
  const int64_t frames = (*dims)[1], bins = (*dims)[2];
  if (parts < 1 || parts > 2 || length < 1 || length > size || (window && window->dims != std::vector{length}) ||
      bins > length || frames > (size - length) / step + 1 || (*dims)[0] != x->dims[0] ||
      !is_feasible({x->dims[0], frames, length, transform_steps(length)}))
    return {};
  const std::vector<double> numbers = numbers_of(*x), weights = window ? numbers_of(*window) : std::vector<double>();
  const SampleLine line{numbers, parts == 2};
  std::vector<double> result;
  for (int64_t f = 0; f < x->dims[0] * frames; ++f) {
    std::vector<Complex> values(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) {
      values[static_cast<size_t>(i)] = line.at(f / frames * size + f % frames * step + i);
      if (window) values[static_cast<size_t>(i)] *= weights[static_cast<size_t>(i)];
    }
    const std::vector<Complex> y = transformed(values, -1);
    for (int64_t k = 0; k < bins; ++k) {
      result.push_back(y[static_cast<size_t>(k)].real());
      result.push_back(y[static_cast<size_t>(k)].imag());
    }
  }
  return tensor_of(x->dtype, *dims, result);
}

namespace {

/// a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N)
Results cosine_window(const NodeView& n, double a0, double a1, double a2) {
  const auto dims = static_dims(n.node().output(0));
  const DType dtype = n.node().output(0)->type.dtype;
  if (!dims || dims->size() != 1 || !is_float(dtype) || !is_plain_number(dtype)) return {};
  const int64_t size = (*dims)[0], period = n.flag("periodic") ? size : size - 1;
  if (size > 0 && period == 0) return {};
  std::vector<double> result;
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    result.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return tensor_of(dtype, *dims, result);
}

}  // namespace

Results eval_hann_window(const NodeView& n) { return cosine_window(n, 0.5, 0.5, 0); }
Results eval_hamming_window(const NodeView& n) { return cosine_window(n, 25.0 / 46, 21.0 / 46, 0); }
Results eval_blackman_window(const NodeView& n) { return cosine_window(n, 0.42, 0.5, 0.08); }

}  // namespace tonnx
