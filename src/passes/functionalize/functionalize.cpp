// functionalize.cpp - aten: operators that write to tensors become operators that give new ones.
//
// What shares memory with what follows from the operators alone, as types have no strides: inputs, initializers and the
// results of operators that are no views lie row by row, or, where the operator is elementwise, in the order of its
// first tensor; views have the strides that follow from there. With these, reshape, flatten, contiguous and the like
// are views where PyTorch's own rule says so.
#include <unordered_set>

#include "base/error.h"
#include "ir/clone.h"
#include "ops/frame/aten_names.h"
#include "passes/frame/aten_match.h"
#include "passes/functionalize/readying.h"
#include "passes/functionalize/write_as_functional_op.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

using Names = std::unordered_set<std::string_view>;

bool is_one_of(const Node& node, const Names& names) {
  static const Symbol aten("aten");
  return node.domain == aten && names.contains(node.op.view());
}

// Operators that leave the graph here, and so have no rows, which could say this of them.

/// Checks at run time, hints to PyTorch's own analysis, and switches of its autograd.
bool says_nothing(const Node& node) {
  static const Names names = {"_assert_async",
                              "_assert_scalar",
                              "_assert_tensor_metadata",
                              "_functional_assert_async",
                              "_functional_assert_scalar",
                              "sym_constrain_range",
                              "sym_constrain_range_for_size"};
  if (is_one_of(node, names)) return true;
  return node.domain.view().starts_with("torch") && node.op.view().ends_with("_set_grad_enabled");
}

bool is_same_tensor(const Node& node) {
  static const Names names = {"alias", "detach", "detach_", "lift_fresh", "requires_grad_"};
  return is_one_of(node, names);
}

/// Views that take the place of the tensor they look at.
bool turns_in_place(const Node& node) {
  static const Names names = {"as_strided_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"};
  return is_one_of(node, names);
}

/// Whether elements of any time will do.
bool asks_shape(const Node& node) {
  static const Names names = {"sym_size", "sym_numel", "sym_stride", "sym_storage_offset"};
  return is_one_of(node, names);
}

bool writes(const Node& node) { return !is_same_tensor(node) && (writes_self(node) || !out_arguments(node).empty()); }

Value* argument_of(const Node& node) {
  for (const std::string_view name : {"self", "input"}) {
    if (Value* value = operand(node, name)) return value;
  }
  fail_invalid("the node has no tensor 'self'");
}

/// The size of a dimension that tensors are broadcast to: of one of them, where it is open.
IntArg broadcast_size(const Dim& wanted, size_t from_end, const Node& node, AtenWriter& writer) {
  if (const auto number = wanted.constant()) return *number;
  for (Value* tensor : node.inputs()) {
    const Shape& shape = *tensor->type.shape;
    if (from_end <= shape.size() && shape[shape.size() - from_end] == wanted)
      return writer.size(tensor, tensor->type, shape.size() - from_end, &node);
  }
  fail_unsupported("no tensor of {} has the size {}", node.op.view(), wanted.text());
}

/// The tensors of a grid with dimensions for the others, so that they can be broadcast.
void give_axes(std::vector<Value*>& tensors, bool swaps, const Node& node, AtenWriter& writer) {
  const size_t count = tensors.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t at = swaps && count > 1 && i < 2 ? 1 - i : i;
    for (size_t rank = tensors[i]->type.shape->size(); rank < count; ++rank) {
      const auto dim = static_cast<int64_t>(rank <= at ? 0 : rank);
      Type type = tensors[i]->type;
      type.shape->insert(type.shape->begin() + dim, Dim(1));
      AtenCall call("unsqueeze", "", &node);
      call.with("self", tensors[i]).with("dim", IntArg(dim));
      tensors[i] = writer.add(call, type, "axis");
    }
  }
}

/// broadcast_tensors and meshgrid give views of all their tensors: each becomes `expand` of its own.
void write_as_expand(Graph& graph, Node& node) {
  AtenWriter writer(graph);
  writer.write_before(&node);
  std::vector<Value*> tensors(node.inputs().begin(), node.inputs().end());
  for (const Value* tensor : tensors) require(tensor && tensor->type.shape, "a tensor of unknown shape is broadcast");
  require(tensors.size() == node.outputs().size(), "{} tensors become {}", tensors.size(), node.outputs().size());
  const bool is_grid = node.op == "meshgrid";
  const Attribute* indexing = node.find_attribute("indexing");
  const auto* order = indexing ? indexing->value.get<std::string>() : nullptr;
  const bool swaps = order != nullptr && *order == "xy";
  std::vector<Value*> aligned = tensors;
  if (is_grid) give_axes(aligned, swaps, node, writer);
  for (size_t i = 0; i < tensors.size(); ++i) {
    Value* output = node.output(i);
    if (output == nullptr) continue;
    const Shape& shape = *output->type.shape;
    IntArgs sizes;
    for (size_t d = 0; d < shape.size(); ++d) {
      const size_t of = swaps && shape.size() > 1 && d < 2 ? 1 - d : d;
      sizes.push_back(!is_grid                           ? broadcast_size(shape[d], shape.size() - d, node, writer)
                      : tensors[of]->type.shape->empty() ? IntArg(1)
                                                         : writer.size(tensors[of], tensors[of]->type, 0, &node));
    }
    AtenCall call("expand", "", &node);
    call.with("self", aligned[i]).with("size", sizes);
    graph.replace_uses(output, writer.add(call, output->type, "expand"));
  }
  graph.erase(&node);
}

class Functionalizer {
 public:
  Functionalizer(Graph& graph) : graph_(graph), memory_(graph) {}  // NOLINT: one graph, one of these

  std::vector<std::string> run() {
    for (const Node& node : graph_) {
      writes_ = writes_ || writes(node);
      by_strides_ = by_strides_ || reads_by_strides(node);
    }
    by_strides_ = by_strides_ && has_fixed_inputs(graph_);
    static const Names spreads = {"broadcast_tensors", "meshgrid"};
    for (Node* node = writes_ ? graph_.first() : nullptr; node != nullptr;) {
      Node* next = node->next;
      if (is_one_of(*node, spreads)) write_as_expand(graph_, *node);
      node = next;
    }
    for (Node* node = graph_.first(); node != nullptr;) {
      Node* next = node->next;  // what is written on the way needs no visit
      in_context([&] { return fmt::format("making node '{}' ({}) functional", shown(node->name), node->op.view()); },
                 [&] { visit(*node); });
      node = next;
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      Value* output = graph_.outputs()[i];
      if (Place* place = memory_.find(output)) {
        Value* now = memory_.read(*place, nullptr);
        if (now != output) edits_.push_back({nullptr, static_cast<uint32_t>(i), now});
      }
    }
    apply_edits();
    return memory_.written();
  }

 private:
  /// An input of a node, or, with no node, an output of the graph, that becomes another value; with no value: the node
  /// goes away. All edits wait until the end, so that nodes show whose memory they use for as long as it is asked.
  struct Edit {
    Node* node;
    uint32_t index;
    Value* value;
  };

  void visit(Node& node) {
    if (says_nothing(node)) return erase(node);
    for (const GraphPtr& subgraph : subgraphs_of(node)) {
      redirect_captures(node, *subgraph);
      functionalize(*subgraph);
    }
    static const Names fresh = {"lift_fresh_copy"};
    const bool is_fresh = is_one_of(node, fresh);
    const bool copies = is_fresh || copies_view(node);
    use_canonical_name(node);
    if (writes_) show_view(node);
    if (is_fresh || is_same_tensor(node)) return see_through(node, copies);
    if (!writes_ && !by_strides_) return redirect(node);
    if (turns_in_place(node)) {
      Value* self = argument_of(node);
      use_functional_name(node);
      require(node.output(0) != nullptr, "the node gives nothing");
      view(node);
      return memory_.set(self, memory_.get(node.output(0)));
    }
    if (writes(node)) return write(node);
    if (by_strides_ && reads_by_strides(node)) use_whole_memory(node, memory_, writes_);
    if (!copies && viewed_input(node) >= 0) return view(node);
    redirect(node);
    memory_.add_result(node);
  }

  void erase(Node& node) { edits_.push_back({&node, 0, nullptr}); }

  void see_through(Node& node, bool copies) {
    Value* of = argument_of(node);
    Place& place = memory_.get(of);
    Place& result = copies ? memory_.add_copy(memory_.read(place, &node), place.type) : place;
    for (const Value* output : node.outputs()) {
      if (output != nullptr) memory_.set(output, result);
    }
    erase(node);
  }

  /// The node reads what is in memory now.
  void redirect(Node& node) {
    const bool any = asks_shape(node);
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      Place* place = memory_.find(node.input(i));
      if (place == nullptr) continue;
      Value* now = any ? memory_.any(*place, &node) : memory_.read(*place, &node);
      if (now != node.input(i)) edits_.push_back({&node, static_cast<uint32_t>(i), now});
    }
  }

  void redirect_captures(Node& outer, Graph& inner) {
    const auto now = [&](Value* value) {
      Place* place = value && value->graph == &graph_ ? memory_.find(value) : nullptr;
      return place ? memory_.read(*place, &outer) : value;
    };
    for (Node& node : inner) {
      for (size_t i = 0; i < node.inputs().size(); ++i) {
        if (Value* value = now(node.input(i)); value != node.input(i)) node.set_input(i, value);
      }
      for (const GraphPtr& subgraph : subgraphs_of(node)) redirect_captures(outer, *subgraph);
    }
    for (size_t i = 0; i < inner.outputs().size(); ++i) {
      if (Value* value = now(inner.outputs()[i]); value != inner.outputs()[i]) inner.set_output(i, value);
    }
  }

  /// What it looks at need not lie in memory as it did, once writes are gone.
  static void reshape_instead(Symbol& op, std::vector<Attribute>& attributes) {
    op = "reshape";
    for (Attribute& attribute : attributes) {
      if (attribute.name == "size") attribute.name = "shape";
    }
  }

  void view(Node& node) {
    const auto at = static_cast<size_t>(viewed_input(node));
    Place& parent = memory_.get(node.input(at));
    memory_.writer().write_before(node.next);
    const Viewed seen = memory_.viewed(parent, asks_strides(node));
    std::vector<View> views = views_of(node, seen, memory_.writer());
    if (node.op == "view" && node.overload.empty()) {
      reshape_instead(node.op, node.attributes);
      reshape_instead(views[0].call.op, views[0].call.attributes);
    }
    const bool is_one = node.outputs().size() == 1 && views.size() == 1;
    if (is_one && views[0].kind == View::Kind::None) {
      redirect(node);
      return memory_.add_result(node);
    }
    if (is_one && views[0].kind == View::Kind::Merged) {
      memory_.set(node.output(0), parent);
      return erase(node);
    }
    // a view that is not needed now is made later, where it is read: by then it may have been overwritten
    const bool is_part = views.size() != 1 || views[0].call.op != node.op;
    const bool is_needed = is_part || views[0].may_copy || memory_.is_current(parent);
    if (is_needed) redirect(node);
    bool is_used = false;
    for (size_t i = 0; i < views.size(); ++i) {
      if (node.output(i) == nullptr) continue;
      for (size_t k = 0; k < views[i].call.inputs.size(); ++k) resolve(views[i].call.inputs[k], node);
      Place& place = memory_.add_view(parent, std::move(views[i]));
      if (is_needed && !memory_.is_current(place)) {
        memory_.set_current(place, node.output(i));
        is_used = true;
      }
      memory_.set(node.output(i), place);
    }
    if (!is_used) erase(node);
  }

  /// Other tensors that a view needs, for their shapes.
  void resolve(Value*& value, Node& node) {
    if (Place* place = memory_.find(value)) value = memory_.any(*place, &node);
  }

  void write(Node& node) {
    const bool stays = gives_new_tensor(node);
    if (stays) redirect(node);
    FunctionalWrite(graph_, memory_, node);
    if (!stays) erase(node);
  }

  /// From the last to the first: uses are found fastest at the end of the lists that values keep.
  void apply_edits() {
    for (size_t i = edits_.size(); i-- > 0;) {
      const Edit& edit = edits_[i];
      if (edit.node == nullptr) {
        graph_.set_output(edit.index, edit.value);
      } else if (edit.node->graph != nullptr) {
        if (edit.value != nullptr)
          edit.node->set_input(edit.index, edit.value);
        else
          erase_with_numbers(*edit.node);
      }
    }
  }

  /// Numbers that only the node looked at go away with it.
  void erase_with_numbers(Node& first) {
    std::vector<Node*> waiting = {&first};
    while (!waiting.empty()) {
      Node* node = waiting.back();
      waiting.pop_back();
      if (node->graph == nullptr || !is_unused(*node)) continue;
      std::vector<Node*> makers;
      for (const Value* input : node->inputs()) {
        const bool is_number = input && input->producer && input->graph == &graph_ && !input->type.is_tensor();
        if (is_number) makers.push_back(input->producer);
      }
      graph_.erase(node);
      waiting.insert(waiting.end(), makers.begin(), makers.end());
    }
  }

  static bool is_unused(const Node& node) {
    for (const Value* output : node.outputs()) {
      if (output != nullptr && !output->uses.empty()) return false;
    }
    return true;
  }

  Graph& graph_;
  TensorMemory memory_;
  std::vector<Edit> edits_;
  bool writes_ = false;
  bool by_strides_ = false;  // memory is asked for, and not only written to
};

/// Where autocast is off it changes nothing.
void autocast(const Node& node, Graph& body) {
  const Attribute* enabled = node.find_attribute("enabled");
  const Attribute* dtype = node.find_attribute("dtype");
  if (enabled == nullptr || !enabled->value.get<bool>() || !*enabled->value.get<bool>()) return;
  if (dtype == nullptr || !dtype->value.get<DType>()) fail_unsupported("autocast to a type that is not known");
  write_autocast(body, *dtype->value.get<DType>());
}

/// 1. What runs with autograd or autocast switched is a graph of its own, which may write to tensors of the one around
/// it.
void inline_switches(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    const std::vector<GraphPtr> bodies = subgraphs_of(*node);
    const bool is_grad = node->op == "wrap_with_set_grad_enabled";
    const bool is_autocast = node->op == "wrap_with_autocast";
    if (!(is_grad || is_autocast) || bodies.size() != 1) {
      node = next;
      continue;
    }
    if (is_autocast) autocast(*node, *bodies[0]);
    const Graph& body = *bodies[0];
    require(body.inputs().size() == node->inputs().size() && body.outputs().size() >= node->outputs().size(),
            "node '{}' and the graph in it differ in their inputs or outputs", node->name);
    ValueMap map;
    for (size_t i = 0; i < body.inputs().size(); ++i) map[body.inputs()[i]] = node->input(i);
    Node* previous = node->previous;
    clone_nodes(body, graph, node, map);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      if (node->output(i) != nullptr) graph.replace_uses(node->output(i), copy_of(body.outputs()[i], map));
    }
    graph.erase(node);
    node = previous ? previous->next : graph.first();
  }
}

}  // namespace

std::vector<std::string> functionalize(Graph& graph) {
  inline_switches(graph);
  return Functionalizer(graph).run();
}

}  // namespace tonnx
