// edit.cpp - changes graphs for the interface.
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "api/internal.h"
#include "passes/passes.h"

namespace tonnx::v1 {
namespace {

constexpr uint64_t kBytesOfNode = 512;  // that a node, as the limits see it, is as large as

// A view is of what the model owns, and the editor may change the model.
core::Graph& mutable_graph(const detail::Graph* graph) { return const_cast<core::Graph&>(open(graph)); }  // NOLINT
core::Node& mutable_node(NodeView node) {
  core::require(static_cast<bool>(node), "there is no node");
  auto& found = const_cast<core::Node&>(open(node.handle()));  // NOLINT
  core::require(found.graph != nullptr, "the node was removed");
  return found;
}
core::Value* find_value(ValueView value) {
  return value ? const_cast<core::Value*>(&open(value.handle())) : nullptr;  // NOLINT
}
core::Value& mutable_value(ValueView value) {
  core::require(static_cast<bool>(value), "there is no value");
  return *find_value(value);
}

Model::Content& changed(void* content, uint64_t nodes = 0) {
  auto& model = *static_cast<Model::Content*>(content);
  model.is_checked = false;
  model.input_bytes += nodes * kBytesOfNode;
  return model;
}

/// What the file said of values, with their names in it; the types are kept with the values.
void forget_declarations(core::Value& value) {
  core::Graph& graph = *value.graph;
  graph.value_declarations.clear();
  const auto forget = [&](const std::vector<core::Value*>& values, std::vector<core::Bytes>& declarations) {
    for (size_t i = 0; i < values.size() && i < declarations.size(); ++i) {
      if (values[i] == &value) declarations[i] = {};
    }
  };
  forget(graph.inputs(), graph.input_declarations);
  forget(graph.outputs(), graph.output_declarations);
}

/// The nodes around a value say its name.
void mark_name_changed(core::Value& value) {
  if (value.producer != nullptr) value.producer->mark_changed();
  for (const core::Use& use : value.uses) {
    if (use.user != nullptr) {
      use.user->mark_changed();
    } else if (use.output_of->owner != nullptr) {
      use.output_of->owner->mark_changed();
    }
  }
  if (value.graph->owner != nullptr) value.graph->owner->mark_changed();
}

size_t place_in(const std::vector<core::Value*>& values, const core::Value& value, const char* what) {
  const auto at = std::find(values.begin(), values.end(), &value);
  core::require(at != values.end(), "'{}' is no {} of the graph", value.name, what);
  return static_cast<size_t>(at - values.begin());
}

/// Which nodes of a graph a node has to wait for: those that make its inputs, and those of the graphs inside it.
void add_needs(const core::Node& node, const core::Graph& graph, std::unordered_set<core::Node*>& needs) {
  for (const core::Value* input : node.inputs()) {
    if (input != nullptr && input->producer != nullptr && input->graph == &graph) needs.insert(input->producer);
  }
  for (const core::GraphPtr& inner : core::subgraphs_of(node)) {
    for (const core::Node& each : *inner) add_needs(each, graph, needs);
    for (const core::Value* output : inner->outputs()) {
      if (output->producer != nullptr && output->graph == &graph) needs.insert(output->producer);
    }
  }
}

/// The nodes in an order in which they can run, the first that can first.
std::vector<core::Node*> running_order(core::Graph& graph) {
  std::unordered_map<const core::Node*, size_t> place, waits;
  std::unordered_map<const core::Node*, std::vector<core::Node*>> behind;
  std::vector<core::Node*> all, order;
  for (core::Node& node : graph) {
    place[&node] = all.size();
    all.push_back(&node);
  }
  const auto is_later = [&](const core::Node* a, const core::Node* b) { return place[a] > place[b]; };
  std::priority_queue<core::Node*, std::vector<core::Node*>, decltype(is_later)> ready(is_later);
  for (core::Node* node : all) {
    std::unordered_set<core::Node*> needs;
    add_needs(*node, graph, needs);
    waits[node] = needs.size();
    for (core::Node* need : needs) behind[need].push_back(node);
    if (needs.empty()) ready.push(node);
  }
  while (!ready.empty()) {
    core::Node* node = ready.top();
    ready.pop();
    order.push_back(node);
    for (core::Node* next : behind[node]) {
      if (--waits[next] == 0) ready.push(next);
    }
  }
  for (const core::Node* node : all)
    core::require(waits[node] == 0, "node '{}' ({}) depends on itself", node->name, node->op.view());
  return order;
}

/// Links the nodes anew. The graph itself moves its first and last along with the two that are added for it.
void set_order(core::Graph& graph, const std::vector<core::Node*>& order) {
  if (order.empty()) return;
  core::Node* front = graph.add_node("", "Identity", graph.first());
  core::Node* back = graph.add_node("", "Identity");
  core::Node* last = front;
  for (core::Node* node : order) {
    last->next = node;
    node->previous = last;
    last = node;
  }
  last->next = back;
  back->previous = last;
  graph.erase(front);
  graph.erase(back);
}

}  // namespace

AttributeValue::AttributeValue(int64_t value) : content_(new Content{value}) {}
AttributeValue::AttributeValue(int value) : AttributeValue(int64_t{value}) {}
AttributeValue::AttributeValue(double value) : content_(new Content{value}) {}
AttributeValue::AttributeValue(const char* value) : AttributeValue(std::string(value)) {}
AttributeValue::AttributeValue(std::string value) : content_(new Content{std::move(value)}) {}
AttributeValue::AttributeValue(std::vector<int64_t> value) : content_(new Content{std::move(value)}) {}
AttributeValue::AttributeValue(std::vector<double> value) : content_(new Content{std::move(value)}) {}
AttributeValue::AttributeValue(std::vector<std::string> value) : content_(new Content{std::move(value)}) {}
AttributeValue::AttributeValue(const Tensor& value) : content_(new Content{Access::tensor(value)}) {}
AttributeValue::AttributeValue(const AttributeView& other)
    : content_(translated([&] {
        if (other.kind() == AttributeView::Kind::Graph || other.kind() == AttributeView::Kind::List)
          core::fail_unsupported("the attribute '{}' is a graph, or has some in it", other.name());
        return new Content{open(other.handle())};
      })) {}
AttributeValue::AttributeValue(const AttributeValue& other) : content_(new Content(*other.content_)) {}
AttributeValue::AttributeValue(AttributeValue&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
AttributeValue& AttributeValue::operator=(AttributeValue other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
AttributeValue::~AttributeValue() { delete content_; }

GraphEditor Model::edit() {
  return translated([&] {
    content_->require_onnx("edit");
    return GraphEditor(graph().handle(), content_);
  });
}

GraphView GraphEditor::graph() const { return GraphView(graph_); }

ValueView GraphEditor::add_input(std::string name, const Type& type) {
  return translated([&] {
    changed(content_, 1);
    core::require(!name.empty(), "an input needs a name");
    return view_of(mutable_graph(graph_).add_input(std::move(name), core_of(type)));
  });
}

ValueView GraphEditor::add_initializer(std::string name, const Tensor& tensor) {
  return translated([&] {
    changed(content_, 1);
    core::Graph& graph = mutable_graph(graph_);
    const core::TensorPtr& inner = Access::tensor(tensor);
    core::require(!name.empty() && inner->dtype != core::DType::Undefined, "a weight needs a name and a type");
    core::Value* value = graph.new_value(
        std::move(name), core::Type::tensor(inner->dtype, core::Shape(inner->dims.begin(), inner->dims.end())));
    value->constant = inner;
    graph.add_initializer(value);
    return view_of(value);
  });
}

void GraphEditor::add_output(ValueView value) {
  translated([&] {
    changed(content_);
    mutable_graph(graph_).add_output(&mutable_value(value));
  });
}

namespace {

core::Node& add_node(core::Graph& graph, Model::Content& content, std::string_view op,
                     const std::vector<ValueView>& inputs, const NodeOptions& options, core::Node* before) {
  core::require(!op.empty(), "a node needs an operator");
  core::Model& model = content.model();
  const std::string domain = options.domain == "ai.onnx" ? std::string() : options.domain;
  if (model.opset(domain) == 0) model.opsets.emplace_back(domain, 1);
  core::Node& node = *graph.add_node(domain, op, before);
  node.version = model.opset(domain);
  node.name = options.name;
  node.resize_inputs(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) node.set_input(i, find_value(inputs[i]));
  }
  for (const auto& [name, value] : options.attributes) node.set_attribute(name, attribute_of(value));
  return node;
}

}  // namespace

NodeView GraphEditor::add_node(std::string_view op, const std::vector<ValueView>& inputs, const NodeOptions& options) {
  return translated([&] {
    core::Graph& graph = mutable_graph(graph_);
    core::Node* before = options.before ? &mutable_node(options.before) : nullptr;
    core::require(before == nullptr || before->graph == &graph, "the node to stand in front of is of another graph");
    core::Node& node = v1::add_node(graph, changed(content_, 2), op, inputs, options, before);
    for (const std::string& name : options.outputs) {
      if (name.empty()) {
        node.resize_outputs(node.outputs().size() + 1);
      } else {
        graph.add_output_to(&node, name);
      }
    }
    if (options.outputs.empty())
      graph.add_output_to(&node, graph.unique_name(options.name.empty() ? op : options.name + "_output"));
    return view_of(&node);
  });
}

NodeView GraphEditor::replace(NodeView node, std::string_view op, const std::vector<ValueView>& inputs,
                              const NodeOptions& options) {
  return translated([&] {
    core::Graph& graph = mutable_graph(graph_);
    core::Node& old = mutable_node(node);
    core::require(old.graph == &graph, "the node is of another graph");
    core::require(options.outputs.empty(), "the outputs of a node that takes the place of another are those of it");
    core::Node& made = v1::add_node(graph, changed(content_, 2), op, inputs, options, &old);
    const std::vector<core::Value*> outputs = old.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != nullptr) graph.move_output(outputs[i], &made, i);
    }
    graph.erase(&old);
    return view_of(&made);
  });
}

void GraphEditor::set_input(NodeView node, size_t i, ValueView value) {
  translated([&] {
    changed(content_);
    constexpr size_t kMost = size_t{1} << 20;
    core::require(i < kMost, "a node has no input {}", i);
    mutable_node(node).set_input(i, find_value(value));
  });
}

void GraphEditor::set_attribute(NodeView node, std::string_view name, const AttributeValue& value) {
  translated([&] {
    changed(content_);
    core::Node& found = mutable_node(node);
    const core::Attribute* old = found.find_attribute(name);
    if (old != nullptr && old->value.get<core::GraphPtr>()) (*old->value.get<core::GraphPtr>())->release_uses();
    found.set_attribute(name, attribute_of(value));
  });
}

void GraphEditor::remove_attribute(NodeView node, std::string_view name) {
  translated([&] {
    changed(content_);
    const core::AttrValue old = mutable_node(node).take_attribute(name);
    if (const auto* graph = old.get<core::GraphPtr>()) (*graph)->release_uses();
  });
}

void GraphEditor::set_metadata(NodeView node, std::string key, std::string value) {
  translated([&] {
    changed(content_);
    core::Node& found = mutable_node(node);
    found.mark_changed();
    const auto at = std::find_if(found.metadata.begin(), found.metadata.end(),
                                 [&](const auto& entry) { return entry.first == key; });
    if (at != found.metadata.end()) {
      at->second = std::move(value);
    } else {
      found.metadata.emplace_back(std::move(key), std::move(value));
    }
  });
}

void GraphEditor::rename(NodeView node, std::string name) {
  translated([&] {
    changed(content_);
    mutable_node(node).name = std::move(name);
    mutable_node(node).mark_changed();
  });
}

void GraphEditor::rename(ValueView value, std::string name) {
  translated([&] {
    changed(content_);
    core::require(!name.empty(), "a value needs a name");
    core::Value& found = mutable_value(value);
    forget_declarations(found);
    mark_name_changed(found);
    found.name = std::move(name);
  });
}

void GraphEditor::set_type(ValueView value, const Type& type) {
  translated([&] {
    changed(content_);
    core::Value& found = mutable_value(value);
    core::require(!found.constant && !found.sparse, "the type of '{}' is that of its tensor", found.name);
    forget_declarations(found);
    found.type = core_of(type);
    if (found.graph->owner != nullptr) found.graph->owner->mark_changed();
  });
}

void GraphEditor::replace_uses(ValueView old_value, ValueView new_value) {
  translated([&] {
    changed(content_);
    core::Value& old = mutable_value(old_value);
    for (const core::Use& use : old.uses) {
      if (use.user != nullptr) continue;
      auto& declarations = use.output_of->output_declarations;  // which say the old name
      if (use.index < declarations.size()) declarations[use.index] = {};
    }
    mutable_graph(graph_).replace_uses(&old, &mutable_value(new_value));
  });
}

void GraphEditor::remove(NodeView node) {
  translated([&] {
    changed(content_);
    core::Node& found = mutable_node(node);
    for (const core::Value* output : found.outputs())
      core::require(!core::is_used(output), "node '{}' ({}) gives '{}', which is used", found.name, found.op.view(),
                    output ? output->name : "");
    found.graph->erase(&found);
  });
}

void GraphEditor::remove_input(ValueView value) {
  translated([&] {
    changed(content_);
    core::Value& found = mutable_value(value);
    core::Graph& graph = mutable_graph(graph_);
    const size_t at = place_in(graph.inputs(), found, "input");
    core::require(found.uses.empty() || found.constant || found.sparse, "the input '{}' is used", found.name);
    graph.remove_input(at);
  });
}

void GraphEditor::remove_output(ValueView value) {
  translated([&] {
    changed(content_);
    core::Graph& graph = mutable_graph(graph_);
    graph.remove_output(place_in(graph.outputs(), mutable_value(value), "output"));
  });
}

void GraphEditor::remove_initializer(ValueView value) {
  translated([&] {
    changed(content_);
    core::Value& found = mutable_value(value);
    core::Graph& graph = mutable_graph(graph_);
    place_in(graph.initializers(), found, "initializer");
    core::require(found.uses.empty(), "the weight '{}' is used", found.name);
    graph.remove_initializer(&found);
  });
}

size_t GraphEditor::remove_unused() {
  return translated([&] {
    changed(content_);
    core::Graph& graph = mutable_graph(graph_);
    const size_t before = graph.node_count();
    core::remove_dead_code(graph);
    return before - graph.node_count();
  });
}

void GraphEditor::sort() {
  translated([&] {
    changed(content_);
    core::Graph& graph = mutable_graph(graph_);
    set_order(graph, running_order(graph));
  });
}

GraphEditor GraphEditor::edit(const AttributeView& graph) const {
  return translated([&] { return GraphEditor(graph.as_graph().handle(), content_); });
}

GraphEditor GraphEditor::add_graph(NodeView node, std::string_view attribute) {
  return translated([&] {
    changed(content_, 1);
    core::Node& found = mutable_node(node);
    core::require(found.find_attribute(attribute) == nullptr, "the node has an attribute '{}'", attribute);
    auto graph = std::make_shared<core::Graph>();
    graph->name = attribute;
    found.set_attribute(attribute, graph);
    return GraphEditor(view_of(*graph).handle(), content_);
  });
}

}  // namespace tonnx::v1
