// labels.h - what the operators of ai.onnx.ml share: class labels, transforms of scores, and the writing of both in
// ai.onnx.
#pragma once
#include <string>
#include <vector>

#include "ops/frame/infer.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

/// A constant that is not trained: what decides, such as thresholds and labels.
Value* fixed(OnnxEdit& edit, TensorPtr tensor, std::string_view hint = "constant");
Value* fixed_number(OnnxEdit& edit, DType dtype, double value);
Value* cast_to(OnnxEdit& edit, Value* x, DType dtype);
/// The input in float32, and as rows: a single row may come without its dimension.
Value* rows_of(OnnxEdit& edit, Value* x);

/// The labels of a classifier. Strings have no tensor: what comes out then is the number of the class, in the order of
/// classlabels_strings.
struct ClassLabels {
  std::vector<int64_t> numbers;
  int64_t count() const { return static_cast<int64_t>(numbers.size()); }
};
ClassLabels class_labels(const NodeView& n, std::string_view ints);
/// The label of each row, given the number of its class.
Value* labels_of(OnnxEdit& edit, Value* number, const ClassLabels& labels);
/// The number of the class with the highest score.
Value* best_class(OnnxEdit& edit, Value* scores);

/// NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT over the classes of each row.
Value* transformed_scores(OnnxEdit& edit, Value* scores, const std::string& kind);
/// The scores of both classes, of which only that of the second is there.
Value* scores_of_two(OnnxEdit& edit, Value* second, const std::string& kind, bool is_probability);

inline constexpr std::string_view kLabelNote = "labels that are strings come out as the numbers of their classes";

}  // namespace tonnx
