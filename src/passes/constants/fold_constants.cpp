// fold_constants.cpp - what inference could compute becomes a constant of the model.
#include <algorithm>
#include <unordered_map>

#include "ops/frame/op_def.h"
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

constexpr size_t kMostBehind = 64;  // values that are looked at behind one

bool is_quantization(const Node& node) { return is_onnx(node, kQuantize) || is_onnx(node, kDequantize); }

/// Whether a constant is made of weights by nodes that say how these are stored and computed with.
bool is_quantized(const Value* value) {
  std::vector<const Value*> todo{value};
  for (size_t i = 0; i < todo.size() && i < kMostBehind; ++i) {
    const Node* producer = todo[i]->producer;
    if (producer == nullptr) continue;
    if (is_quantization(*producer)) return true;
    for (const Value* input : producer->inputs()) {
      if (input != nullptr && input->constant) todo.push_back(input);
    }
  }
  return false;
}

bool is_constant_node(const Node& node) {
  if (node.outputs().empty()) return false;
  for (const Value* output : node.outputs()) {
    if (output != nullptr && !output->constant) return false;
  }
  return true;
}

int64_t bytes_of(const Tensor& tensor) {
  int64_t bytes = static_cast<int64_t>(tensor.data.size());
  for (const std::string& text : tensor.strings) bytes += static_cast<int64_t>(text.size()) + 2;
  return bytes;
}

/// Bytes that go away with a value: of nodes and weights that are needed for nothing else, as far as they are near.
int64_t bytes_behind(const Value* value) {
  constexpr size_t kMost = 256;
  constexpr int64_t kNodeBytes = 40;  // at the least
  int64_t bytes = 0;
  std::unordered_map<const Value*, size_t> gone;  // how many uses of each value go away
  std::vector<const Value*> dead{value};
  for (size_t i = 0; i < dead.size() && i < kMost; ++i) {
    const Node* producer = dead[i]->producer;
    if (producer == nullptr || is_onnx(producer, kConstant))
      bytes += dead[i]->constant ? bytes_of(*dead[i]->constant) : 0;
    if (producer == nullptr) continue;
    const bool is_needed =
        std::any_of(producer->outputs().begin(), producer->outputs().end(), [&](const Value* output) {
          return output != nullptr && output != dead[i] && output->uses.size() > gone[output];
        });
    if (is_needed) continue;
    bytes += kNodeBytes;
    for (const Value* input : producer->inputs()) {
      if (input != nullptr && ++gone[input] == input->uses.size()) dead.push_back(input);
    }
  }
  return bytes;
}

/// A weight of the graph in place of the node that computes it, under its name.
bool make_initializer(Value* value, Rewriter& rewriter) {
  Node* producer = value->producer;
  Graph& graph = *value->graph;
  if (!rewriter.may_grow(bytes_of(*value->constant), bytes_behind(value))) return false;
  Value* made = graph.new_value(graph.unique_name(value->name), value->type);
  made->constant = value->constant;
  graph.add_initializer(made);
  std::swap(made->name, value->name);
  graph.replace_uses(value, made);
  rewriter.erase_unused(producer);
  return true;
}

/// A node Constant, which can give an output of a graph everywhere.
bool make_constant_node(Value* value, Rewriter& rewriter) {
  Node* producer = value->producer;
  if (is_onnx(producer, kConstant)) return false;
  Graph& graph = *value->graph;
  if (!rewriter.may_grow(bytes_of(*value->constant), bytes_behind(value))) return false;
  Node* node = graph.add_node("", kConstant, producer);
  node->version = rewriter.opset();
  node->set_attribute("value", value->constant);
  const size_t place = value->output_index;
  graph.move_output(value, node, 0);
  const auto& others = producer->outputs();
  // Split and others have to give all their outputs, also those that nobody takes
  if (std::any_of(others.begin(), others.end(), [](const Value* other) { return is_used(other); }))
    graph.move_output(graph.new_value(graph.unique_name(value->name), value->type), producer, place);
  rewriter.erase_unused(producer);
  return true;
}

}  // namespace

bool fold_constants(Node& node, Rewriter& rewriter) {
  bool is_changed = false;
  // 1. What gives an output of a graph is a node Constant.
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    Value* output = node.output(i);
    if (output == nullptr || !output->constant || !is_graph_output(output)) continue;
    is_changed |= make_constant_node(output, rewriter);
    if (node.graph == nullptr) return is_changed;
  }
  // 2. What a node needs that is not itself constant is a weight. What is only needed for that goes away.
  // Weights that are quantised stay so, and so does what is made of them.
  if (is_constant_node(node) && !is_quantization(node)) return is_changed;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    Value* input = node.input(i);
    if (input == nullptr || input->producer == nullptr || !input->constant || is_graph_output(input)) continue;
    if (is_quantized(input)) continue;
    is_changed |= make_initializer(input, rewriter);
  }
  return is_changed;
}

}  // namespace tonnx
