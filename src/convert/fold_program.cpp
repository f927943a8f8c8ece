// fold_program.cpp - computes what a program makes of numbers alone, by way of the ONNX nodes that mean the same.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "convert/graph_steps.h"
#include "convert/raising.h"
#include "ir/clone.h"
#include "ops/frame/op_def.h"
#include "ops/frame/python_names.h"
#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

constexpr size_t kFewNodes = 6;             // say what they compute better than a constant does
constexpr size_t kMostNodes = 4096;         // of one constant
constexpr size_t kMostConstants = 256;      // of one program
constexpr int64_t kMostElements = 1 << 20;  // of one constant

bool is_known(const Value* value) {
  if (value == nullptr || !value->type.is_tensor() || value->type.dtype == DType::Undefined || !value->type.shape)
    return false;
  return std::all_of(value->type.shape->begin(), value->type.shape->end(),
                     [](const Dim& d) { return d.is_constant(); });
}

/// What fills a tensor of the sizes of another; nothing for other nodes.
std::optional<double> filled_with(const Node& node) {
  if (node.domain != "aten" || node.outputs().size() != 1) return std::nullopt;
  if (node.op == "new_zeros" || node.op == "zeros_like") return 0;
  if (node.op == "new_ones" || node.op == "ones_like") return 1;
  if (node.op == "new_full" || node.op == "full_like") return number_of(node, "fill_value");
  return std::nullopt;
}

class ProgramFolding {
 public:
  explicit ProgramFolding(Graph& graph) : graph_(graph) {}

  void run() {
    for (const Node& node : graph_) {
      if (is_of_numbers(node)) free_.insert(&node);
    }
    if (free_.size() < kFewNodes) return;
    std::vector<Value*> results;
    for (const Node& node : graph_) {
      if (!free_.contains(&node)) continue;
      for (Value* output : node.outputs()) {
        if (is_result(output)) results.push_back(output);
      }
    }
    if (results.size() > kMostConstants) return;
    for (Value* result : results) fold(result);
    remove_unused_nodes(graph_);
  }

 private:
  /// Whether a node depends on no input and on no weight.
  bool is_of_numbers(const Node& node) const {
    const AtenOpEntry* entry = find_aten_op(node);
    if (entry == nullptr || entry->op->raise == nullptr || !subgraphs_of(node).empty()) return false;
    if (!std::all_of(node.outputs().begin(), node.outputs().end(), is_known)) return false;
    return filled_with(node) || std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) {
             if (input == nullptr) return true;
             if (input->constant) return !input->trainable && !input->sparse && python::is_lifted(input->name);
             return input->producer != nullptr && free_.contains(input->producer);
           });
  }

  /// Whether others than nodes of numbers use it.
  bool is_result(const Value* value) const {
    int64_t count = 1;
    for (const Dim& dim : *value->type.shape) {
      const int64_t size = dim.constant().value_or(0);
      if (size < 1 || size > kMostElements / count) return false;
      count *= size;
    }
    return std::any_of(value->uses.begin(), value->uses.end(),
                       [&](const Use& use) { return use.user != nullptr && !free_.contains(use.user); });
  }

  /// The nodes that a value is made by, in their order.
  std::vector<const Node*> nodes_of(const Value* value) const {
    std::unordered_set<const Node*> needed{value->producer};
    std::vector<const Node*> open{value->producer}, result;
    while (!open.empty() && needed.size() <= kMostNodes) {
      const Node* node = open.back();
      open.pop_back();
      if (filled_with(*node)) continue;
      for (const Value* input : node->inputs()) {
        if (input && input->producer && needed.insert(input->producer).second) open.push_back(input->producer);
      }
    }
    if (needed.size() > kMostNodes) return {};
    for (const Node* node = value->producer; node != nullptr; node = node->previous) {
      if (needed.contains(node)) result.push_back(node);
    }
    std::reverse(result.begin(), result.end());
    return result;
  }

  static void add_full(const Node& node, Graph& to, ValueMap& map) {
    const Value& like = *node.output(0);
    std::vector<int64_t> sizes;
    for (const Dim& dim : *like.type.shape) sizes.push_back(*dim.constant());
    Node* full = to.add_node("aten", "full");
    full->attributes.push_back({"size", std::move(sizes), AttrType::None, {}, {}});
    const double number = *filled_with(node);
    if (is_float(like.type.dtype))
      full->attributes.push_back({"fill_value", number, AttrType::None, {}, {}});
    else
      full->attributes.push_back({"fill_value", static_cast<int64_t>(number), AttrType::None, {}, {}});
    full->attributes.push_back({"dtype", like.type.dtype, AttrType::None, {}, {}});
    map[&like] = to.add_output_to(full, to.unique_name(like.name), like.type);
  }

  TensorPtr computed(const Value* value, const std::vector<const Node*>& nodes) const {
    Model model;
    model.graph = std::make_shared<Graph>();
    Graph& graph = *model.graph;
    ValueMap map;
    for (const Node* node : nodes) {
      if (filled_with(*node)) {
        add_full(*node, graph, map);
        continue;
      }
      for (const Value* input : node->inputs()) {
        if (input && input->constant && !map.contains(input))
          map[input] = graph.add_initializer(graph.unique_name(input->name), input->constant);
      }
      clone_node(*node, graph, nullptr, map);
    }
    graph.add_output(map.at(value));
    try {
      const Model raised = raise(model, {"value"}, {});
      const Value* result = raised.graph->outputs()[0];
      while (!result->constant && result->producer && result->producer->op == "Identity")
        result = result->producer->input(0);
      const TensorPtr& tensor = result->constant;
      const bool fits = tensor && tensor->dtype == value->type.dtype &&
                        Shape(tensor->dims.begin(), tensor->dims.end()) == *value->type.shape;
      return fits ? tensor : nullptr;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Unsupported) throw;
      return nullptr;
    }
  }

  void fold(Value* value) {
    const std::vector<const Node*> nodes = nodes_of(value);
    if (nodes.size() < kFewNodes) return;
    TensorPtr tensor = computed(value, nodes);
    if (tensor == nullptr) return;
    // a name that says nothing: the constant is called after the place where it is used
    Value* made = graph_.add_initializer(fmt::format("val_{}", ++count_), std::move(tensor));
    for (const Use& use : std::vector<Use>(value->uses)) {
      if (use.user != nullptr) use.user->set_input(use.index, made);
    }
  }

  Graph& graph_;
  std::unordered_set<const Node*> free_;
  size_t count_ = 0;  // of constants
};

}  // namespace

void fold_program(Graph& graph) { ProgramFolding(graph).run(); }

}  // namespace tonnx
