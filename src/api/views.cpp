// views.cpp - looks at graphs, nodes, values and attributes for the interface.
#include <algorithm>

#include "api/internal.h"

namespace tonnx::v1 {
namespace {

template <class Item>
auto views_of(const std::vector<Item*>& items) {
  std::vector<decltype(view_of(static_cast<const Item*>(nullptr)))> result;
  result.reserve(items.size());
  for (const Item* item : items) result.push_back(view_of(item));
  return result;
}

}  // namespace

std::string_view ValueView::name() const { return open(value_).name; }
Type ValueView::type() const { return public_of(open(value_).type); }
bool ValueView::is_input() const {
  const core::Value& value = open(value_);
  if (value.producer != nullptr) return false;
  const auto& inputs = value.graph->inputs();
  return std::find(inputs.begin(), inputs.end(), &value) != inputs.end();
}
bool ValueView::is_output() const {
  const auto& uses = open(value_).uses;
  return std::any_of(uses.begin(), uses.end(), [](const core::Use& use) { return use.user == nullptr; });
}
bool ValueView::is_initializer() const {
  const core::Value& value = open(value_);
  return value.producer == nullptr && (value.constant || value.sparse);
}
TensorView ValueView::tensor() const {
  return translated([&] {
    const core::Value& value = open(value_);
    core::require(is_initializer(), "'{}' is no initializer, and has no tensor", value.name);
    if (!value.constant) core::fail_unsupported("'{}' is sparse", value.name);
    return view_of(*value.constant);
  });
}
bool ValueView::is_trainable() const { return open(value_).trainable; }
NodeView ValueView::producer() const { return view_of(open(value_).producer); }
std::vector<NodeView> ValueView::users() const {
  std::vector<NodeView> result;
  for (const core::Use& use : open(value_).uses) {
    if (use.user != nullptr) result.push_back(view_of(use.user));
  }
  return result;
}

namespace {

template <class T>
const T& get(const AttributeView& view, const char* what) {
  const T* found = open(view.handle()).get<T>();
  core::require(found != nullptr, "the attribute '{}' is not {}", view.name(), what);
  return *found;
}

}  // namespace

AttributeView::Kind AttributeView::kind() const {
  const core::AttrValue& value = open(attribute_);
  if (value.get<bool>()) return Kind::Bool;
  if (value.get<int64_t>()) return Kind::Int;
  if (value.get<double>()) return Kind::Float;
  if (value.get<std::string>()) return Kind::Text;
  if (value.get<core::DType>()) return Kind::DType;
  if (value.get<core::Operand>()) return Kind::Value;
  if (value.get<core::Type>()) return Kind::Type;
  if (value.get<core::TensorPtr>()) return Kind::Tensor;
  if (value.get<core::SparseTensorPtr>()) return Kind::SparseTensor;
  if (value.get<core::GraphPtr>()) return Kind::Graph;
  if (value.get<std::vector<int64_t>>()) return Kind::Ints;
  if (value.get<std::vector<double>>()) return Kind::Floats;
  if (value.get<std::vector<std::string>>()) return Kind::Texts;
  if (value.get<core::AttrList>()) return Kind::List;
  return Kind::None;
}

int64_t AttributeView::as_int() const {
  return translated([&]() -> int64_t {
    const core::AttrValue& value = open(attribute_);
    if (const bool* flag = value.get<bool>()) return *flag ? 1 : 0;
    if (const auto* dtype = value.get<core::DType>()) return static_cast<int64_t>(*dtype);
    return get<int64_t>(*this, "an integer");
  });
}
double AttributeView::as_float() const {
  return translated([&] { return get<double>(*this, "a float"); });
}
std::string_view AttributeView::as_text() const {
  return translated([&] { return std::string_view(get<std::string>(*this, "a text")); });
}
std::vector<int64_t> AttributeView::as_ints() const {
  return translated([&] { return get<std::vector<int64_t>>(*this, "a list of integers"); });
}
std::vector<double> AttributeView::as_floats() const {
  return translated([&] { return get<std::vector<double>>(*this, "a list of floats"); });
}
std::vector<std::string> AttributeView::as_texts() const {
  return translated([&] { return get<std::vector<std::string>>(*this, "a list of texts"); });
}
TensorView AttributeView::as_tensor() const {
  return translated([&] { return view_of(*get<core::TensorPtr>(*this, "a tensor")); });
}
GraphView AttributeView::as_graph() const {
  return translated([&] { return view_of(*get<core::GraphPtr>(*this, "a graph")); });
}
ValueView AttributeView::as_value() const {
  return translated([&] { return view_of(open(node_).input(get<core::Operand>(*this, "a value").index)); });
}
std::vector<AttributeView> AttributeView::items() const {
  return translated([&] {
    std::vector<AttributeView> result;
    for (const core::AttrValue& item : get<core::AttrList>(*this, "a list"))
      result.push_back(view_of(&open(node_), item, name_));
    return result;
  });
}

std::string_view NodeView::op() const { return open(node_).op.view(); }
std::string_view NodeView::domain() const { return open(node_).domain.view(); }
std::string_view NodeView::overload() const { return open(node_).overload.view(); }
int64_t NodeView::version() const { return open(node_).version; }
std::string_view NodeView::name() const { return open(node_).name; }
std::string_view NodeView::doc() const { return open(node_).doc; }
size_t NodeView::input_count() const { return open(node_).inputs().size(); }
ValueView NodeView::input(size_t i) const { return view_of(open(node_).input(i)); }
std::vector<ValueView> NodeView::inputs() const { return views_of(open(node_).inputs()); }
size_t NodeView::output_count() const { return open(node_).outputs().size(); }
ValueView NodeView::output(size_t i) const { return view_of(open(node_).output(i)); }
std::vector<ValueView> NodeView::outputs() const { return views_of(open(node_).outputs()); }

std::vector<AttributeView> NodeView::attributes() const {
  std::vector<AttributeView> result;
  for (const core::Attribute& attribute : open(node_).attributes)
    result.push_back(view_of(&open(node_), attribute.value, attribute.name));
  return result;
}
std::optional<AttributeView> NodeView::find_attribute(std::string_view name) const {
  const core::Attribute* found = open(node_).find_attribute(name);
  return found ? std::optional(view_of(&open(node_), found->value, found->name)) : std::nullopt;
}
std::vector<GraphView> NodeView::subgraphs() const {
  std::vector<GraphView> result;
  for (const core::GraphPtr& graph : core::subgraphs_of(open(node_))) result.push_back(view_of(*graph));
  return result;
}
const Metadata& NodeView::metadata() const { return open(node_).metadata; }
GraphView NodeView::graph() const { return view_of(*open(node_).graph); }

GraphView::Iterator& GraphView::Iterator::operator++() {
  node_ = view_of(open(node_.handle()).next);
  return *this;
}
GraphView::Iterator GraphView::begin() const { return Iterator(view_of(open(graph_).first()).handle()); }
size_t GraphView::node_count() const { return open(graph_).node_count(); }
std::string_view GraphView::name() const { return open(graph_).name; }
std::string_view GraphView::doc() const { return open(graph_).doc; }
const Metadata& GraphView::metadata() const { return open(graph_).metadata; }
std::vector<ValueView> GraphView::inputs() const { return views_of(core::inputs_without_values(open(graph_))); }
std::vector<ValueView> GraphView::outputs() const { return views_of(open(graph_).outputs()); }
std::vector<ValueView> GraphView::initializers() const { return views_of(open(graph_).initializers()); }

ValueView GraphView::find_value(std::string_view name) const {
  const core::Graph& graph = open(graph_);
  for (const auto* list : {&graph.inputs(), &graph.initializers()}) {
    for (const core::Value* value : *list) {
      if (value->name == name) return view_of(value);
    }
  }
  for (const core::Node& node : graph) {
    for (const core::Value* value : node.outputs()) {
      if (value != nullptr && value->name == name) return view_of(value);
    }
  }
  return {};
}
NodeView GraphView::find_node(std::string_view name) const {
  for (const core::Node& node : open(graph_)) {
    if (node.name == name) return view_of(&node);
  }
  return {};
}

}  // namespace tonnx::v1
