// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include <string>

#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"

namespace tonnx {

// Types of what operators give

void types_arange(TypeNode& n);
void types_full(TypeNode& n);
void types_of_size(TypeNode& n);  // zeros, rand ...: float32 where no `dtype` is given
void types_scalar_tensor(TypeNode& n);
void types_eye(TypeNode& n);
void types_window(TypeNode& n);
void types_new(TypeNode& n);  // new_zeros ...: of the type of `self` where no `dtype` is given
void types_linspace(TypeNode& n);
void types_triangle(TypeNode& n);  // tril_indices, triu_indices

// The way back, and what raisings share, with those of other families too

Values raise_filled(const AtenNode& n, OnnxBuilder& onnx);
Values raise_arange(const AtenNode& n, OnnxBuilder& onnx);
Values raise_eye(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hann_window(const AtenNode& n, OnnxBuilder& onnx);
Values raise_hamming_window(const AtenNode& n, OnnxBuilder& onnx);
Values raise_blackman_window(const AtenNode& n, OnnxBuilder& onnx);

// How generated code spells them

class Emission;

/// `torch.full([2, n], 0.0, dtype=torch.float32, device=x.device)`
std::string emit_factory(const Emission& e);

}  // namespace tonnx
