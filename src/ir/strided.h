// strided.h - dense tensors out of storages: PyTorch stores a tensor as a run of bytes, sizes, strides and an offset.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "ir/tensor.h"

namespace tonnx {

struct Strided {
  DType dtype = DType::Undefined;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements
  int64_t offset = 0;            // in elements
};

/// Makes tensors, and gives the same one for the same description of the same bytes.
class StridedTensors {
 public:
  /// `budget`: how many bytes the tensors that must be gathered may take together.
  explicit StridedTensors(uint64_t budget) : budget_(budget) {}

  /// The bytes stay where they are if the tensor lies densely in them, else they are gathered. Throws InvalidModel
  /// where it reaches outside of them, and Unsupported where it does not fit the budget.
  TensorPtr get(const Bytes& storage, Strided strided);

 private:
  using Key = std::tuple<const uint8_t*, size_t, DType, std::vector<int64_t>, std::vector<int64_t>, int64_t>;
  struct Made {
    Bytes storage;  // kept, so that no other storage can come to lie at its address
    TensorPtr tensor;
  };
  uint64_t budget_;
  std::map<Key, Made> made_;
};

}  // namespace tonnx
