// fourier.cpp - Fourier transforms as products with cosines and sines, where an opset has no operator for them.
#include "ops/signal/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/budget.h"

namespace tonnx {
namespace {

constexpr int64_t kMostLength = 2048;  // the matrix has the square of it

double angle_of(int64_t time, int64_t frequency, int64_t length) {
  return 2 * std::numbers::pi * static_cast<double>(time * frequency % length) / static_cast<double>(length);
}

/// How many numbers the transform has. Refuses what is too long, and takes what a matrix of so many columns needs.
int64_t take_matrix(int64_t length, bool onesided, int64_t parts) {
  if (length < 1 || length > kMostLength)
    fail_unsupported("a Fourier transform of length {} before opset {}", length, kOpsetOfTransforms);
  const int64_t results = onesided ? length / 2 + 1 : length;
  room_for<double>({length, results, 2, parts});
  return results;
}

}  // namespace

DType transform_dtype(DType dtype, const IntArg& length) {
  const bool is_power = length.value == nullptr && length.number > 0 && (length.number & (length.number - 1)) == 0;
  return is_power ? dtype : DType::Float64;
}

Value* transformed_by_product(OnnxBuilder& onnx, Value* x, int64_t dim, const IntArg& length,
                              const TransformKind& kind) {
  if (length.value != nullptr)
    fail_unsupported("a Fourier transform of a length that only the run tells, before opset {}", kOpsetOfTransforms);
  const int64_t size = length.number;
  const int64_t parts = kind.takes_complex ? 2 : 1, results = take_matrix(size, kind.onesided, parts);
  std::vector<double> matrix;  // a row for each number that is given, real or imaginary
  const double scale = kind.forward ? 1 : 1 / static_cast<double>(size), sign = kind.forward ? -1 : 1;
  for (int64_t time = 0; time < size; ++time) {
    for (int64_t part = 0; part < parts; ++part) {
      for (int64_t frequency = 0; frequency < results; ++frequency) {
        const double angle = angle_of(time, frequency, size);
        const double cosine = scale * std::cos(angle), sine = sign * scale * std::sin(angle);
        matrix.insert(matrix.end(), {part == 0 ? cosine : -sine, part == 0 ? sine : cosine});
      }
    }
  }
  const int64_t last = onnx.rank(x) - 1;
  x = onnx.swap_axes(x, dim, last - 1);
  IntArgs sizes = onnx.sizes(x);
  sizes.pop_back();
  sizes[static_cast<size_t>(last - 1)] = size * parts;
  x = onnx("MatMul",
           {onnx.reshape(x, sizes), onnx.numbers(OnnxBuilder::dtype(x), {size * parts, results * 2}, matrix)});
  sizes[static_cast<size_t>(last - 1)] = results;
  sizes.push_back(2);
  return onnx.swap_axes(onnx.reshape(x, sizes), dim, last - 1);
}

Value* frame_waves(OnnxBuilder& onnx, DType dtype, int64_t length, bool onesided) {
  const int64_t results = take_matrix(length, onesided, 1);
  std::vector<double> waves;
  for (const bool is_real : {true, false}) {
    for (int64_t frequency = 0; frequency < results; ++frequency) {
      for (int64_t time = 0; time < length; ++time) {
        const double angle = angle_of(time, frequency, length);
        waves.push_back(is_real ? std::cos(angle) : -std::sin(angle));
      }
    }
  }
  return onnx.numbers(dtype, {2 * results, 1, length}, waves);
}

}  // namespace tonnx
