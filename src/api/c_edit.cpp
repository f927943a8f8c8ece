// c_edit.cpp - the interface in C: tensors, attributes, and changes of a graph by names.
#include <unordered_map>

#include "api/c_internal.h"

struct tonnx_editor {
  std::shared_ptr<const tonnx::c_interface::LentBytes> lent;
  tonnx::v1::Model model;
  std::unordered_map<std::string, tonnx::v1::ValueView> values;
  std::unordered_map<std::string, tonnx::v1::NodeView> nodes;
};

namespace tonnx::c_interface {
namespace {

void note(tonnx_editor& editor, v1::NodeView node) {
  if (!node.name().empty()) editor.nodes.emplace(node.name(), node);
  for (const v1::ValueView output : node.outputs()) {
    if (output && !output.name().empty()) editor.values.emplace(output.name(), output);
  }
}

/// The names of all that there is.
void note_all(tonnx_editor& editor) {
  editor.values.clear();
  editor.nodes.clear();
  const v1::GraphView graph = editor.model.graph();
  for (const v1::ValueView input : graph.inputs()) editor.values.emplace(input.name(), input);
  for (const v1::ValueView value : graph.initializers()) editor.values.emplace(value.name(), value);
  for (const v1::NodeView& node : graph) note(editor, node);
}

template <class View>
View named(const std::unordered_map<std::string, View>& views, const std::string& name, const char* what) {
  const auto at = views.find(name);
  if (at == views.end())
    throw v1::Error(v1::Error::Kind::InvalidModel, std::string("the graph has no ") + what + " '" + name + "'");
  return at->second;
}

v1::ValueView value_of(const tonnx_editor& editor, const char* name) {
  return named(editor.values, text_of(name, "value"), "value");
}
v1::NodeView node_of(const tonnx_editor& editor, const char* name) {
  return named(editor.nodes, text_of(name, "node"), "node");
}

std::vector<v1::ValueView> inputs_of(const tonnx_editor& editor, const char* const* names, size_t count) {
  std::vector<v1::ValueView> result;
  for (const std::string& name : names_of(names, count, "inputs"))
    result.push_back(name.empty() ? v1::ValueView() : named(editor.values, name, "value"));
  return result;
}

/// A name that nothing has, for what is called by names has one each; or none, for an output that is left out.
void require_new(const tonnx_editor& editor, const std::string& value) {
  if (!value.empty() && editor.values.contains(value))
    throw v1::Error(v1::Error::Kind::InvalidModel, "there is a value '" + value + "' already");
}

/// Runs a change of the graph.
template <class Change>
tonnx_status edited(tonnx_editor* editor, tonnx_error** error, Change&& change) noexcept {
  return guarded(error, [&] {
    tonnx_editor& open = required(editor, "editor");
    v1::GraphEditor graph = open.model.edit();
    change(open, graph);
  });
}

template <class Value>
tonnx_status set_attribute(tonnx_attributes* attributes, const char* name, Value&& make) noexcept {
  return guarded(nullptr, [&] {
    set_named(required(attributes, "attributes").list, text_of(name, "name"), v1::AttributeValue(make()));
  });
}

}  // namespace
}  // namespace tonnx::c_interface

using namespace tonnx::c_interface;
using tonnx::v1::AttributeValue;

tonnx_status tonnx_tensor_new(const char* type, const int64_t* sizes, size_t rank, const void* bytes, size_t size,
                              tonnx_tensor** tensor, tonnx_error** error) {
  return guarded(error, [&] {
    required(tensor, "tensor") = nullptr;
    if (rank > 0) required(sizes, "sizes");
    if (size > 0) required(static_cast<const char*>(bytes), "bytes");
    const auto* first = static_cast<const std::byte*>(bytes);
    std::vector<std::byte> copy(first, first + size);
    *tensor =
        new tonnx_tensor{tonnx::v1::Tensor(dtype_of(type), std::vector<int64_t>(sizes, sizes + rank), std::move(copy))};
  });
}
void tonnx_tensor_free(tonnx_tensor* tensor) { delete tensor; }
const char* tonnx_tensor_type(const tonnx_tensor* tensor) {
  return tensor == nullptr ? "" : tonnx::v1::name_of(tensor->tensor.dtype()).data();
}
size_t tonnx_tensor_rank(const tonnx_tensor* tensor) { return tensor == nullptr ? 0 : tensor->tensor.dims().size(); }
const int64_t* tonnx_tensor_sizes(const tonnx_tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->tensor.dims().data();
}
const void* tonnx_tensor_data(const tonnx_tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->tensor.bytes().data();
}
size_t tonnx_tensor_size(const tonnx_tensor* tensor) { return tensor == nullptr ? 0 : tensor->tensor.bytes().size(); }

tonnx_attributes* tonnx_attributes_new(void) { return new (std::nothrow) tonnx_attributes; }
void tonnx_attributes_free(tonnx_attributes* attributes) { delete attributes; }
tonnx_status tonnx_attributes_set_int(tonnx_attributes* attributes, const char* name, int64_t value) {
  return set_attribute(attributes, name, [&] { return AttributeValue(value); });
}
tonnx_status tonnx_attributes_set_float(tonnx_attributes* attributes, const char* name, double value) {
  return set_attribute(attributes, name, [&] { return AttributeValue(value); });
}
tonnx_status tonnx_attributes_set_text(tonnx_attributes* attributes, const char* name, const char* value) {
  return set_attribute(attributes, name, [&] { return AttributeValue(text_of(value, "value")); });
}
tonnx_status tonnx_attributes_set_ints(tonnx_attributes* attributes, const char* name, const int64_t* values,
                                       size_t count) {
  return set_attribute(attributes, name, [&] {
    if (count > 0) required(values, "values");
    return AttributeValue(std::vector<int64_t>(values, values + count));
  });
}
tonnx_status tonnx_attributes_set_floats(tonnx_attributes* attributes, const char* name, const double* values,
                                         size_t count) {
  return set_attribute(attributes, name, [&] {
    if (count > 0) required(values, "values");
    return AttributeValue(std::vector<double>(values, values + count));
  });
}
tonnx_status tonnx_attributes_set_tensor(tonnx_attributes* attributes, const char* name, const tonnx_tensor* tensor) {
  return set_attribute(attributes, name, [&] { return AttributeValue(required(tensor, "tensor").tensor); });
}

tonnx_status tonnx_model_create(int64_t opset, tonnx_model** model, tonnx_error** error) {
  return guarded(error, [&] {
    required(model, "model") = nullptr;
    *model = handle_of(tonnx::v1::Model::create(opset));
  });
}

tonnx_status tonnx_editor_new(const tonnx_model* model, tonnx_editor** editor, tonnx_error** error) {
  return guarded(error, [&] {
    required(editor, "editor") = nullptr;
    const tonnx_model& from = required(model, "model");
    auto made = std::make_unique<tonnx_editor>(tonnx_editor{from.lent, from.model.clone(), {}, {}});
    made->model.edit();  // throws where it is no model of ONNX
    note_all(*made);
    *editor = made.release();
  });
}
void tonnx_editor_free(tonnx_editor* editor) { delete editor; }

tonnx_status tonnx_editor_add_input(tonnx_editor* editor, const char* name, const char* type, const int64_t* sizes,
                                    size_t rank, tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    const std::string text = text_of(name, "name");
    require_new(open, text);
    open.values.emplace(text, graph.add_input(text, type_of(type, sizes, rank)));
  });
}
tonnx_status tonnx_editor_add_initializer(tonnx_editor* editor, const char* name, const tonnx_tensor* tensor,
                                          tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    const std::string text = text_of(name, "name");
    require_new(open, text);
    open.values.emplace(text, graph.add_initializer(text, required(tensor, "tensor").tensor));
  });
}
tonnx_status tonnx_editor_add_output(tonnx_editor* editor, const char* value, tonnx_error** error) {
  return edited(editor, error,
                [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) { graph.add_output(value_of(open, value)); });
}
tonnx_status tonnx_editor_add_node(tonnx_editor* editor, const char* op, const char* domain, const char* name,
                                   const char* const* inputs, size_t input_count, const char* const* outputs,
                                   size_t output_count, const tonnx_attributes* attributes, const char* before,
                                   tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    tonnx::v1::NodeOptions options;
    if (name != nullptr) options.name = name;
    if (domain != nullptr) options.domain = domain;
    options.outputs = names_of(outputs, output_count, "outputs");
    for (const std::string& output : options.outputs) require_new(open, output);
    if (open.nodes.contains(options.name))
      throw tonnx::v1::Error(tonnx::v1::Error::Kind::InvalidModel, "there is a node '" + options.name + "' already");
    if (attributes != nullptr) options.attributes = attributes->list;
    if (before != nullptr) options.before = node_of(open, before);
    note(open, graph.add_node(text_of(op, "op"), inputs_of(open, inputs, input_count), options));
  });
}
tonnx_status tonnx_editor_replace_node(tonnx_editor* editor, const char* node, const char* op, const char* domain,
                                       const char* const* inputs, size_t input_count,
                                       const tonnx_attributes* attributes, tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    const tonnx::v1::NodeView old = node_of(open, node);
    tonnx::v1::NodeOptions options;
    options.name = old.name();
    if (domain != nullptr) options.domain = domain;
    if (attributes != nullptr) options.attributes = attributes->list;
    const std::vector<tonnx::v1::ValueView> values = inputs_of(open, inputs, input_count);
    const tonnx::v1::NodeView made = graph.replace(old, text_of(op, "op"), values, options);
    open.nodes[options.name] = made;
    for (const tonnx::v1::ValueView output : made.outputs()) {
      if (output) open.values[std::string(output.name())] = output;
    }
  });
}
tonnx_status tonnx_editor_remove_node(tonnx_editor* editor, const char* node, tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    const tonnx::v1::NodeView old = node_of(open, node);
    std::vector<std::string> outputs;
    for (const tonnx::v1::ValueView output : old.outputs()) outputs.emplace_back(output ? output.name() : "");
    graph.remove(old);
    open.nodes.erase(node);
    for (const std::string& output : outputs) open.values.erase(output);
  });
}
tonnx_status tonnx_editor_set_attributes(tonnx_editor* editor, const char* node, const tonnx_attributes* attributes,
                                         tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    const tonnx::v1::NodeView view = node_of(open, node);
    for (const auto& [name, value] : required(attributes, "attributes").list) graph.set_attribute(view, name, value);
  });
}
tonnx_status tonnx_editor_remove_input(tonnx_editor* editor, const char* value, tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    graph.remove_input(value_of(open, value));
    open.values.erase(value);
  });
}
tonnx_status tonnx_editor_remove_output(tonnx_editor* editor, const char* value, tonnx_error** error) {
  return edited(editor, error,
                [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) { graph.remove_output(value_of(open, value)); });
}
tonnx_status tonnx_editor_remove_initializer(tonnx_editor* editor, const char* value, tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    graph.remove_initializer(value_of(open, value));
    open.values.erase(value);
  });
}
tonnx_status tonnx_editor_replace_uses(tonnx_editor* editor, const char* old_value, const char* new_value,
                                       tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    graph.replace_uses(value_of(open, old_value), value_of(open, new_value));
  });
}
tonnx_status tonnx_editor_rename(tonnx_editor* editor, const char* value, const char* name, tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    const tonnx::v1::ValueView view = value_of(open, value);
    const std::string text = text_of(name, "name");
    require_new(open, text);
    graph.rename(view, text);
    open.values.erase(value);
    open.values.emplace(text, view);
  });
}
tonnx_status tonnx_editor_remove_unused(tonnx_editor* editor, size_t* count, tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor& open, tonnx::v1::GraphEditor& graph) {
    const size_t removed = graph.remove_unused();
    note_all(open);
    if (count != nullptr) *count = removed;
  });
}
tonnx_status tonnx_editor_sort(tonnx_editor* editor, tonnx_error** error) {
  return edited(editor, error, [&](tonnx_editor&, tonnx::v1::GraphEditor& graph) { graph.sort(); });
}
tonnx_status tonnx_editor_finish(tonnx_editor* editor, tonnx_model* model, tonnx_error** error) {
  return guarded(error, [&] {
    const tonnx_editor& open = required(editor, "editor");
    tonnx_model& target = required(model, "model");
    open.model.check();
    const std::unique_ptr<tonnx_model> changed(handle_of(open.model.clone(), open.lent));
    std::swap(target, *changed);
  });
}
