// graph.cpp - keeps the links between nodes, values and uses.
#include "ir/graph.h"

#include <algorithm>

#include "base/error.h"

namespace tonnx {
namespace {

void remove_use(Value* value, const Node* user, size_t index) {
  auto& uses = value->uses;
  const auto at =
      std::find_if(uses.begin(), uses.end(), [&](const Use& use) { return use.user == user && use.index == index; });
  ensure(at != uses.end(), "a use is not listed with its value");
  *at = uses.back();
  uses.pop_back();
}

}  // namespace

AttrType attr_type_of(const AttrValue& value) {
  if (value.get<double>()) return AttrType::Float;
  if (value.get<int64_t>() || value.get<bool>()) return AttrType::Int;
  if (value.get<std::string>()) return AttrType::String;
  if (value.get<TensorPtr>()) return AttrType::Tensor;
  if (value.get<GraphPtr>()) return AttrType::Graph;
  if (value.get<SparseTensorPtr>()) return AttrType::SparseTensor;
  if (value.get<Type>()) return AttrType::Type;
  if (value.get<std::vector<double>>()) return AttrType::Floats;
  if (value.get<std::vector<int64_t>>()) return AttrType::Ints;
  if (value.get<std::vector<std::string>>()) return AttrType::Strings;
  if (const auto* list = value.get<AttrList>(); list && !list->empty()) {
    switch (attr_type_of(list->front())) {
      case AttrType::Tensor: return AttrType::Tensors;
      case AttrType::Graph: return AttrType::Graphs;
      case AttrType::SparseTensor: return AttrType::SparseTensors;
      case AttrType::Type: return AttrType::Types;
      default: break;
    }
  }
  return AttrType::None;
}

void Node::mark_changed() {
  for (Node* node = this; node != nullptr; node = node->graph ? node->graph->owner : nullptr) node->source = {};
}

void Node::set_input(size_t i, Value* value) {
  if (i >= inputs_.size()) inputs_.resize(i + 1, nullptr);
  if (inputs_[i] != nullptr) remove_use(inputs_[i], this, i);
  inputs_[i] = value;
  if (value != nullptr) value->uses.push_back({this, static_cast<uint32_t>(i)});
  mark_changed();
}

void Node::resize_inputs(size_t count) {
  for (size_t i = count; i < inputs_.size(); ++i) set_input(i, nullptr);
  inputs_.resize(count, nullptr);
  mark_changed();
}

void Node::resize_outputs(size_t count) {
  for (size_t i = count; i < outputs_.size(); ++i) {
    if (outputs_[i] == nullptr) continue;
    ensure(outputs_[i]->uses.empty(), "an output that is in use is removed");
    outputs_[i]->producer = nullptr;
  }
  outputs_.resize(count, nullptr);
  mark_changed();
}

const Attribute* Node::find_attribute(std::string_view wanted) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == wanted) return &attribute;
  }
  return nullptr;
}

void Node::set_attribute(std::string_view wanted, AttrValue value, AttrType type) {
  mark_changed();
  for (Attribute& attribute : attributes) {
    if (attribute.name == wanted) {
      attribute.value = std::move(value);
      attribute.type = type;
      return;
    }
  }
  attributes.push_back({std::string(wanted), std::move(value), type, {}, {}});
}

AttrValue Node::take_attribute(std::string_view wanted) {
  for (size_t i = 0; i < attributes.size(); ++i) {
    if (attributes[i].name != wanted) continue;
    AttrValue value = std::move(attributes[i].value);
    attributes.erase(attributes.begin() + static_cast<std::ptrdiff_t>(i));
    mark_changed();
    return value;
  }
  return {};
}

Value* Graph::new_value(std::string value_name, Type type) {
  names_.try_emplace(value_name, 1);
  Value& value = value_storage_.emplace_back();
  value.name = std::move(value_name);
  value.type = std::move(type);
  value.graph = this;
  return &value;
}

std::string Graph::unique_name(std::string_view wish) {
  std::string candidate(wish);
  const auto at = names_.find(candidate);
  if (at == names_.end()) return candidate;
  do {
    candidate = fmt::format("{}_{}", wish, ++at->second);
  } while (names_.contains(candidate));
  return candidate;
}

Value* Graph::add_input(std::string value_name, Type type) {
  inputs_.push_back(new_value(std::move(value_name), std::move(type)));
  return inputs_.back();
}

Value* Graph::add_initializer(std::string value_name, TensorPtr tensor) {
  Type type = Type::tensor(tensor->dtype, Shape(tensor->dims.begin(), tensor->dims.end()));
  Value* value = new_value(unique_name(value_name), std::move(type));
  value->constant = std::move(tensor);
  initializers_.push_back(value);
  return value;
}

void Graph::add_initializer(Value* value) { initializers_.push_back(value); }

void Graph::add_output(Value* value) {
  value->uses.push_back({nullptr, static_cast<uint32_t>(outputs_.size())});
  outputs_.push_back(value);
}

void Graph::set_output(size_t i, Value* value) {
  remove_use(outputs_[i], nullptr, i);
  value->uses.push_back({nullptr, static_cast<uint32_t>(i)});
  outputs_[i] = value;
}

void Graph::remove_initializer(Value* value) { std::erase(initializers_, value); }

void Graph::remove_input(size_t i) { inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i)); }

Node* Graph::add_node(Symbol domain, Symbol op, Node* before) {
  Node& node = node_storage_.emplace_back();
  node.domain = domain;
  node.op = op;
  node.graph = this;
  node.next = before;
  node.previous = before ? before->previous : last_;
  (node.previous ? node.previous->next : first_) = &node;
  (before ? before->previous : last_) = &node;
  ++node_count_;
  return &node;
}

Value* Graph::add_output_to(Node* node, std::string value_name, Type type) {
  Value* value = new_value(std::move(value_name), std::move(type));
  value->producer = node;
  value->output_index = static_cast<uint32_t>(node->outputs_.size());
  node->outputs_.push_back(value);
  return value;
}

void Graph::move_output(Value* value, Node* node, size_t i) {
  if (value->producer != nullptr) {
    value->producer->outputs_[value->output_index] = nullptr;
    value->producer->mark_changed();
  }
  if (i >= node->outputs_.size()) node->outputs_.resize(i + 1, nullptr);
  node->outputs_[i] = value;
  node->mark_changed();
  value->producer = node;
  value->output_index = static_cast<uint32_t>(i);
}

void Graph::erase(Node* node) {
  for (Value* output : node->outputs_) {
    if (output == nullptr) continue;
    ensure(output->uses.empty(), "a node whose output is in use is erased");
    output->producer = nullptr;
  }
  node->resize_inputs(0);
  (node->previous ? node->previous->next : first_) = node->next;
  (node->next ? node->next->previous : last_) = node->previous;
  node->graph = nullptr;
  --node_count_;
}

void Graph::replace_uses(Value* old_value, Value* new_value) {
  if (old_value == new_value) return;
  for (const Use& use : old_value->uses) {
    new_value->uses.push_back(use);
    if (use.user == nullptr) {
      old_value->graph->outputs_[use.index] = new_value;
    } else {
      use.user->inputs_[use.index] = new_value;
      use.user->mark_changed();
    }
  }
  old_value->uses.clear();
}

std::vector<GraphPtr> subgraphs_of(const Node& node) {
  std::vector<GraphPtr> graphs;
  for (const Attribute& attribute : node.attributes) {
    if (const auto* graph = attribute.value.get<GraphPtr>()) graphs.push_back(*graph);
    if (const auto* list = attribute.value.get<AttrList>()) {
      for (const AttrValue& item : *list) {
        if (const auto* graph = item.get<GraphPtr>()) graphs.push_back(*graph);
      }
    }
  }
  return graphs;
}

namespace {

void check(const Graph& graph, std::vector<const Value*>& defined) {
  const size_t outer = defined.size();
  std::unordered_map<const Value*, bool> known;
  for (const Value* value : defined) known.emplace(value, true);
  const auto define = [&](const Value* value) {
    if (known.emplace(value, true).second) defined.push_back(value);
  };
  for (const Value* value : graph.inputs()) define(value);
  for (const Value* value : graph.initializers()) define(value);
  size_t count = 0;
  for (const Node& node : graph) {
    ++count;
    ensure(node.graph == &graph, "a node is linked into a graph that does not own it");
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Value* value = node.inputs()[i];
      if (value == nullptr) continue;
      ensure(known.contains(value), "a value is used before it is made");
      ensure(std::any_of(value->uses.begin(), value->uses.end(),
                         [&](const Use& use) { return use.user == &node && use.index == i; }),
             "a use is not listed with its value");
    }
    for (const GraphPtr& subgraph : subgraphs_of(node)) check(*subgraph, defined);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const Value* value = node.outputs()[i];
      if (value == nullptr) continue;
      ensure(value->producer == &node && value->output_index == i, "a value does not know its producer");
      define(value);
    }
  }
  ensure(count == graph.node_count(), "the list of nodes is broken");
  for (const Value* value : graph.outputs()) ensure(known.contains(value), "an output is never made");
  defined.resize(outer);
}

}  // namespace

void check_invariants(const Graph& graph) {
  std::vector<const Value*> defined;
  check(graph, defined);
}

}  // namespace tonnx
