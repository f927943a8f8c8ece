// cast_numbers.h - weights of one float type that become those of another when they are written.
#pragma once
#include "base/address_range.h"
#include "base/computed.h"
#include "ir/tensor.h"

namespace tonnx {

/// The float types that files of weights have: of 16, 32 and 64 bits.
inline constexpr DTypeSet kCastFloats = dtype_set(DType::Float16, DType::BFloat16, DType::Float32, DType::Float64);

/// Numbers of one of these types as those of another: to nearest, ties to even. The bytes may lie at any address.
void cast_floats(DType from, const uint8_t* numbers, DType to, uint8_t* into, int64_t count);

/// Numbers of one of these types that become those of another when they are written.
class CastNumbers : public ComputedBytes {
 public:
  CastNumbers(Tensor numbers, DType to);

  const uint8_t* begin() const override { return addresses_.begin(); }
  size_t size() const override { return addresses_.size(); }
  void compute(size_t offset, uint8_t* into, size_t size) const override;
  size_t best_piece() const override;

  const Tensor& numbers() const { return numbers_; }

 private:
  Tensor numbers_;
  DType to_;
  size_t from_width_, to_width_;  // of an element in bytes
  AddressRange addresses_;
};

/// Whether the bytes of a tensor are all those of CastNumbers, which it then gives.
const CastNumbers* find_cast(const Tensor& tensor);

/// The tensor that becomes one of another type when it is written.
TensorPtr cast_when_written(const Tensor& tensor, DType to);

/// The same tensor, with its bytes made if they are those of CastNumbers: for those who must look at them.
TensorPtr with_cast_made(const TensorPtr& tensor);

}  // namespace tonnx
