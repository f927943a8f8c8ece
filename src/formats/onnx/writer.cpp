// writer.cpp - a model to an ONNX file: what did not change is copied as it was read, weights from file to file.
#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/rope.h"

namespace tonnx {
namespace onnx {
namespace {

constexpr uint64_t kMessageLimit = (uint64_t{1} << 31) - 1;  // protobuf's own
constexpr uint64_t kExternalAlignment = 4096;                // so that a runtime can map each tensor

bool is_given(uint64_t given, uint32_t field) { return (given >> field & 1) != 0; }

Rope entry_rope(std::string_view key, std::string_view value) {
  Rope rope;
  rope.add_text(entry::key, key);
  rope.add_text(entry::value, value);
  return rope;
}

void add_metadata(Rope& rope, uint32_t field, const Metadata& metadata) {
  for (const auto& [key, value] : metadata) rope.add_message(field, entry_rope(key, value));
}

/// Whether a declaration would say which elements there are: runtimes refuse one that does not.
bool says_elements(const Type& type) {
  if (type.kind == Type::Kind::Unknown) return false;
  if (type.kind == Type::Kind::Tensor || type.kind == Type::Kind::SparseTensor) return type.dtype != DType::Undefined;
  return std::all_of(type.elements.begin(), type.elements.end(), says_elements);
}

class Writer {
 public:
  /// With no file for external data, all weights go into the message.
  Writer(OutputFile* external, const OnnxWriteOptions& options, uint64_t weight_bytes = 0)
      : external_(external), options_(options), weight_bytes_(weight_bytes) {}

  Rope model_rope(const Model& model);

 private:
  Rope graph_rope(const Graph& graph);
  Rope node_rope(const Node& node);
  Rope attribute_rope(const Attribute& attribute);
  Rope tensor_rope(const Tensor& tensor, const std::string& name, bool may_move);
  Rope sparse_rope(const SparseTensor& sparse, const std::string& name);
  Rope function_rope(const Function& function);
  static Rope value_info_rope(const Value& value);
  static void add_value_infos(Rope& rope, uint32_t field, const Graph& graph);
  static void add_declarations(Rope& rope, const Graph& graph);
  static Rope type_rope(const Type& type);

  OutputFile* external_;
  const OnnxWriteOptions& options_;
  uint64_t weight_bytes_;  // of all that may become external
};

Rope Writer::type_rope(const Type& value_type) {
  Rope rope;
  switch (value_type.kind) {
    case Type::Kind::Tensor:
    case Type::Kind::SparseTensor: {
      Rope inner;
      inner.add_integer(tensor_type::elem_type, static_cast<int64_t>(value_type.dtype));
      if (value_type.shape) {
        Rope shape_rope;
        for (const Dim& dim : *value_type.shape) {
          Rope dim_rope;
          if (const auto constant = dim.constant()) {
            dim_rope.add_integer(dimension::dim_value, *constant);
          } else if (const std::string text = dim.symbol_name().value_or(text_of(dim)); !text.empty()) {
            dim_rope.add_text(dimension::dim_param, text);
          }
          shape_rope.add_message(shape::dim, std::move(dim_rope));
        }
        inner.add_message(tensor_type::shape, std::move(shape_rope));
      }
      rope.add_message(value_type.is_tensor() ? type::tensor : type::sparse_tensor, std::move(inner));
      break;
    }
    case Type::Kind::Sequence:
    case Type::Kind::Optional: {
      Rope inner;
      if (!value_type.elements.empty()) inner.add_message(1, type_rope(value_type.elements[0]));
      rope.add_message(value_type.kind == Type::Kind::Sequence ? type::sequence : type::optional, std::move(inner));
      break;
    }
    case Type::Kind::Map: {
      Rope inner;
      inner.add_integer(map_type::key_type, static_cast<int64_t>(value_type.dtype));
      if (!value_type.elements.empty()) inner.add_message(map_type::value_type, type_rope(value_type.elements[0]));
      rope.add_message(type::map, std::move(inner));
      break;
    }
    default: break;
  }
  return rope;
}

Rope Writer::value_info_rope(const Value& value) {
  Rope rope;
  rope.add_text(value_info::name, value.name);
  if (value.type.kind != Type::Kind::Unknown) rope.add_message(value_info::type, type_rope(value.type));
  return rope;
}

/// The types of values between the nodes that the file did not declare, or that were not read from a file.
void Writer::add_value_infos(Rope& rope, uint32_t field, const Graph& value) {
  std::unordered_set<const Value*> declared(value.outputs().begin(), value.outputs().end());
  for (const auto& [of, declaration] : value.value_declarations) declared.insert(of);
  for (const Node& node : value) {
    for (const Value* output : node.outputs()) {
      if (output == nullptr || !says_elements(output->type) || declared.contains(output)) continue;
      rope.add_message(field, value_info_rope(*output));
    }
  }
}

Rope Writer::tensor_rope(const Tensor& value, const std::string& name, bool may_move) {
  Rope rope;
  const bool moves =
      external_ != nullptr && may_move && static_cast<int64_t>(value.data.size()) >= options_.external_threshold;
  if (!moves && !value.external && !value.source.empty() && value.source_name == name) {
    rope.add_encoded(value.source);
    return rope;
  }
  for (const int64_t dim : value.dims) rope.add_integer(tensor::dims, dim);
  rope.add_integer(tensor::data_type, static_cast<int64_t>(value.dtype));
  rope.add_optional_text(tensor::name, name);
  rope.add_optional_text(tensor::doc_string, value.doc);
  if (value.dtype == DType::String) {
    for (const std::string& text : value.strings) rope.add_text(tensor::string_data, text);
  } else if (moves) {
    external_->pad_to(kExternalAlignment);
    const uint64_t offset = external_->position();
    external_->write(value.data);
    if (options_.progress) options_.progress(std::min(external_->position(), weight_bytes_), weight_bytes_);
    const std::string location = std::filesystem::path(external_->path()).filename().string();
    rope.add_message(tensor::external_data, entry_rope("location", location));
    rope.add_message(tensor::external_data, entry_rope("offset", std::to_string(offset)));
    rope.add_message(tensor::external_data, entry_rope("length", std::to_string(value.data.size())));
    rope.add_integer(tensor::data_location, 1);
  } else {
    rope.add_bytes(tensor::raw_data, value.data);
  }
  add_metadata(rope, tensor::metadata_props, value.metadata);
  return rope;
}

Rope Writer::sparse_rope(const SparseTensor& value, const std::string& name) {
  Rope rope;
  if (!value.source.empty()) {
    rope.add_encoded(value.source);
    return rope;
  }
  rope.add_message(sparse::values, tensor_rope(*value.values, name, false));
  rope.add_message(sparse::indices, tensor_rope(*value.indices, value.indices->source_name, false));
  for (const int64_t dim : value.dims) rope.add_integer(sparse::dims, dim);
  return rope;
}

Rope Writer::attribute_rope(const Attribute& value) {
  Rope rope;
  rope.add_text(attribute::name, value.name);
  rope.add_optional_text(attribute::ref_attr_name, value.reference);
  rope.add_optional_text(attribute::doc_string, value.doc);
  const AttrType attr_type = value.type == AttrType::None ? attr_type_of(value.value) : value.type;
  const AttrValue& v = value.value;
  if (attr_type != AttrType::None) rope.add_integer(attribute::type, static_cast<int64_t>(attr_type));
  ensure(attr_type != AttrType::None || v.is_none(), "an attribute that ONNX cannot express is written");
  if (const auto* f = v.get<double>()) rope.add_float(attribute::f, static_cast<float>(*f));
  if (const auto* i = v.get<int64_t>()) rope.add_integer(attribute::i, *i);
  if (const auto* b = v.get<bool>()) rope.add_integer(attribute::i, *b);
  if (const auto* s = v.get<std::string>()) rope.add_text(attribute::s, *s);
  if (const auto* t = v.get<TensorPtr>()) rope.add_message(attribute::t, tensor_rope(**t, (*t)->source_name, false));
  if (const auto* g = v.get<GraphPtr>()) rope.add_message(attribute::g, graph_rope(**g));
  if (const auto* s = v.get<SparseTensorPtr>()) {
    rope.add_message(attribute::sparse_tensor, sparse_rope(**s, (*s)->values->source_name));
  }
  if (const auto* t = v.get<Type>()) rope.add_message(attribute::tp, type_rope(*t));
  if (const auto* all = v.get<std::vector<double>>()) {
    for (const double f : *all) rope.add_float(attribute::floats, static_cast<float>(f));
  }
  if (const auto* all = v.get<std::vector<int64_t>>()) {
    for (const int64_t i : *all) rope.add_integer(attribute::ints, i);
  }
  if (const auto* all = v.get<std::vector<std::string>>()) {
    for (const std::string& s : *all) rope.add_text(attribute::strings, s);
  }
  if (const auto* all = v.get<AttrList>()) {
    for (const AttrValue& item : *all) {
      if (const auto* t = item.get<TensorPtr>())
        rope.add_message(attribute::tensors, tensor_rope(**t, (*t)->source_name, false));
      if (const auto* g = item.get<GraphPtr>()) rope.add_message(attribute::graphs, graph_rope(**g));
      if (const auto* s = item.get<SparseTensorPtr>()) {
        rope.add_message(attribute::sparse_tensors, sparse_rope(**s, (*s)->values->source_name));
      }
      if (const auto* t = item.get<Type>()) rope.add_message(attribute::type_protos, type_rope(*t));
    }
  }
  return rope;
}

/// True where a tensor of the node, or of a graph inside it, was outside the file: its message points to the old place.
bool refers_to_external(const Node& value) {
  const auto tensor_does = [](const AttrValue& v) {
    const auto* t = v.get<TensorPtr>();
    return t != nullptr && (*t)->external;
  };
  for (const Attribute& attribute : value.attributes) {
    if (tensor_does(attribute.value)) return true;
  }
  for (const GraphPtr& subgraph : subgraphs_of(value)) {
    for (const Value* initializer : subgraph->initializers()) {
      if (initializer->constant && initializer->constant->external) return true;
    }
    for (const Node& inner : *subgraph) {
      if (refers_to_external(inner)) return true;
    }
  }
  return false;
}

Rope Writer::node_rope(const Node& value) {
  Rope rope;
  if (!value.source.empty() && !refers_to_external(value)) {
    rope.add_encoded(value.source);
    return rope;
  }
  for (const Value* input : value.inputs()) rope.add_text(node::input, input ? input->name : "");
  for (const Value* output : value.outputs()) rope.add_text(node::output, output ? output->name : "");
  rope.add_optional_text(node::name, value.name);
  rope.add_text(node::op_type, value.op.view());
  for (const Attribute& attribute : value.attributes) rope.add_message(node::attribute, attribute_rope(attribute));
  rope.add_optional_text(node::doc_string, value.doc);
  rope.add_optional_text(node::domain, value.domain.view());
  rope.add_optional_text(node::overload, value.overload.view());
  add_metadata(rope, node::metadata_props, value.metadata);
  return rope;
}

Rope Writer::graph_rope(const Graph& value) {
  Rope rope;
  for (const Node& node : value) rope.add_message(graph::node, node_rope(node));
  if (!value.name.empty() || value.given == 0 || is_given(value.given, graph::name))
    rope.add_text(graph::name, value.name);
  for (const Value* initializer : value.initializers()) {
    if (initializer->sparse) {
      rope.add_message(graph::sparse_initializer, sparse_rope(*initializer->sparse, initializer->name));
    } else {
      rope.add_message(graph::initializer, tensor_rope(*initializer->constant, initializer->name, true));
    }
  }
  if (!value.doc.empty() || is_given(value.given, graph::doc_string)) rope.add_text(graph::doc_string, value.doc);
  const auto declare = [&](uint32_t field, const Value& of, const Bytes* declared) {
    if (declared != nullptr && !declared->empty()) {
      rope.add_bytes(field, *declared);
    } else {
      rope.add_message(field, value_info_rope(of));
    }
  };
  for (size_t i = 0; i < value.inputs().size(); ++i) {
    declare(graph::input, *value.inputs()[i],
            i < value.input_declarations.size() ? &value.input_declarations[i] : nullptr);
  }
  for (size_t i = 0; i < value.outputs().size(); ++i) {
    declare(graph::output, *value.outputs()[i],
            i < value.output_declarations.size() ? &value.output_declarations[i] : nullptr);
  }
  if (options_.declares_values) add_declarations(rope, value);
  rope.add_encoded(value.extra);
  add_metadata(rope, graph::metadata_props, value.metadata);
  return rope;
}

/// The types of values between the nodes.
void Writer::add_declarations(Rope& rope, const Graph& value) {
  for (const auto& [of, declared] : value.value_declarations) {
    const bool gone = of != nullptr && of->producer == nullptr && !of->constant && !of->sparse && of->uses.empty();
    if (!gone) rope.add_bytes(graph::value_info, declared);
  }
  add_value_infos(rope, graph::value_info, value);
}

Rope opset_rope(const std::string& domain, int64_t version, bool default_left_out = false) {
  Rope rope;
  if (!domain.empty() || !default_left_out) rope.add_text(opset::domain, domain);
  rope.add_integer(opset::version, version);
  return rope;
}

Rope Writer::function_rope(const Function& value) {
  Rope rope;
  if (!value.source.empty()) {
    rope.add_encoded(value.source);
    return rope;
  }
  const Graph& body = *value.body;
  rope.add_text(function::name, value.name.view());
  for (const Value* input : body.inputs()) rope.add_text(function::input, input->name);
  for (const Value* output : body.outputs()) rope.add_text(function::output, output->name);
  for (const std::string& name : value.attributes) rope.add_text(function::attribute, name);
  for (const Node& node : body) rope.add_message(function::node, node_rope(node));
  rope.add_optional_text(function::doc_string, body.doc);
  for (const auto& [domain, version] : value.opsets)
    rope.add_message(function::opset_import, opset_rope(domain, version));
  rope.add_text(function::domain, value.domain.view());
  for (const Attribute& attribute : value.default_attributes) {
    rope.add_message(function::attribute_proto, attribute_rope(attribute));
  }
  for (const auto* list : {&body.inputs(), &body.outputs()}) {
    for (const Value* each : *list) {
      if (each->type.kind != Type::Kind::Unknown) rope.add_message(function::value_info, value_info_rope(*each));
    }
  }
  add_value_infos(rope, function::value_info, body);
  rope.add_optional_text(function::overload, value.overload.view());
  add_metadata(rope, function::metadata_props, body.metadata);
  return rope;
}

Rope Writer::model_rope(const Model& value) {
  Rope rope;
  rope.add_integer(model::ir_version, value.ir_version);
  const auto add = [&](uint32_t field, const std::string& text) {
    if (!text.empty() || is_given(value.given, field)) rope.add_text(field, text);
  };
  add(model::producer_name, value.producer_name);
  add(model::producer_version, value.producer_version);
  add(model::domain, value.domain);
  if (value.model_version != 0 || is_given(value.given, model::model_version)) {
    rope.add_integer(model::model_version, value.model_version);
  }
  add(model::doc_string, value.doc);
  rope.add_message(model::graph, graph_rope(*value.graph));
  for (const auto& [domain, version] : value.opsets) {
    rope.add_message(model::opset_import, opset_rope(domain, version, is_given(value.given, opset::kDefaultLeftOut)));
  }
  add_metadata(rope, model::metadata_props, value.metadata);
  for (const Function& function : value.functions) rope.add_message(model::functions, function_rope(function));
  rope.add_encoded(value.extra);
  return rope;
}

/// Bytes of all weights of the main graph, and whether any of them was external.
std::pair<uint64_t, bool> weigh(const Model& value) {
  uint64_t bytes = 0;
  bool external = false;
  for (const Value* initializer : value.graph->initializers()) {
    if (!initializer->constant) continue;
    bytes += initializer->constant->data.size();
    external |= initializer->constant->external;
  }
  return {bytes, external};
}

}  // namespace
}  // namespace onnx

std::string write_onnx_bytes(const Model& model) {
  const OnnxWriteOptions options;
  const onnx::Rope rope = onnx::Writer(nullptr, options).model_rope(model);
  if (rope.size() > onnx::kMessageLimit) fail_unsupported("the model passes 2 GB, and must be written to a file");
  std::string bytes;
  rope.append_to(bytes);
  return bytes;
}

void write_onnx(const Model& model, const std::string& path, const OnnxWriteOptions& options) {
  in_context(
      [&] { return "writing " + path; },
      [&] {
        const auto [bytes, was_external] = onnx::weigh(model);
        const bool past_limit = bytes > onnx::kMessageLimit - (uint64_t{64} << 20);  // room for all that is not weights
        const bool is_file = options.memory == nullptr;
        const bool external = is_file && options.external_data.value_or(was_external || past_limit);
        std::vector<OutputFile> files;
        files.reserve(2);
        files.push_back(is_file ? OutputFile(path) : OutputFile(*options.memory));
        if (external) files.emplace_back(path + ".data");
        const onnx::Rope rope = onnx::Writer(external ? &files[1] : nullptr, options, bytes).model_rope(model);
        if (rope.size() > onnx::kMessageLimit) {
          if (!is_file) fail_unsupported("the model passes 2 GB, and must be written to a file");
          fail_unsupported("the model file would pass the 2 GB that protobuf can hold; write it with external data");
        }
        if (!is_file) options.memory->reserve(rope.size());
        rope.write_to(files[0], external ? nullptr : options.progress);
        commit_all(files);
      });
}

}  // namespace tonnx
