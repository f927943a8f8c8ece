// strided.cpp - finds out whether a strided tensor is dense, and gathers it where it is not.
#include "ir/strided.h"

#include <algorithm>
#include <cstring>

#include "base/budget.h"
#include "base/error.h"

namespace tonnx {
namespace {

/// Row-major without gaps; the stride of a dimension of size one means nothing.
bool is_dense(const Strided& strided) {
  int64_t expected = 1;
  for (size_t i = strided.sizes.size(); i-- > 0;) {
    if (strided.sizes[i] != 1 && strided.strides[i] != expected) return false;
    expected = checked_mul(expected, strided.sizes[i]);
  }
  return true;
}

/// One past the last element that a tensor with elements reaches.
int64_t end_of(const Strided& strided) {
  int64_t last = strided.offset;
  bool overflow = false;
  for (size_t i = 0; i < strided.sizes.size(); ++i) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(strided.sizes[i] - 1, strided.strides[i], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  overflow |= __builtin_add_overflow(last, 1, &last);
  require(!overflow, "its sizes and strides are beyond all bounds");
  return last;
}

/// Copies the elements in row-major order; the innermost dimension is the inner loop.
template <class T>
void gather(const uint8_t* source, const Strided& strided, int64_t count, uint8_t* target) {
  const size_t rank = strided.sizes.size();  // at least one: a scalar is dense
  const int64_t row = strided.sizes[rank - 1];
  const int64_t step = strided.strides[rank - 1];
  std::vector<int64_t> index(rank, 0);
  int64_t at = strided.offset;
  for (int64_t done = 0; done < count; done += row) {
    for (int64_t i = 0; i < row; ++i) {
      std::memcpy(target, source + (at + i * step) * static_cast<int64_t>(sizeof(T)), sizeof(T));
      target += sizeof(T);
    }
    for (size_t d = rank - 1; d-- > 0;) {
      at += strided.strides[d];
      if (++index[d] < strided.sizes[d]) break;
      at -= strided.strides[d] * strided.sizes[d];
      index[d] = 0;
    }
  }
}

struct Wide {
  uint64_t halves[2];
};

std::vector<uint8_t> gathered(const Bytes& storage, const Strided& strided, int64_t count, int64_t step) {
  std::vector<uint8_t> result(static_cast<size_t>(count * step));
  switch (step) {
    case 1: gather<uint8_t>(storage.data(), strided, count, result.data()); break;
    case 2: gather<uint16_t>(storage.data(), strided, count, result.data()); break;
    case 4: gather<uint32_t>(storage.data(), strided, count, result.data()); break;
    case 8: gather<uint64_t>(storage.data(), strided, count, result.data()); break;
    default: gather<Wide>(storage.data(), strided, count, result.data()); break;
  }
  return result;
}

}  // namespace

TensorPtr StridedTensors::get(const Bytes& storage, Strided strided) {
  const size_t rank = strided.sizes.size();
  require(rank == strided.strides.size(), "it has {} sizes but {} strides", rank, strided.strides.size());
  require(strided.offset >= 0, "its offset is negative");
  for (size_t i = 0; i < rank; ++i) {
    require(strided.strides[i] >= 0, "it has a negative stride, {}", strided.strides[i]);
    if (strided.sizes[i] == 1) strided.strides[i] = 0;  // it is never taken, however large
  }
  Key key(storage.data(), storage.size(), strided.dtype, strided.sizes, strided.strides, strided.offset);
  Made& made = made_[std::move(key)];
  if (made.tensor) return made.tensor;
  const int64_t count = count_of(strided.sizes);
  const int64_t step = byte_size(strided.dtype, 1);
  auto tensor = std::make_shared<Tensor>();
  tensor->dtype = strided.dtype;
  tensor->dims = strided.sizes;
  if (count > 0) {
    const int64_t end = end_of(strided);
    require(static_cast<uint64_t>(end) <= storage.size() / static_cast<uint64_t>(step),
            "it reaches element {} of a storage of {} bytes", end - 1, storage.size());
    if (is_dense(strided)) {
      tensor->data = storage.slice(static_cast<size_t>(strided.offset * step), static_cast<size_t>(count * step));
    } else {
      const uint64_t left = budget_ / static_cast<uint64_t>(step);
      if (static_cast<uint64_t>(count) > left) {
        fail_unsupported("its {} elements are not stored densely, and are too many to be gathered", count);
      }
      budget().take(Resource::Memory, count * step);
      budget_ -= static_cast<uint64_t>(count * step);
      tensor->data = Bytes::own(gathered(storage, strided, count, step));
    }
  }
  made = {storage, std::move(tensor)};
  return made.tensor;
}

}  // namespace tonnx
