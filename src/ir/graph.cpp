// graph.cpp - keeps the links between nodes, values and uses.
#include "ir/graph.h"

#include <algorithm>
#include <unordered_set>

#include "base/budget.h"
#include "base/error.h"

namespace tonnx {

Graph::Graph() = default;
Graph::~Graph() = default;
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

/// Takes one out of a value's uses. The last one takes its place, and its user learns of that.
void Node::drop_use(Value* value, size_t place) {
  auto& uses = value->uses;
  uses[place] = uses.back();
  uses.pop_back();
  if (place < uses.size() && uses[place].user != nullptr)
    uses[place].user->use_places_[uses[place].index] = static_cast<uint32_t>(place);
}

void Node::unlink(size_t i) {
  Value* value = inputs_[i];
  if (value == nullptr) return;
  const size_t place = use_places_[i];
  ensure(place < value->uses.size() && value->uses[place].user == this && value->uses[place].index == i,
         "a use is not listed with its value");
  drop_use(value, place);
  inputs_[i] = nullptr;
}

void Node::link(size_t i, Value* value) {
  inputs_[i] = value;
  if (value == nullptr) return;
  use_places_[i] = static_cast<uint32_t>(value->uses.size());
  value->uses.push_back({this, static_cast<uint32_t>(i)});
}

void Node::set_input(size_t i, Value* value) {
  if (i >= inputs_.size()) {
    inputs_.resize(i + 1, nullptr);
    use_places_.resize(i + 1, 0);
  }
  unlink(i);
  link(i, value);
  mark_changed();
}

void Node::resize_inputs(size_t count) {
  for (size_t i = count; i < inputs_.size(); ++i) unlink(i);
  inputs_.resize(count, nullptr);
  use_places_.resize(count, 0);
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
  if (const auto* graph = value.get<GraphPtr>()) (*graph)->owner = this;
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
  budget().take(Resource::Nodes, 1);
  budget().take(Resource::Text, static_cast<int64_t>(value_name.size()));
  names_.try_emplace(value_name, 1);
  Value& value = value_storage_.emplace_back();
  value.name = std::move(value_name);
  value.type = std::move(type);
  value.graph = this;
  return &value;
}

bool Graph::is_taken(const std::string& wanted) const {
  for (const Graph* graph = this; graph != nullptr; graph = graph->owner ? graph->owner->graph : nullptr) {
    if (graph->names_.contains(wanted)) return true;
  }
  return false;
}

std::string Graph::unique_name(std::string_view hint) {
  std::vector<Graph*> around{this};
  for (const Node* node = owner; node != nullptr && node->graph != nullptr; node = node->graph->owner)
    around.push_back(node->graph);
  // The last number behind the hint up to which all are taken. What is taken around a graph is taken inside it: begun
  // there, the search of each of many graphs does not try them all again.
  std::string candidate(hint);
  unsigned last = 0;
  for (auto graph = around.rbegin(); graph != around.rend(); ++graph) {
    if (last == 0 && !(*graph)->names_.contains(candidate)) continue;
    unsigned& known = (*graph)->names_.try_emplace(candidate, 1).first->second;
    known = std::max(known, last);
    while ((*graph)->is_taken(fmt::format("{}_{}", hint, known + 1))) ++known;
    last = known;
  }
  if (last != 0) candidate = fmt::format("{}_{}", hint, last + 1);
  // nobody else gets it, and nodes that come later in the graphs around must not take it either
  for (Graph* graph : around) graph->names_.try_emplace(candidate, 1);
  return candidate;
}

void Graph::mark_changed() {
  if (owner != nullptr) owner->mark_changed();
}

Value* Graph::add_input(std::string value_name, Type type) {
  mark_changed();
  inputs_.push_back(new_value(std::move(value_name), std::move(type)));
  return inputs_.back();
}

Value* Graph::add_initializer(std::string value_name, TensorPtr tensor) {
  Type type = Type::tensor(tensor->dtype, Shape(tensor->dims.begin(), tensor->dims.end()));
  Value* value = new_value(unique_name(value_name), std::move(type));
  value->constant = std::move(tensor);
  add_initializer(value);
  return value;
}

void Graph::add_initializer(Value* value) {
  mark_changed();
  initializers_.push_back(value);
}

void Graph::add_output(Value* value) {
  mark_changed();
  value->uses.push_back({nullptr, static_cast<uint32_t>(outputs_.size()), this});
  outputs_.push_back(value);
}

/// Outputs do not know their places among the uses: there are few, and they seldom change.
void Graph::unlink_output(size_t i) {
  const auto& uses = outputs_[i]->uses;
  const auto at = std::find_if(uses.rbegin(), uses.rend(), [&](const Use& use) {
    return use.user == nullptr && use.index == i && use.output_of == this;
  });
  ensure(at != uses.rend(), "a use is not listed with its value");
  Node::drop_use(outputs_[i], static_cast<size_t>(uses.rend() - at) - 1);
}

void Graph::set_output(size_t i, Value* value) {
  mark_changed();
  unlink_output(i);
  value->uses.push_back({nullptr, static_cast<uint32_t>(i), this});
  outputs_[i] = value;
}

void Graph::remove_initializer(Value* value) {
  mark_changed();
  const auto at =
      std::find(initializers_.rbegin(), initializers_.rend(), value);  // from the back: a new one goes at once
  if (at != initializers_.rend()) initializers_.erase(std::next(at).base());
}

void Graph::remove_initializers(const std::function<bool(const Value&)>& is_unwanted) {
  if (std::erase_if(initializers_, [&](const Value* value) { return is_unwanted(*value); }) > 0) mark_changed();
}

void Graph::remove_input(size_t i) {
  mark_changed();
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
  if (i < input_declarations.size())
    input_declarations.erase(input_declarations.begin() + static_cast<std::ptrdiff_t>(i));
}

void Graph::remove_output(size_t i) {
  mark_changed();
  unlink_output(i);
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
  if (i < output_declarations.size())
    output_declarations.erase(output_declarations.begin() + static_cast<std::ptrdiff_t>(i));
  for (Value* value : std::unordered_set<Value*>(outputs_.begin(), outputs_.end())) {  // those behind it have moved up
    for (Use& use : value->uses) {
      if (use.user == nullptr && use.output_of == this && use.index > i) --use.index;
    }
  }
}

Node* Graph::add_node(Symbol domain, Symbol op, Node* before) {
  budget().take(Resource::Nodes, 1);
  mark_changed();
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

/// What the nodes of the graph use is no longer used by them.
void Graph::release_uses() {
  for (Node& node : *this) {
    node.resize_inputs(0);
    for (const GraphPtr& subgraph : subgraphs_of(node)) subgraph->release_uses();
  }
  for (size_t i = 0; i < outputs_.size(); ++i) unlink_output(i);
  outputs_.clear();
}

void Graph::erase(Node* node) {
  for (Value* output : node->outputs_) {
    if (output == nullptr) continue;
    ensure(output->uses.empty(), "a node whose output is in use is erased");
    output->producer = nullptr;
  }
  node->resize_inputs(0);
  for (const GraphPtr& subgraph : subgraphs_of(*node)) subgraph->release_uses();
  unlink_node(node);
  node->graph = nullptr;
  --node_count_;
}

void Graph::unlink_node(Node* node) {
  (node->previous ? node->previous->next : first_) = node->next;
  (node->next ? node->next->previous : last_) = node->previous;
}

void Graph::move_node(Node* node, Node* before) {
  if (node == before) return;
  mark_changed();
  unlink_node(node);
  node->next = before;
  node->previous = before->previous;
  (node->previous ? node->previous->next : first_) = node;
  before->previous = node;
}

void Graph::replace_uses(Value* old_value, Value* new_value) {
  if (old_value == new_value) return;
  for (const Use& use : old_value->uses) {
    new_value->uses.push_back(use);
    if (use.user == nullptr) {
      use.output_of->outputs_[use.index] = new_value;
      use.output_of->mark_changed();
    } else {
      use.user->inputs_[use.index] = new_value;
      use.user->use_places_[use.index] = static_cast<uint32_t>(new_value->uses.size() - 1);
      use.user->mark_changed();
    }
  }
  old_value->uses.clear();
}

std::vector<Value*> inputs_without_values(const Graph& graph) {
  std::vector<Value*> result;
  for (Value* input : graph.inputs()) {
    if (!input->constant && !input->sparse) result.push_back(input);
  }
  return result;
}

std::vector<GraphPtr> subgraphs_of(const Node& node) {
  static const Symbol kAten("aten");
  if (node.domain == kAten) return {};  // no operator there has any, and passes ask each node
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

void remove_unused_nodes(Graph& graph) {
  for (Node* node = graph.last(); node != nullptr;) {
    Node* previous = node->previous;
    if (std::none_of(node->outputs().begin(), node->outputs().end(), is_used)) {
      graph.erase(node);
    } else {
      for (const GraphPtr& inner : subgraphs_of(*node)) remove_unused_nodes(*inner);
    }
    node = previous;
  }
}

namespace {

class Checker {
 public:
  void check(const Graph& graph) {
    const size_t outer = defined_.size();
    for (const Value* value : graph.inputs()) define(graph, value);
    for (const Value* value : graph.initializers()) {
      ensure(value->constant || value->sparse, "an initializer has no tensor");
      const bool is_input = known_.contains(value) && value->graph == &graph && value->producer == nullptr;
      if (!is_input) define(graph, value);
    }
    size_t count = 0;
    for (const Node& node : graph) {
      ++count;
      check(graph, node);
    }
    ensure(count == graph.node_count(), "the list of nodes is broken");
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      use(graph.outputs()[i], {nullptr, static_cast<uint32_t>(i), const_cast<Graph*>(&graph)},
          "an output is never made");
    }
    for (size_t i = outer; i < defined_.size(); ++i) {
      const Value* value = defined_[i];
      ensure(known_.at(value) == value->uses.size(), "a value lists a use that does not exist");
      known_.erase(value);
    }
    defined_.resize(outer);
  }

 private:
  void check(const Graph& graph, const Node& node) {
    ensure(node.graph == &graph, "a node is linked into a graph that does not own it");
    ensure(node.next ? node.next->previous == &node : graph.last() == &node, "the list of nodes is broken");
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.input(i) == nullptr) continue;
      use(node.input(i), {const_cast<Node*>(&node), static_cast<uint32_t>(i)}, "a value is used before it is made");
    }
    for (const GraphPtr& subgraph : subgraphs_of(node)) {
      ensure(subgraph->owner == &node, "a subgraph does not know the node that it belongs to");
      check(*subgraph);
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const Value* value = node.output(i);
      if (value == nullptr) continue;
      ensure(value->producer == &node && value->output_index == i, "a value does not know its producer");
      define(graph, value);
    }
  }

  void define(const Graph& graph, const Value* value) {
    ensure(value->graph == &graph, "a value is made in a graph that does not own it");
    ensure(known_.emplace(value, 0).second, "a value is made twice");
    defined_.push_back(value);
    for (const Use& each : value->uses) {
      ensure(listed_.insert({value, each.user, each.index, each.output_of}).second, "a value lists a use twice");
    }
  }

  void use(const Value* value, const Use& use, const char* what) {
    const auto at = known_.find(value);
    ensure(at != known_.end(), what);
    ensure(listed_.contains({value, use.user, use.index, use.output_of}), "a use is not listed with its value");
    ++at->second;
  }

  struct Listed {
    const Value* value;
    const Node* user;
    uint32_t index;
    const Graph* output_of;
    bool operator==(const Listed&) const = default;
  };
  struct Hash {
    size_t operator()(const Listed& use) const {
      const std::hash<const void*> of;
      return ((of(use.value) * 31 + of(use.user)) * 31 + of(use.output_of)) * 31 + use.index;
    }
  };
  std::unordered_map<const Value*, size_t> known_;  // values that can be seen here, and how often they were used so far
  std::vector<const Value*> defined_;               // the same, in the order of their making
  std::unordered_set<Listed, Hash> listed_;
};

}  // namespace

void check_invariants(const Graph& graph) { Checker().check(graph); }

}  // namespace tonnx
