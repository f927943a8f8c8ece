// draws.h - random inputs of several scales and kinds: what one of them hides another may show.
#pragma once
#include "verify/hints.h"
#include "verify/runner.h"

namespace tonnx::judge {

/// How random inputs are filled.
enum class Fill : uint8_t { Random, Ones, Zeros, Arange };

/// How an input is drawn.
struct Draw {
  int number = 0;  // which says of which kind
  uint64_t seed = 0;
  int64_t length = 1;        // of a sequence
  bool is_cautious = false;  // integers are 1: more models can run with them
  Fill fill = Fill::Random;
};

/// What the floats of a draw are like.
std::string_view title_of_draw(int number);
/// The array of one input. Draws go on from those that most likely mean something to the model.
TensorPtr random_tensor(DType dtype, const std::vector<int64_t>& dims, const InputHint& hint, const Draw& draw);
/// The tensor at other sizes: repeated along each axis, or cut off.
TensorPtr spread(const TensorPtr& tensor, const std::vector<int64_t>& dims);
/// The elements in other places: shifted by so many along all of them.
TensorPtr rolled(const TensorPtr& tensor, int64_t by);
/// Tensors of one type joined along an axis; the others of their sizes are equal.
TensorPtr joined_along(const Tensors& parts, size_t axis);

}  // namespace tonnx::judge
