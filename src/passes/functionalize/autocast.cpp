// autocast.cpp - what torch.autocast does to the operators inside it, written down as conversions.
#include "ops/frame/aten_names.h"
#include "ops/frame/op_def.h"
#include "passes/frame/aten_writer.h"
#include "passes/functionalize/readying.h"

namespace tonnx {
namespace {

bool computes_in_low_precision(const Node& node) {
  const AtenOpEntry* entry = find_canonical_op(node);
  return entry != nullptr && entry->op->low_precision;
}

/// float64 stays as it is.
bool is_eligible(const Value* value) {
  if (value == nullptr || !value->type.is_tensor()) return false;
  const DType dtype = value->type.dtype;
  return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16;
}

}  // namespace

void write_autocast(Graph& graph, DType dtype) {
  AtenWriter writer(graph);
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    const Value* output = node->output(0);
    if (!is_eligible(output) || !subgraphs_of(*node).empty()) continue;
    const bool is_low = output->type.dtype == dtype && computes_in_low_precision(*node);
    if (!is_low && output->type.dtype != DType::Float32) continue;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      Value* input = node->input(i);
      if (!is_eligible(input) || input->type.dtype == output->type.dtype) continue;
      writer.write_before(node);
      AtenCall call("to", "dtype", node);
      call.with("self", input).with("dtype", AttrValue(output->type.dtype));
      node->set_input(i, writer.add(call, Type::tensor(output->type.dtype, input->type.shape), "to"));
    }
  }
}

}  // namespace tonnx
