// eval.cpp - evaluation of Dropout.
#include <cstring>

#include "ops/random/rows.h"

namespace tonnx {

/// Only where chance has no part in it.
Results eval_dropout(const NodeView& n) {
  const TensorPtr x = n.find_constant("data");
  if (n.has("training_mode")) {
    const TensorPtr training = n.find_constant("training_mode");
    if (training->dtype != DType::Bool || training->count() != 1) return {};
    if (element_as_int(*training, 0) != 0) {
      const TensorPtr ratio = n.has("ratio") ? n.find_constant("ratio") : nullptr;
      if (!ratio || ratio->count() != 1 || element_as_double(*ratio, 0) != 0) return {};
    }
  }
  Results results(x);
  if (n.output_count() > 1) {
    NewTensor mask(DType::Bool, x->dims);
    if (mask.count() > 0) std::memset(mask.data(), 1, static_cast<size_t>(mask.count()));
    results.push_back(mask.done());
  }
  return results;
}

}  // namespace tonnx
