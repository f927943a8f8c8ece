// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

void types_fft(TypeNode& n);
void types_rfft(TypeNode& n);
void types_irfft(TypeNode& n);
void types_fft_of_many(TypeNode& n);  // fftn, rfft2 and so on, by the name of the node
void types_stft(TypeNode& n);
void types_istft(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_hann_window(const NodeView& n);
Results eval_hamming_window(const NodeView& n);
Results eval_blackman_window(const NodeView& n);
Results eval_dft(const NodeView& n);
Results eval_stft(const NodeView& n);

// The way back, and what raisings share, with those of other families too

// fft_raise.cpp
Values raise_fft(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
