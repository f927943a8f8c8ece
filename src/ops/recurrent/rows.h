// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"
#include "ops/frame/open_node.h"

namespace tonnx {

// Types of what operators give

void types_lstm(TypeNode& n);
void types_recurrent(TypeNode& n);
void types_cell(TypeNode& n);  // one step: the states are of the shape of the first ones

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_recurrent(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_recurrent(const AtenNode& n, OnnxBuilder& onnx);

/// The layers of a recurrent node over `x`, [time, batch, features]: what they give, and their last states.
/// `lengths`: int32, of each sequence, or null where all are of one length. `batch_first` is that of the result.
Values raise_layers(const AtenNode& n, OnnxBuilder& onnx, Value* x, Value* lengths, bool batch_first);

// How nodes follow a size that becomes open

void open_recurrent(OpenNode& n);

}  // namespace tonnx
