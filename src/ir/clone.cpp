// clone.cpp - copies nodes one by one, and the graphs inside them.
#include "ir/clone.h"

#include <fmt/format.h>

#include "base/budget.h"

namespace tonnx {
namespace {

/// What a copy of an attribute takes. Tensors are shared, but where a function is written out each of its calls has
/// them in the file that is made.
int64_t bytes_of(const AttrValue& value, bool with_tensors) {
  const auto size = [](const auto& list) { return static_cast<int64_t>(list.size() * sizeof(list[0])); };
  if (const auto* text = value.get<std::string>()) return size(*text);
  if (const auto* ints = value.get<std::vector<int64_t>>()) return size(*ints);
  if (const auto* floats = value.get<std::vector<double>>()) return size(*floats);
  if (const auto* tensor = value.get<TensorPtr>())
    return with_tensors ? static_cast<int64_t>((*tensor)->data.size()) : 0;
  int64_t bytes = 0;
  if (const auto* texts = value.get<std::vector<std::string>>()) {
    for (const std::string& text : *texts) bytes += static_cast<int64_t>(sizeof(std::string)) + size(text);
  }
  if (const auto* list = value.get<AttrList>()) {
    for (const AttrValue& item : *list) bytes += static_cast<int64_t>(sizeof(item)) + bytes_of(item, with_tensors);
  }
  return bytes;
}

void clone_attribute(const Attribute& attribute, Node& copy, const ValueMap& map, const AttributeEdit& edit,
                     std::string_view prefix) {
  const size_t texts = attribute.name.size() + attribute.reference.size() + attribute.doc.size();
  budget().take(Resource::Memory,
                static_cast<int64_t>(sizeof(Attribute) + texts) + bytes_of(attribute.value, edit != nullptr));
  Attribute result = attribute;
  if (edit && !edit(result)) return;
  if (!attribute.reference.empty()) budget().take(Resource::Memory, bytes_of(result.value, true));
  if (const auto* graph = result.value.get<GraphPtr>()) result.value = clone_graph(**graph, copy, map, edit, prefix);
  if (auto* list = result.value.get<AttrList>()) {
    for (AttrValue& item : *list) {
      if (const auto* graph = item.get<GraphPtr>()) item = clone_graph(**graph, copy, map, edit, prefix);
    }
  }
  copy.attributes.push_back(std::move(result));
}

void take_text(const Node& copy) {
  size_t size = copy.name.size();
  for (const auto& [key, value] : copy.metadata) size += key.size() + value.size();
  budget().take(Resource::Text, static_cast<int64_t>(size));
}

}  // namespace

Node* clone_node(const Node& node, Graph& to, Node* before, ValueMap& map, const AttributeEdit& edit,
                 std::string_view prefix) {
  Node* copy = to.add_node(node.domain, node.op, before);
  copy->overload = node.overload;
  copy->version = node.version;
  copy->name = prefix.empty() ? node.name : fmt::format("{}/{}", prefix, node.name);
  copy->metadata = node.metadata;
  take_text(*copy);
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    copy->set_input(i, copy_of(node.inputs()[i], map));
  }
  for (const Attribute& attribute : node.attributes) clone_attribute(attribute, *copy, map, edit, prefix);
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.outputs()[i];
    if (output == nullptr) {
      copy->resize_outputs(i + 1);
    } else {
      map[output] = to.add_output_to(copy, to.unique_name(output->name), output->type);
    }
  }
  return copy;
}

void clone_nodes(const Graph& from, Graph& to, Node* before, ValueMap& map, const AttributeEdit& edit,
                 std::string_view prefix) {
  for (const Value* value : from.initializers()) {
    if (map.contains(value)) continue;
    Value* made = to.new_value(to.unique_name(value->name), value->type);
    made->constant = value->constant;
    made->sparse = value->sparse;
    to.add_initializer(made);
    map[value] = made;
  }
  for (const Node& node : from) clone_node(node, to, before, map, edit, prefix);
}

GraphPtr clone_graph(const Graph& from, Node& owner, ValueMap map, const AttributeEdit& edit, std::string_view prefix) {
  auto result = std::make_shared<Graph>();
  result->name = from.name;
  result->owner = &owner;
  // no name of the copy may hide one of the graph that it is put into
  for (const Value* input : from.inputs())
    map[input] = result->add_input(result->unique_name(input->name), input->type);
  for (const Value* value : from.initializers()) {
    Value*& made = map[value];  // there already where it is an input with a default
    if (made == nullptr) made = result->new_value(result->unique_name(value->name), value->type);
    made->constant = value->constant;
    made->sparse = value->sparse;
    result->add_initializer(made);
  }
  clone_nodes(from, *result, nullptr, map, edit, prefix);
  for (Value* output : from.outputs()) result->add_output(copy_of(output, map));
  return result;
}

namespace {

GraphPtr clone_whole(const Graph& from, Node* owner, ValueMap& map);

void clone_graphs_in(AttrValue& value, Node* owner, ValueMap& map) {
  if (const auto* graph = value.get<GraphPtr>()) value = clone_whole(**graph, owner, map);
  if (auto* list = value.get<AttrList>()) {
    for (AttrValue& item : *list) clone_graphs_in(item, owner, map);
  }
}

void clone_facts(const Value& from, Value& to) {
  to.constant = from.constant;
  to.sparse = from.sparse;
  to.known_ints = from.known_ints;
  to.trainable = from.trainable;
}

/// A node as it is, whose inputs are in the map; its outputs are added there.
void clone_whole(const Node& node, Graph& to, ValueMap& map) {
  Node* copy = to.add_node(node.domain, node.op);
  copy->overload = node.overload;
  copy->version = node.version;
  copy->name = node.name;
  copy->metadata = node.metadata;
  copy->doc = node.doc;
  take_text(*copy);
  copy->resize_inputs(node.inputs().size());
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i) != nullptr) copy->set_input(i, map.at(node.input(i)));
  }
  for (const Attribute& attribute : node.attributes) {
    budget().take(Resource::Memory, static_cast<int64_t>(sizeof(Attribute)) + bytes_of(attribute.value, false));
    copy->attributes.push_back(attribute);
    clone_graphs_in(copy->attributes.back().value, copy, map);
  }
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.output(i);
    if (output == nullptr) {
      copy->resize_outputs(i + 1);
      continue;
    }
    Value* made = map[output] = to.add_output_to(copy, output->name, output->type);
    clone_facts(*output, *made);
  }
  copy->source = node.source;  // last: all the above are changes
}

/// A graph as it is. Values that it takes from graphs around it are in the map.
GraphPtr clone_whole(const Graph& from, Node* owner, ValueMap& map) {
  auto result = std::make_shared<Graph>();
  result->owner = owner;
  result->name = from.name;
  result->doc = from.doc;
  result->metadata = from.metadata;
  result->given = from.given;
  result->extra = from.extra;
  for (const Value* input : from.inputs()) {
    map[input] = result->add_input(input->name, input->type);
    clone_facts(*input, *map[input]);
  }
  for (const Value* value : from.initializers()) {
    Value*& made = map[value];  // there already where it is an input with a default
    if (made == nullptr) made = result->new_value(value->name, value->type);
    clone_facts(*value, *made);
    result->add_initializer(made);
  }
  for (const Node& node : from) clone_whole(node, *result, map);
  for (const Value* output : from.outputs()) result->add_output(map.at(output));
  result->input_declarations = from.input_declarations;
  result->output_declarations = from.output_declarations;
  for (const auto& [value, declaration] : from.value_declarations) {
    if (const auto at = map.find(value); at != map.end())
      result->value_declarations.emplace_back(at->second, declaration);
  }
  return result;
}

}  // namespace

Model clone(const Model& model) {
  budget().add_input(model.file_size);  // a copy may take what reading it took
  Model copy;
  copy.ir_version = model.ir_version;
  copy.opsets = model.opsets;
  copy.producer_name = model.producer_name;
  copy.producer_version = model.producer_version;
  copy.domain = model.domain;
  copy.model_version = model.model_version;
  copy.doc = model.doc;
  copy.metadata = model.metadata;
  copy.extra = model.extra;
  copy.given = model.given;
  copy.file_size = model.file_size;
  copy.path = model.path;
  ValueMap map;
  if (model.graph != nullptr) copy.graph = clone_whole(*model.graph, nullptr, map);
  for (const Function& function : model.functions) {
    Function& made = copy.functions.emplace_back(function);
    ValueMap inside;
    for (Attribute& attribute : made.default_attributes) clone_graphs_in(attribute.value, nullptr, inside);
    made.body = clone_whole(*function.body, nullptr, inside);
  }
  return copy;
}

}  // namespace tonnx
