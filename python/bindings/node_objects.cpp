// node_objects.cpp - makes objects of Python of what a file holds.
#include "node_objects.h"

#include "ops/frame/op_def.h"

namespace nb = nanobind;

namespace tonnx::python_binding {

nb::object text_object(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

nb::list text_list(const std::vector<std::string>& texts) {
  nb::list result;
  for (const std::string& text : texts) result.append(text_object(text));
  return result;
}

nb::list sizes_object(const Shape& shape) {
  nb::list sizes;
  for (const Dim& dim : shape) {
    if (const auto number = dim.constant()) {
      sizes.append(*number);
    } else {
      sizes.append(text_object(dim.text()));
    }
  }
  return sizes;
}

namespace {

nb::object attribute_object(const AttrValue& value, BufferTable& buffers) {
  if (const auto* b = value.get<bool>()) return nb::bool_(*b);
  if (const auto* i = value.get<int64_t>()) return nb::int_(*i);
  if (const auto* f = value.get<double>()) return nb::float_(*f);
  if (const auto* s = value.get<std::string>()) return text_object(*s);
  if (const auto* t = value.get<TensorPtr>()) return describe_tensor(*widened(*t), buffers);
  if (value.get<GraphPtr>() != nullptr) return nb::none();
  nb::list list;
  if (const auto* all = value.get<std::vector<int64_t>>()) {
    for (const int64_t i : *all) list.append(i);
  } else if (const auto* all_floats = value.get<std::vector<double>>()) {
    for (const double f : *all_floats) list.append(f);
  } else if (const auto* all_texts = value.get<std::vector<std::string>>()) {
    for (const std::string& s : *all_texts) list.append(attribute_object(AttrValue(s), buffers));
  } else if (const auto* items = value.get<AttrList>()) {
    for (const AttrValue& item : *items) list.append(attribute_object(item, buffers));
  } else {
    return nb::none();
  }
  return list;
}

}  // namespace

nb::dict node_object(const Node& node, BufferTable& buffers) {
  nb::dict result;
  nb::list inputs, outputs;
  for (const Value* value : node.inputs()) inputs.append(text_object(value ? value->name : ""));
  for (const Value* value : node.outputs()) outputs.append(text_object(value ? value->name : ""));
  nb::dict attributes;
  for (const Attribute& attribute : node.attributes) {
    attributes[text_object(attribute.name)] = attribute_object(attribute.value, buffers);
  }
  result["name"] = text_object(node.name);
  result["domain"] = text_object(node.domain.view());
  result["operation_type"] = text_object(node.op.view());
  result["inputs"] = nb::tuple(inputs);
  result["outputs"] = nb::tuple(outputs);
  result["attributes"] = attributes;
  const int schema = node.domain.empty() ? schema_version(node.op.view(), node.version) : 0;
  result["version"] = schema > 0 ? schema : node.version;
  return result;
}

}  // namespace tonnx::python_binding
