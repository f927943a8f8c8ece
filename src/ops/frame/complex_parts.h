// complex_parts.h - operators on complex numbers in terms of the same operators on their real and imaginary parts.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

/// One part of pairs: 0 is the real one, 1 the imaginary one.
Value* part_of(OnnxBuilder& onnx, Value* pairs, int64_t which);
Value* pair_of_parts(OnnxBuilder& onnx, Value* real, Value* imaginary);
/// The type of the parts of complex numbers, or of real numbers beside them.
DType part_dtype(DType dtype);

/// For operators that move numbers or add them up: each part by itself.
Values raise_each_part(const AtenNode& n, OnnxBuilder& onnx);
/// For products: each part of one operand with each part of the other. A bias is added at the end.
Values raise_products_of_parts(const AtenNode& n, OnnxBuilder& onnx);
/// For operators that give real numbers as complex ones: no imaginary part.
Values raise_real_part(const AtenNode& n, OnnxBuilder& onnx);
/// For questions: on whether the numbers are not zero; answered with yes for one part, or for both.
Values raise_with_flags(const AtenNode& n, OnnxBuilder& onnx);
Values raise_any_part(const AtenNode& n, OnnxBuilder& onnx);
Values raise_both_parts(const AtenNode& n, OnnxBuilder& onnx);
/// For variances and deviations, which are real.
Values raise_sum_of_parts(const AtenNode& n, OnnxBuilder& onnx);
Values raise_length_of_parts(const AtenNode& n, OnnxBuilder& onnx);
/// Refuses them, where pairs would be taken for something else.
Values raise_no_complex(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
