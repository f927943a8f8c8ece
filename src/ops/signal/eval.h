// eval.h - evaluations of this family; each gives {} for a form or a type that it does not evaluate.
#pragma once
#include "ops/frame/eval.h"

namespace tonnx {

Results eval_hann_window(const NodeView& n);
Results eval_hamming_window(const NodeView& n);
Results eval_blackman_window(const NodeView& n);
Results eval_dft(const NodeView& n);
Results eval_stft(const NodeView& n);

}  // namespace tonnx
