// node_objects.cpp - makes objects of Python of what a file holds.
#include "node_objects.h"

#include <tonnx/tools.h>

#include "tensors.h"

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

namespace {

/// Numbers, and the names of sizes that are open.
nb::list sizes_object(const std::vector<Dim>& shape) {
  nb::list sizes;
  for (const Dim& dim : shape) {
    if (dim.is_number()) {
      sizes.append(dim.number);
    } else {
      sizes.append(text_object(dim.text));
    }
  }
  return sizes;
}

nb::object attribute_object(const AttributeView& value) {
  using Kind = AttributeView::Kind;
  nb::list list;
  switch (value.kind()) {
    case Kind::Bool: return nb::bool_(value.as_int() != 0);
    case Kind::Int: return nb::int_(value.as_int());
    case Kind::Float: return nb::float_(value.as_float());
    case Kind::Text: return text_object(value.as_text());
    case Kind::Tensor: return describe_tensor(widened(value.as_tensor()));
    case Kind::Ints:
      for (const int64_t i : value.as_ints()) list.append(i);
      return list;
    case Kind::Floats:
      for (const double f : value.as_floats()) list.append(f);
      return list;
    case Kind::Texts: return text_list(value.as_texts());
    case Kind::List:
      for (const AttributeView& item : value.items()) list.append(attribute_object(item));
      return list;
    default: return nb::none();
  }
}

nb::list names_of(const std::vector<ValueView>& values) {
  nb::list names;
  for (const ValueView value : values) names.append(text_object(value ? value.name() : std::string_view()));
  return names;
}

}  // namespace

nb::dict node_object(NodeView node) {
  nb::dict attributes;
  for (const AttributeView& attribute : node.attributes())
    attributes[text_object(attribute.name())] = attribute_object(attribute);
  nb::dict result;
  result["name"] = text_object(node.name());
  result["domain"] = text_object(node.domain());
  result["operation_type"] = text_object(node.op());
  result["inputs"] = nb::tuple(names_of(node.inputs()));
  result["outputs"] = nb::tuple(names_of(node.outputs()));
  result["attributes"] = attributes;
  const int schema = node.domain().empty() ? schema_version(node.op(), node.version()) : 0;
  result["version"] = schema > 0 ? schema : node.version();
  return result;
}

nb::dict graph_object(GraphView graph) {
  nb::list nodes;
  nb::dict types, initializers;
  for (const ValueView input : graph.inputs()) {
    const Type type = input.type();
    if (type.kind == Type::Kind::Tensor && type.shape)
      types[text_object(input.name())] = nb::make_tuple(text_object(name_of(type.dtype)), sizes_object(*type.shape));
  }
  for (const NodeView& node : graph) nodes.append(node_object(node));
  for (const ValueView value : graph.initializers()) {
    const Tensor tensor = dense_value(value);
    if (tensor.dtype() != DType::String)
      initializers[text_object(value.name())] = describe_tensor(widened(tensor.view()));
  }
  nb::dict result;
  result["name"] = text_object(graph.name());
  result["inputs"] = nb::tuple(names_of(graph.inputs()));
  result["input_types"] = types;
  result["outputs"] = nb::tuple(names_of(graph.outputs()));
  result["nodes"] = nodes;
  result["initializers"] = initializers;
  return result;
}

}  // namespace tonnx::python_binding
