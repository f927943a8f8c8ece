// c_views.cpp - the interface in C: nodes, their attributes, and weights of a model as they are.
#include "api/c_internal.h"

namespace tonnx::c_interface {
namespace {

// A tonnx_node_view is never defined: a pointer to one is what the view of a node points to.
const tonnx_node_view* pointer_to(v1::NodeView node) { return reinterpret_cast<const tonnx_node_view*>(node.handle()); }
v1::NodeView view_of(const tonnx_node_view* node) {
  return v1::NodeView(reinterpret_cast<const v1::detail::Node*>(node));
}

/// Names of the library are whole strings, with a zero behind them.
const char* text_at(const tonnx_node_view* node, std::string_view (v1::NodeView::*text)() const) {
  return node == nullptr ? "" : (view_of(node).*text)().data();
}
const char* name_of_value(v1::ValueView value) { return value ? value.name().data() : nullptr; }

const tonnx_node_view* first_of(v1::GraphView graph) {
  const auto begin = graph.begin();
  return begin == graph.end() ? nullptr : pointer_to(*begin);
}

v1::AttributeView attribute_of(const tonnx_node_view* node, const char* name) {
  required(node, "node");
  const auto found = view_of(node).find_attribute(text_of(name, "name"));
  if (!found) throw BadArgument{"the node has no attribute '" + std::string(name) + "'"};
  return *found;
}

template <class T, class Get>
tonnx_status get(const tonnx_node_view* node, const char* name, T* result, tonnx_error** error, Get&& value) noexcept {
  return guarded(error, [&] { required(result, "the result") = value(attribute_of(node, name)); });
}

template <class T, class Get>
tonnx_status get_list(const tonnx_node_view* node, const char* name, T* values, size_t room, size_t* count,
                      tonnx_error** error, Get&& list) noexcept {
  return guarded(error, [&] {
    const std::vector<T> found = list(attribute_of(node, name));
    if (room > 0) required(values, "values");
    std::copy_n(found.begin(), std::min(room, found.size()), values);
    if (count != nullptr) *count = found.size();
  });
}

}  // namespace
}  // namespace tonnx::c_interface

using namespace tonnx::c_interface;
using tonnx::v1::AttributeView;
using tonnx::v1::NodeView;

const tonnx_node_view* tonnx_model_first_node(const tonnx_model* model) {
  return model == nullptr ? nullptr : first_of(model->model.graph());
}
const tonnx_node_view* tonnx_node_view_next(const tonnx_node_view* node) {
  if (node == nullptr) return nullptr;
  tonnx::v1::GraphView::Iterator at(view_of(node).handle());
  return pointer_to(*++at);
}

const char* tonnx_node_view_op(const tonnx_node_view* node) { return text_at(node, &NodeView::op); }
const char* tonnx_node_view_domain(const tonnx_node_view* node) { return text_at(node, &NodeView::domain); }
const char* tonnx_node_view_overload(const tonnx_node_view* node) { return text_at(node, &NodeView::overload); }
const char* tonnx_node_view_name(const tonnx_node_view* node) { return text_at(node, &NodeView::name); }
size_t tonnx_node_view_input_count(const tonnx_node_view* node) {
  return node == nullptr ? 0 : view_of(node).input_count();
}
size_t tonnx_node_view_output_count(const tonnx_node_view* node) {
  return node == nullptr ? 0 : view_of(node).output_count();
}
const char* tonnx_node_view_input(const tonnx_node_view* node, size_t index) {
  return node == nullptr ? nullptr : name_of_value(view_of(node).input(index));
}
const char* tonnx_node_view_output(const tonnx_node_view* node, size_t index) {
  return node == nullptr ? nullptr : name_of_value(view_of(node).output(index));
}
tonnx_status tonnx_node_view_output_type(const tonnx_node_view* node, size_t index, tonnx_buffer** text,
                                         tonnx_error** error) {
  return guarded(error, [&] {
    required(node, "node");
    required(text, "text") = nullptr;
    const auto output = view_of(node).output(index);
    if (!output) throw BadArgument{"the node has no output " + std::to_string(index)};
    *text = buffer_of(tonnx::v1::text_of(output.type()));
  });
}

size_t tonnx_node_view_attribute_count(const tonnx_node_view* node) {
  return node == nullptr ? 0 : view_of(node).attributes().size();
}
const char* tonnx_node_view_attribute(const tonnx_node_view* node, size_t index) {
  if (node == nullptr) return nullptr;
  const auto attributes = view_of(node).attributes();
  return index < attributes.size() ? attributes[index].name().data() : nullptr;
}
tonnx_status tonnx_node_view_int(const tonnx_node_view* node, const char* name, int64_t* value, tonnx_error** error) {
  return get(node, name, value, error, [](const AttributeView& each) { return each.as_int(); });
}
tonnx_status tonnx_node_view_float(const tonnx_node_view* node, const char* name, double* value, tonnx_error** error) {
  return get(node, name, value, error, [](const AttributeView& each) { return each.as_float(); });
}
tonnx_status tonnx_node_view_text(const tonnx_node_view* node, const char* name, const char** value,
                                  tonnx_error** error) {
  return get(node, name, value, error, [](const AttributeView& each) { return each.as_text().data(); });
}
tonnx_status tonnx_node_view_ints(const tonnx_node_view* node, const char* name, int64_t* values, size_t room,
                                  size_t* count, tonnx_error** error) {
  return get_list(node, name, values, room, count, error, [](const AttributeView& each) { return each.as_ints(); });
}
tonnx_status tonnx_node_view_floats(const tonnx_node_view* node, const char* name, double* values, size_t room,
                                    size_t* count, tonnx_error** error) {
  return get_list(node, name, values, room, count, error, [](const AttributeView& each) { return each.as_floats(); });
}
tonnx_status tonnx_node_view_tensor(const tonnx_node_view* node, const char* name, tonnx_tensor** tensor,
                                    tonnx_error** error) {
  return get(node, name, tensor, error,
             [](const AttributeView& each) { return new tonnx_tensor{tonnx::v1::Tensor(each.as_tensor())}; });
}
tonnx_status tonnx_node_view_graph(const tonnx_node_view* node, const char* name, const tonnx_node_view** first,
                                   tonnx_error** error) {
  return get(node, name, first, error, [](const AttributeView& each) { return first_of(each.as_graph()); });
}

size_t tonnx_model_weight_count(const tonnx_model* model) { return model == nullptr ? 0 : model->weights.size(); }
const char* tonnx_model_weight_name(const tonnx_model* model, size_t index) {
  return index < tonnx_model_weight_count(model) ? model->weights[index].name().data() : nullptr;
}
tonnx_status tonnx_model_weight(const tonnx_model* model, size_t index, tonnx_tensor** tensor, tonnx_error** error) {
  return guarded(error, [&] {
    required(model, "model");
    required(tensor, "tensor") = nullptr;
    if (index >= model->weights.size()) throw BadArgument{"the model has no weight " + std::to_string(index)};
    *tensor = new tonnx_tensor{tonnx::v1::Tensor(model->weights[index].tensor())};
  });
}
