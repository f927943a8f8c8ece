// eval_elements.cpp - copies of elements of any type, and elements as numbers.
#include "ops/frame/eval_elements.h"

#include <algorithm>
#include <cstring>

#include "base/budget.h"
#include "base/error.h"

namespace tonnx {

Elements::Elements(DType dtype, std::vector<int64_t> dims)
    : tensor_(std::make_shared<Tensor>()), count_(count_of(dims)), bits_(info(dtype).bits) {
  tensor_->dtype = dtype;
  tensor_->dims = std::move(dims);
  if (dtype == DType::String) {
    tensor_->strings.resize(static_cast<size_t>(count_));
  } else {
    room_ = std::make_unique<Scratch>(static_cast<size_t>(byte_size(dtype, count_)));
  }
}

void Elements::copy(int64_t to, const Tensor& from, int64_t at, int64_t count) {
  if (!room_) {
    for (int64_t i = 0; i < count; ++i) {
      tensor_->strings[static_cast<size_t>(to + i)] = from.strings[static_cast<size_t>(at + i)];
    }
    return;
  }
  if (bits_ < 8) {
    for (int64_t i = 0; i < count; ++i) set_element_bits(from.dtype, room_->data(), to + i, element_bits(from, at + i));
    return;
  }
  const auto size = static_cast<size_t>(bits_ / 8);
  uint8_t* target = room_->data() + static_cast<size_t>(to) * size;
  const uint8_t* source = from.data.data() + static_cast<size_t>(at) * size;
  const size_t bytes = static_cast<size_t>(count) * size;
  switch (bytes) {
    case 0: return;
    case 1: *target = *source; return;
    case 4: std::memcpy(target, source, 4); return;
    case 8: std::memcpy(target, source, 8); return;
    default: std::memcpy(target, source, bytes);
  }
}

void Elements::fill(const Tensor& from, int64_t at) {
  for (int64_t i = 0; i < count_; ++i) copy(i, from, at);
}

TensorPtr Elements::done() {
  if (room_) tensor_->data = room_->done();
  return std::move(tensor_);
}

AroundAxis around_axis(const std::vector<int64_t>& dims, size_t axis) {
  AroundAxis result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i == axis)
      result.size = dims[i];
    else
      (i < axis ? result.outer : result.inner) *= dims[i];
  }
  return result;
}

int64_t index_in(int64_t index, int64_t size) {
  if (index < -size || index >= size) return -1;
  return index < 0 ? index + size : index;
}

bool is_plain_number(DType dtype) {
  constexpr DTypeSet kPlain =
      kAllInts | dtype_set(DType::Bool, DType::Float32, DType::Float64, DType::Float16, DType::BFloat16);
  return contains(kPlain, dtype);
}

bool has_plain_inputs(const NodeView& n) {
  for (const Value* input : n.node().inputs()) {
    if (input != nullptr && !is_plain_number(input->constant->dtype)) return false;
  }
  return true;
}

bool is_feasible(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {  // a loop around nothing takes its time too
    if (factor < 0 || __builtin_mul_overflow(product, std::max<int64_t>(factor, 1), &product)) return false;
  }
  return budget().try_take(Resource::Steps, product);
}

}  // namespace tonnx
