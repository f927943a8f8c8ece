// eval_map.h - one function on every element, or on pairs that are broadcast together: for the evaluations of
// operators.
#pragma once
#include "ops/frame/eval.h"
#include "ops/frame/eval_walk.h"

namespace tonnx {

/// The number types that operators compute in.
inline constexpr DTypeSet kComputed =
    kAllInts | dtype_set(DType::Bool, DType::Float32, DType::Float64, DType::Float16, DType::BFloat16);

/// An attribute as the format holds it, which is in 32 bits; a default as well.
double float_attribute(const NodeView& n, std::string_view name);

/// Every element as a T, `f` of it as an element of type `to`.
template <class T, class F>
TensorPtr mapped(const Tensor& x, DType to, const F& f) {
  NewTensor result(to, x.dims);
  in_parallel(result.count(), [&](int64_t begin, int64_t end) {
    T from[kBlock];
    decltype(f(T())) made[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      load_numbers(x, i, 1, count, from);
      for_block(count, [&](int64_t k) { made[k] = f(from[k]); });
      store_numbers(to, result.data(), i, count, made);
    }
  });
  return result.done();
}

/// The same of two tensors; null where they cannot be broadcast.
template <class T, class F>
TensorPtr zipped(const Tensor& x, const Tensor& y, DType to, const F& f) {
  const auto dims = broadcast_dims(x.dims, y.dims);
  if (!dims) return nullptr;
  NewTensor result(to, *dims);
  const NumberReader left(x, *dims, broadcast_strides(x.dims, *dims)),
      right(y, *dims, broadcast_strides(y.dims, *dims));
  in_parallel(result.count(), [&](int64_t begin, int64_t end) {
    T a[kBlock], b[kBlock];
    decltype(f(T(), T())) made[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      left.read(i, count, a);
      right.read(i, count, b);
      for_block(count, [&](int64_t k) { made[k] = f(a[k], b[k]); });
      store_numbers(to, result.data(), i, count, made);
    }
  });
  return result.done();
}

/// In float where that is exact, else in double, int64_t or uint64_t.
template <class F>
TensorPtr zipped_in_own_type(const Tensor& x, const Tensor& y, DType to, const F& f) {
  if (x.dtype == DType::Float64) return zipped<double>(x, y, to, f);
  if (is_float(x.dtype)) return zipped<float>(x, y, to, f);
  return is_unsigned(x.dtype) ? zipped<uint64_t>(x, y, to, f) : zipped<int64_t>(x, y, to, f);
}

}  // namespace tonnx
