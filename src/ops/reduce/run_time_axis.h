// run_time_axis.h - operators along axes that only the run tells.
#pragma once
#include "ops/frame/op_def.h"

namespace tonnx {

/// The shape that the file declares for what the node gives: for itself, or for what one operator after the other makes
/// of each of its elements.
MaybeShape declared_shape(const NodeView& n);

// Expansions: one such operator for each axis that it may be, between which the run chooses. PyTorch has no operator
// along an axis that is a tensor; torch.export can trace none that reads it. They say no where the axes are known, or
// where the shape of the result depends on them.

/// Reduce*: the axes are the second input; it must be known how many there are.
bool expand_reduce(const NodeView& n, OnnxEdit& edit);
/// ReduceProd, which PyTorch has along one axis at a time: there is a choice between so many axes, too.
bool expand_reduce_product(const NodeView& n, OnnxEdit& edit);
/// An operator whose result has the same shape along each of the first `count` axes; its input `axis` is the one `at`.
bool choose_axis(const NodeView& n, OnnxEdit& edit, size_t at, int64_t rank, int64_t count);
/// CumSum, CumProd: the axis is the second input.
bool expand_cumulative(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
