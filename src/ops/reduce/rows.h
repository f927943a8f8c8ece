// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Types of what operators give

/// Integers are added and multiplied as int64.
DType summed_dtype(DType dtype);

void types_sum(TypeNode& n);
void types_mean(TypeNode& n);           // the element type stays
void types_logsumexp(TypeNode& n);      // float32 for integers
void types_truth(TypeNode& n);          // all, any
void types_place(TypeNode& n);          // argmax, counts: int64
void types_extreme(TypeNode& n);        // the values, and their places where there is a dimension
void types_both_extremes(TypeNode& n);  // aminmax
void types_with_mean(TypeNode& n);      // var_mean, std_mean
void types_distance(TypeNode& n);
void types_summed_to(TypeNode& n);

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_reduce_l1(const NodeView& n);
Results eval_reduce_l2(const NodeView& n);
Results eval_reduce_log_sum(const NodeView& n);
Results eval_reduce_log_sum_exp(const NodeView& n);
Results eval_reduce_sum_square(const NodeView& n);
Results eval_arg_max(const NodeView& n);
Results eval_arg_min(const NodeView& n);
Results eval_reduce_sum(const NodeView& n);
Results eval_reduce_mean(const NodeView& n);
Results eval_reduce_max(const NodeView& n);
Results eval_reduce_min(const NodeView& n);
Results eval_reduce_prod(const NodeView& n);

// The way back, and what raisings share, with those of other families too

Values raise_reduction(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_reduce(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_reduction(n, onnx, Op.value);
}
/// Along axes that only the run tells.
Values raise_reduced(const AtenNode& n, OnnxBuilder& onnx);
Values raise_mean(const AtenNode& n, OnnxBuilder& onnx);
Values raise_any(const AtenNode& n, OnnxBuilder& onnx);
Values raise_all(const AtenNode& n, OnnxBuilder& onnx);
Values raise_logsumexp(const AtenNode& n, OnnxBuilder& onnx);
Values raise_vector_norm(const AtenNode& n, OnnxBuilder& onnx);
Values raise_arg_extreme(const AtenNode& n, OnnxBuilder& onnx);
Values raise_extreme_dim(const AtenNode& n, OnnxBuilder& onnx);
Values raise_aminmax(const AtenNode& n, OnnxBuilder& onnx);
Values raise_var(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
