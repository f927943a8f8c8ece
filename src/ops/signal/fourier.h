// fourier.h - Fourier transforms that several raisings share.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

inline constexpr int64_t kOpsetOfTransforms = 17;  // which has DFT and STFT

/// ONNX Runtime's transforms of other lengths than powers of two add up an error in float32 that PyTorch's do not have.
DType transform_dtype(DType dtype, const IntArg& length);

struct TransformKind {
  bool takes_complex = false;
  bool forward = true;  // backwards it is divided by the length
  bool onesided = false;
};
/// As a product with a matrix, for opsets that have no transform. The last dimension is that of the parts: one of real
/// numbers, two of complex ones.
Value* transformed_by_product(OnnxBuilder& onnx, Value* x, int64_t dim, const IntArg& length,
                              const TransformKind& kind);
/// The cosines and sines of a frame, for a convolution: all those of real parts before those of imaginary ones.
Value* frame_waves(OnnxBuilder& onnx, DType dtype, int64_t length, bool onesided);

// fft_raise.cpp
/// Real numbers of halves of spectra along a dimension.
Value* inverse_of_halves(const AtenNode& n, OnnxBuilder& onnx, const char* name, int64_t dim, int64_t length,
                         bool is_orthogonal);
/// Complex numbers, as pairs, of whole spectra along a dimension.
Value* inverse_of_wholes(const AtenNode& n, OnnxBuilder& onnx, const char* name, int64_t dim, int64_t length,
                         bool is_orthogonal);

}  // namespace tonnx
