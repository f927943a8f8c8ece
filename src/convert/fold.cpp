// fold.cpp - calls the evaluation of operators, within limits.
#include "convert/fold.h"

#include "ops/eval.h"

namespace tonnx {
namespace {

/// Known integers as a tensor, where all are numbers.
TensorPtr constant_of(const Value& value) {
  std::vector<double> numbers;
  for (const Dim& dim : *value.known_ints) {
    const auto number = dim.constant();
    if (!number || *number > int64_t{1} << 52 || *number < -(int64_t{1} << 52)) return nullptr;
    numbers.push_back(static_cast<double>(*number));
  }
  const auto rank = value.type.rank();
  if (!rank || *rank > 1 || value.type.dtype == DType::Undefined) return nullptr;
  return make_floats(value.type.dtype,
                     *rank == 0 ? std::vector<int64_t>() : std::vector{static_cast<int64_t>(numbers.size())}, numbers);
}

}  // namespace

void fold_node(Node& node, const OnnxOpEntry& entry, FreshDims& fresh, const FoldLimits& limits) {
  for (Value* output : node.outputs()) {
    if (output && !output->constant && output->known_ints) output->constant = constant_of(*output);
  }
  if (entry.op->eval == nullptr || node.inputs().empty() || node.outputs().empty()) return;
  int64_t given = 0, made = 0;
  bool is_trained = false;
  for (const Value* input : node.inputs()) {
    if (input == nullptr) continue;
    if (!input->constant || input->constant->dtype == DType::String || input->sparse) return;
    given += static_cast<int64_t>(input->constant->data.size());
    is_trained = is_trained || ((input->producer == nullptr || input->trainable) && is_float(input->constant->dtype));
  }
  for (const Value* output : node.outputs()) {
    if (output == nullptr || output->constant) return;
    const auto dims = static_dims(output);
    if (!dims || output->type.dtype == DType::Undefined || output->type.dtype == DType::String) return;
    made += byte_size(output->type.dtype, count_of(*dims));
  }
  // what the file holds may be turned into another type, but a small file does not become a large one
  const bool is_small = static_cast<double>(made) <= limits.times * static_cast<double>(given);
  if (!is_small && !(made - given <= limits.bytes && fresh.take_bytes(made))) return;
  const Results results = entry.op->eval(NodeView(node, entry));
  for (size_t i = 0; i < results.size() && i < node.outputs().size(); ++i) {
    Value* output = node.output(i);
    if (results[i] == nullptr || results[i]->dtype != output->type.dtype) continue;
    output->constant = results[i];
    output->type.shape = Shape(results[i]->dims.begin(), results[i]->dims.end());
    output->trainable = is_trained && is_float(results[i]->dtype);
  }
}

const Value* origin_of_weight(const Value* value) {
  const Value* origin = value;
  while (origin->producer != nullptr && origin->trainable) {
    const Value* next = nullptr;
    for (const Value* input : origin->producer->inputs()) {
      if (input == nullptr || !input->constant || !is_float(input->constant->dtype)) continue;
      if (input->producer != nullptr && !input->trainable) continue;
      if (next != nullptr || input->uses.size() != 1) return value;
      next = input;
    }
    if (next == nullptr) return value;
    origin = next;
  }
  return origin;
}

}  // namespace tonnx
