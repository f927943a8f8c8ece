// to_code_copies.cpp - removes what only places and copies tensors.
#include <algorithm>
#include <array>
#include <limits>

#include "passes/dialects/to_code_steps.h"
#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

bool is_op_of_aten(const Node& node, std::string_view op) { return node.domain == "aten" && node.op == Symbol(op); }

template <size_t kCount>
bool is_any(const Node& node, const std::array<std::string_view, kCount>& ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return is_op_of_aten(node, op); });
}

bool reads_memory(Graph& graph) {
  for (Node& node : graph) {
    if (is_op_of_aten(node, "as_strided") || is_op_of_aten(node, "as_strided_scatter")) return true;
    for (const GraphPtr& subgraph : subgraphs_of(node)) {
      if (reads_memory(*subgraph)) return true;
    }
  }
  return false;
}

bool is_integer_argument(const Node& node, std::string_view argument, int64_t wanted) {
  const Attribute* found = node.find_attribute(argument);
  const auto* number = found ? found->value.get<int64_t>() : nullptr;
  return number != nullptr && *number == wanted;
}

/// Whether dropout keeps everything, in training too.
bool drops_nothing(const Node& node) {
  constexpr std::array<std::string_view, 4> kDropouts = {"dropout", "alpha_dropout", "feature_dropout",
                                                         "feature_alpha_dropout"};
  return is_any(node, kDropouts) && is_number(node, "p", 0.0);
}

/// Whether it takes all of a dimension. A size that is not known may be any.
bool slices_nothing(const Node& node, const Type& before, const Type& after) {
  if (!is_op_of_aten(node, "slice") || (node.find_attribute("step") && !is_integer_argument(node, "step", 1)))
    return false;
  const auto is_left_out = [&](std::string_view name) {
    const Attribute* found = node.find_attribute(name);
    return found == nullptr || found->value.is_none();
  };
  const bool is_from_start = is_left_out("start") || is_integer_argument(node, "start", 0);
  const bool is_to_end = is_left_out("end") || is_integer_argument(node, "end", std::numeric_limits<int64_t>::max());
  return is_from_start && (is_to_end || (before.shape && after.shape && *before.shape == *after.shape));
}

bool pads_nothing(const Node& node) {
  if (!is_op_of_aten(node, "pad") && !is_op_of_aten(node, "constant_pad_nd")) return false;
  const Attribute* found = node.find_attribute("pad");
  const auto* counts = found ? found->value.get<std::vector<int64_t>>() : nullptr;
  return counts != nullptr && std::all_of(counts->begin(), counts->end(), [](int64_t n) { return n == 0; });
}

/// Whether the node gives its first input as it is.
bool changes_nothing(const Node& node) {
  constexpr std::array<std::string_view, 6> kCopies = {"contiguous", "clone",           "alias",
                                                       "lift_fresh", "lift_fresh_copy", "lift"};
  constexpr std::array<std::string_view, 2> kCasts = {"to", "_to_copy"};
  constexpr std::array<std::string_view, 3> kShapes = {"view", "reshape", "expand"};
  const Value* from = node.input(0);
  if (from == nullptr || !from->type.is_tensor() || node.outputs().size() != 1) return false;
  if (is_any(node, kCopies)) return true;
  const Type &before = from->type, &after = node.output(0)->type;
  if (before.dtype == DType::Undefined || before.dtype != after.dtype) return false;
  if (is_any(node, kCasts) || pads_nothing(node) || drops_nothing(node) || slices_nothing(node, before, after))
    return true;
  // without a gradient there is nothing to be cut off
  if (is_op_of_aten(node, "detach")) return from->constant ? !from->trainable : is_integer(before.dtype);
  return is_any(node, kShapes) && before.shape && after.shape && *before.shape == *after.shape;
}

void make_reshape(Node& node) {
  node.op = "reshape";
  for (Attribute& attribute : node.attributes) {
    if (attribute.name == "size") attribute.name = "shape";
  }
}

/// Of two reshapes the last one decides.
void skip_reshape(Node& node) {
  const Value* from = node.input(0);
  const Node* before = from ? from->producer : nullptr;
  const Attribute* self = node.find_attribute("self");
  const auto* operand = self ? self->value.get<Operand>() : nullptr;
  if (operand == nullptr || operand->index != 0 || before == nullptr || before->graph != node.graph) return;
  Value* source = before->input(0);
  if (is_op_of_aten(*before, "reshape") && source != nullptr && source->type.is_tensor()) node.set_input(0, source);
}

/// A conversion that also names a device, or another tensor, is one to a type.
void make_cast(Node& node) {
  const Attribute* self = node.find_attribute("self");
  const auto* operand = self ? self->value.get<Operand>() : nullptr;
  if (operand == nullptr || node.outputs().size() != 1 || node.output(0)->type.dtype == DType::Undefined) return;
  const Operand kept = *operand;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (i != kept.index) node.set_input(i, nullptr);
  }
  node.op = "to";
  node.overload = "dtype";
  std::erase_if(node.attributes, [](const Attribute& attribute) { return attribute.name != "self"; });
  node.set_attribute("dtype", node.output(0)->type.dtype);
}

/// From the first on, or to the last, need not be said.
void shorten_slice(Node& node) {
  std::erase_if(node.attributes, [&](const Attribute& attribute) {
    return (attribute.name == "start" && is_integer_argument(node, "start", 0)) ||
           (attribute.name == "end" && is_integer_argument(node, "end", std::numeric_limits<int64_t>::max()));
  });
}

/// States of zeros are what a module starts from anyway.
void forget_zero_state(Node& node) {
  constexpr std::array<std::string_view, 4> kLayers = {"lstm", "gru", "rnn_tanh", "rnn_relu"};
  if (!is_any(node, kLayers) || node.overload != "input" || node.graph->owner != nullptr) return;
  const Attribute *state = node.find_attribute("hx"), *weights = node.find_attribute("params");
  const auto* params = weights ? weights->value.get<AttrList>() : nullptr;
  if (state == nullptr || params == nullptr || node.input(0) == nullptr) return;
  const auto value_of = [&](const AttrValue& item) {
    const auto* operand = item.get<Operand>();
    return operand ? node.input(operand->index) : nullptr;
  };
  for (const AttrValue& param : *params) {  // what is no module must be given its state
    const Value* weight = value_of(param);
    if (weight == nullptr || !weight->constant || weight->uses.size() != 1) return;
  }
  const auto flag = [&](std::string_view name) {
    const Attribute* found = node.find_attribute(name);
    const auto* given = found ? found->value.get<bool>() : nullptr;
    return given != nullptr && *given;
  };
  const Attribute* layers = node.find_attribute("num_layers");
  const auto* count = layers ? layers->value.get<int64_t>() : nullptr;
  const int64_t per_layer = (flag("has_biases") ? 4 : 2) * (flag("bidirectional") ? 2 : 1);
  if (count == nullptr || static_cast<int64_t>(params->size()) != per_layer * *count) return;
  std::vector<AttrValue> states;
  if (const auto* list = state->value.get<AttrList>()) states.assign(list->begin(), list->end());
  if (state->value.get<Operand>() != nullptr) states.push_back(state->value);
  for (const AttrValue& item : states) {
    const Value* value = value_of(item);
    if (value == nullptr || value->producer == nullptr || !is_op_of_aten(*value->producer, "zeros") ||
        value->type.dtype != node.input(0)->type.dtype)
      return;
  }
  for (const AttrValue& item : states) node.set_input(item.get<Operand>()->index, nullptr);
  node.set_attribute("hx", state->value.get<AttrList>() ? AttrValue(AttrList{}) : AttrValue());
}

void drop_copies_in(Graph& graph, bool has_memory) {
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) drop_copies_in(*subgraph, has_memory);
    for (Value* output : node->outputs()) {
      const bool is_number =
          output && (output->type.kind == Type::Kind::Int || output->type.kind == Type::Kind::Float ||
                     output->type.kind == Type::Kind::Bool);
      if (is_number) output->name = graph.unique_name("n");
    }
    forget_zero_state(*node);
    if (is_op_of_aten(*node, "slice_scatter")) shorten_slice(*node);
    if (has_memory) continue;
    if (changes_nothing(*node)) {
      graph.replace_uses(node->output(0), node->input(0));
    } else if (is_op_of_aten(*node, "view") && node->overload.empty()) {
      make_reshape(*node);
    } else if (is_op_of_aten(*node, "to") || is_op_of_aten(*node, "_to_copy")) {
      make_cast(*node);
    }
    if (is_op_of_aten(*node, "reshape")) skip_reshape(*node);
  }
}

}  // namespace

void drop_copies(Graph& graph) {
  for (Value* value : graph.initializers()) {  // a parameter of a module that is made anew takes gradients
    const DType dtype = value->constant ? value->constant->dtype : DType::Undefined;
    if (dtype == DType::Bool || is_integer(dtype)) value->trainable = false;
  }
  drop_copies_in(graph, reads_memory(graph));
}

}  // namespace tonnx
