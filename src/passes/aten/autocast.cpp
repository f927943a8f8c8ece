// autocast.cpp - what torch.autocast does to the operators inside it, written down as conversions.
#include "passes/aten/autocast.h"

#include <unordered_set>

#include "passes/aten/aten_writer.h"

namespace tonnx {
namespace {

bool computes_in_low_precision(const Node& node) {
  static const std::unordered_set<std::string_view> names = {"_convolution",
                                                             "addbmm",
                                                             "addmm",
                                                             "addmv",
                                                             "addr",
                                                             "baddbmm",
                                                             "bmm",
                                                             "chain_matmul",
                                                             "conv1d",
                                                             "conv2d",
                                                             "conv3d",
                                                             "conv_transpose1d",
                                                             "conv_transpose2d",
                                                             "conv_transpose3d",
                                                             "convolution",
                                                             "einsum",
                                                             "gru",
                                                             "linalg_multi_dot",
                                                             "linalg_vecdot",
                                                             "linear",
                                                             "lstm",
                                                             "matmul",
                                                             "mm",
                                                             "mv",
                                                             "prelu",
                                                             "rnn_relu",
                                                             "rnn_tanh",
                                                             "scaled_dot_product_attention"};
  static const Symbol aten("aten");
  return node.domain == aten && names.contains(node.op.view());
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
