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
    for (const std::string& text : *texts) bytes += static_cast<int64_t>(sizeof(text)) + size(text);
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
  for (const Node& node : from) {
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
  }
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

}  // namespace tonnx
