// state_tensor.h - an entry of a state dict, as it is written to a file of weights.
#pragma once
#include <string>

#include "ir/tensor.h"

namespace tonnx {

struct StateTensor {
  std::string name;
  TensorPtr tensor;
  bool transposed = false;  // to be stored with its two dimensions swapped
  bool trainable = false;
};

}  // namespace tonnx
