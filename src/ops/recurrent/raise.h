// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

Values raise_recurrent(const AtenNode& n, OnnxBuilder& onnx);

/// The layers of a recurrent node over `x`, [time, batch, features]: what they give, and their last states.
/// `lengths`: int32, of each sequence, or null where all are of one length. `batch_first` is that of the result.
Values raise_layers(const AtenNode& n, OnnxBuilder& onnx, Value* x, Value* lengths, bool batch_first);

}  // namespace tonnx
