// weight_shapes.cpp - aten: weights that the file reshapes before it computes with them have the sizes of the file.
#include <algorithm>

#include "ops/frame/op_def.h"
#include "ops/frame/python_names.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

using Sizes = std::vector<int64_t>;

/// Whether a layer of PyTorch's has the weight, in the sizes that the layer needs. What it computes with is none.
bool is_of_layer(const Use& use) {
  const AtenOpEntry* entry = use.user ? find_aten_op(*use.user) : nullptr;
  if (entry == nullptr) return true;
  return entry->op->module != nullptr && operand(*use.user, "input") != use.user->input(use.index);
}

bool is_broadcast(const Node& node) {
  const AtenOpEntry* entry = find_aten_op(node);
  return entry != nullptr && entry->op->elementwise != Elementwise::No && node.inputs().size() == 2;
}

/// 1. A weight [H, D] that a sum or a product takes as [1, 1, H, D] is broadcast as it is.
bool needs_no_view(const Node& node, const Value& weight) {
  const Ints &to = weight.constant->dims, &from = weight.file_dims;
  if (!is_broadcast(node) || to.size() <= from.size()) return false;
  const auto more = static_cast<std::ptrdiff_t>(to.size() - from.size());
  const Value* other = node.input(0) == &weight ? node.input(1) : node.input(0);
  return std::all_of(to.begin(), to.begin() + more, [](int64_t size) { return size == 1; }) &&
         std::equal(from.begin(), from.end(), to.begin() + more) && other != nullptr && other != &weight &&
         other->type.rank().value_or(0) >= static_cast<int64_t>(to.size());
}

/// The sizes with -1 for the only one that is not 1, so that modules with other sizes have the same code.
Sizes plain_sizes(Sizes sizes) {
  const auto is_large = [](int64_t size) { return size != 1; };
  if (std::count_if(sizes.begin(), sizes.end(), is_large) == 1)
    *std::find_if(sizes.begin(), sizes.end(), is_large) = -1;
  return sizes;
}

/// 2. Elsewhere it is reshaped where it is used.
Value* add_view(Graph& graph, Value* own, const Value& weight, Node& before) {
  Node* view = graph.add_node("aten", "reshape", &before);
  view->name = before.name;
  view->metadata = before.metadata;
  add_operand(*view, "self", own);
  view->attributes.push_back({"shape", plain_sizes(weight.constant->dims), AttrType::None, {}, {}});
  return graph.add_output_to(view, graph.unique_name("view"), weight.type);
}

void restore_shape(Graph& graph, Value* weight) {
  auto tensor = std::make_shared<Tensor>(*weight->constant);
  tensor->dims = weight->file_dims;
  Value* own = graph.add_initializer(graph.unique_name(weight->name), tensor);
  own->trainable = true;
  std::swap(own->name, weight->name);
  const std::vector<Use> uses = weight->uses;
  for (const Use& use : uses) {
    Graph& around = *use.user->graph;
    use.user->set_input(use.index, needs_no_view(*use.user, *weight) ? own : add_view(around, own, *weight, *use.user));
  }
}

}  // namespace

void restore_weight_shapes(Graph& graph) {
  const std::vector<Value*> weights = graph.initializers();
  for (Value* weight : weights) {
    if (weight->file_dims.empty() || !weight->trainable || !weight->constant || weight->uses.empty()) continue;
    if (weight->file_dims == weight->constant->dims || python::is_made_up(weight->name)) continue;
    if (std::any_of(weight->uses.begin(), weight->uses.end(), is_of_layer)) continue;
    restore_shape(graph, weight);
  }
}

}  // namespace tonnx
