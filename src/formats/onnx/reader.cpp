// reader.cpp - an ONNX file to a model: maps it, walks its messages, and resolves names to values.
#include <algorithm>
#include <filesystem>
#include <protozero/exception.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/budget.h"
#include "base/error.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/message.h"
#include "formats/onnx/node_order.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/tensor_reader.h"
#include "formats/onnx/type_reader.h"

namespace tonnx {
namespace onnx {
namespace {

/// The names that a graph can see: its own, then those of the graphs around it.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, Value*> values;

  Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      const auto at = scope->values.find(name);
      if (at != scope->values.end()) return at->second;
    }
    return nullptr;
  }
  void define(Value* value) {
    require(values.emplace(value->name, value).second, "two values have the name '{}'", value->name);
  }
};

std::string describe(std::string_view name, std::string_view op) {
  return name.empty() ? fmt::format("an unnamed node ({})", op) : fmt::format("node '{}' ({})", name, op);
}

/// Whether a value of the one type can stand for an input that is declared as the other.
bool can_default_to(const Type& declared, const Type& given) {
  if (declared.dtype != given.dtype && declared.dtype != DType::Undefined) return false;
  if (!declared.is_tensor() && declared.kind != Type::Kind::SparseTensor) return false;
  if (!declared.shape) return true;
  return std::equal(declared.shape->begin(), declared.shape->end(), given.shape->begin(), given.shape->end(),
                    [](const Dim& a, const Dim& b) { return !a.is_constant() || a == b; });
}

class Reader {
 public:
  explicit Reader(const std::string& folder) : tensors_(folder) {}

  Model read_model(const Bytes& bytes);

 private:
  GraphPtr read_graph(const Bytes& bytes, const Scope* outer, Node* owner, int depth);
  void read_nodes(Graph& graph, Scope& scope, std::vector<Bytes> nodes, int depth);
  void read_node(Graph& graph, Scope& scope, const Bytes& bytes, int depth);
  Attribute read_attribute(const Bytes& bytes, const Scope& scope, Node* owner, int depth);
  Function read_function(const Bytes& bytes);
  /// Whether the import says its domain at all.
  static bool read_opset(const Bytes& bytes, Opsets& into);

  TensorReader tensors_;
  const Opsets* opsets_ = nullptr;  // those that nodes follow now: the model's, or a function's own
  bool in_function_ = false;
};

bool Reader::read_opset(const Bytes& bytes, Opsets& into) {
  bool says_domain = false;
  std::string domain;
  int64_t version = 0;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case opset::domain:
        says_domain = true;
        domain = message.text();
        break;
      case opset::version: version = message.integer(); break;
      default: message.skip();
    }
  }
  require(into.size() < kMaxOpsets, "more than {} opsets are imported", kMaxOpsets);
  if (domain == "ai.onnx") domain.clear();
  into.emplace_back(std::move(domain), version);
  return says_domain;
}

Attribute Reader::read_attribute(const Bytes& bytes, const Scope& scope, Node* owner, int depth) {
  Attribute result;
  int64_t type_number = 0;
  AttrValue single;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  AttrList list;
  std::optional<Bytes> graph;  // read at the end: one that is given twice, or beside another type, is not there
  std::vector<Bytes> graphs;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case attribute::name: result.name = message.text(); break;
      case attribute::ref_attr_name: result.reference = message.text(); break;
      case attribute::doc_string: result.doc = message.text(); break;
      case attribute::type: type_number = message.integer(); break;
      case attribute::f: single = static_cast<double>(message.real()); break;
      case attribute::i: single = message.integer(); break;
      case attribute::s: single = message.text(); break;
      case attribute::t: single = tensors_.read(message.bytes()); break;
      case attribute::g: graph = message.bytes(); break;
      case attribute::sparse_tensor: single = tensors_.read_sparse(message.bytes()); break;
      case attribute::tp: single = read_type(message.bytes()); break;
      case attribute::floats:
        if (message.is_bytes()) {
          const std::string_view packed = message.view();
          require(packed.size() % 4 == 0, "attribute '{}' has a broken list of floats", result.name);
          for (size_t i = 0; i < packed.size(); i += 4) {
            float value;
            std::memcpy(&value, packed.data() + i, 4);
            floats.push_back(value);
          }
        } else {
          floats.push_back(message.real());
        }
        break;
      case attribute::ints: read_integers(message, ints); break;
      case attribute::strings: strings.push_back(message.text()); break;
      case attribute::tensors: list.emplace_back(tensors_.read(message.bytes())); break;
      case attribute::graphs: graphs.push_back(message.bytes()); break;
      case attribute::sparse_tensors: list.emplace_back(tensors_.read_sparse(message.bytes())); break;
      case attribute::type_protos: list.emplace_back(read_type(message.bytes())); break;
      default: message.skip();
    }
  }
  require(type_number >= 0 && type_number <= 14, "attribute '{}' has the unknown type {}", result.name, type_number);
  result.type = static_cast<AttrType>(type_number);
  if (result.type == AttrType::None && result.reference.empty()) {  // IR version 1 did not write the type
    if (!ints.empty())
      result.type = AttrType::Ints;
    else if (!floats.empty())
      result.type = AttrType::Floats;
    else if (!strings.empty())
      result.type = AttrType::Strings;
    else if (!graphs.empty())
      result.type = AttrType::Graphs;
    else if (graph && list.empty())
      result.type = AttrType::Graph;
    else
      result.type = list.empty() ? attr_type_of(single) : attr_type_of(AttrValue(list));
  }
  if (!result.reference.empty()) {
    require(in_function_, "attribute '{}' refers to '{}', but stands in no function", result.name, result.reference);
    return result;
  }
  if (result.type == AttrType::Graph && graph) single = read_graph(*graph, &scope, owner, depth + 1);
  if (result.type == AttrType::Graphs) {
    for (const Bytes& each : graphs) list.emplace_back(read_graph(each, &scope, owner, depth + 1));
  }
  const auto is_of_type = [&](const AttrValue& item) { return attr_type_of(AttrValue(AttrList{item})) == result.type; };
  switch (result.type) {
    case AttrType::Ints: result.value = std::move(ints); break;
    case AttrType::Floats: result.value = std::move(floats); break;
    case AttrType::Strings: result.value = std::move(strings); break;
    case AttrType::Tensors:
    case AttrType::Graphs:
    case AttrType::SparseTensors:
    case AttrType::Types: result.value = std::move(list); break;
    // proto3 writers leave out a number that is zero, and an empty string
    case AttrType::Int: result.value = single.is_none() ? AttrValue(int64_t{0}) : std::move(single); break;
    case AttrType::Float: result.value = single.is_none() ? AttrValue(0.0) : std::move(single); break;
    case AttrType::String: result.value = single.is_none() ? AttrValue(std::string()) : std::move(single); break;
    default: result.value = std::move(single);
  }
  const auto* items = result.value.get<AttrList>();
  require(items ? std::all_of(items->begin(), items->end(), is_of_type) : attr_type_of(result.value) == result.type,
          "attribute '{}' says it has type {} and has another", result.name, type_number);
  return result;
}

void Reader::read_node(Graph& graph, Scope& scope, const Bytes& bytes, int depth) {
  std::string name, op, domain, overload, doc;
  Metadata metadata;
  std::vector<Value*> inputs;
  std::vector<std::string_view> outputs;
  std::vector<Bytes> attributes;
  std::string_view missing;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case node::input: {
        const std::string_view input = message.view();
        inputs.push_back(input.empty() ? nullptr : scope.find(input));
        if (!input.empty() && inputs.back() == nullptr && missing.empty()) missing = input;
        break;
      }
      case node::output: outputs.push_back(message.view()); break;
      case node::name: name = message.text(); break;
      case node::op_type: op = message.text(); break;
      case node::domain: domain = message.text(); break;
      case node::overload: overload = message.text(); break;
      case node::doc_string: doc = message.text(); break;
      case node::attribute: attributes.push_back(message.bytes()); break;
      case node::metadata_props: metadata.push_back(read_entry(message.bytes())); break;
      default: message.skip();
    }
  }
  in_context([&] { return "reading " + describe(name, op); },
             [&] {
               require(!op.empty(), "a node has no operator");
               require(missing.empty(), "'{}' is used, but nothing before makes it", missing);
               if (domain == "ai.onnx") domain.clear();
               Node* node = graph.add_node(domain, op);
               node->overload = overload;
               node->name = std::move(name);
               node->doc = std::move(doc);
               node->metadata = std::move(metadata);
               node->version = imported_version(*opsets_, domain);
               for (size_t i = 0; i < inputs.size(); ++i) node->set_input(i, inputs[i]);
               std::unordered_set<std::string> names;
               for (const Bytes& attribute : attributes) {
                 Attribute read = read_attribute(attribute, scope, node, depth);
                 require(names.insert(read.name).second, "attribute '{}' is given twice", read.name);
                 node->attributes.push_back(std::move(read));
               }
               for (size_t i = 0; i < outputs.size(); ++i) {
                 if (outputs[i].empty()) {
                   node->resize_outputs(i + 1);
                 } else {
                   scope.define(graph.add_output_to(node, std::string(outputs[i])));
                 }
               }
               node->source = bytes;
             });
}

/// The first value that the node, or a graph in it, reads and that nothing in sight makes.
std::optional<std::string_view> find_missing(const Bytes& bytes, const Scope& scope) {
  for (const std::string_view name : names_read_by(bytes)) {
    if (!name.empty() && scope.find(name) == nullptr) return name;
  }
  return std::nullopt;
}

void Reader::read_nodes(Graph& graph, Scope& scope, std::vector<Bytes> nodes, int depth) {
  bool is_sorted = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto missing = find_missing(nodes[i], scope);
    if (missing && !is_sorted) {
      nodes = in_running_order({nodes.begin() + static_cast<std::ptrdiff_t>(i), nodes.end()});
      i = 0;
      is_sorted = true;
      missing = find_missing(nodes[i], scope);
    }
    if (missing) fail_invalid("'{}' is used, but nothing makes it", *missing);
    read_node(graph, scope, nodes[i], depth);
  }
}

GraphPtr Reader::read_graph(const Bytes& bytes, const Scope* outer, Node* owner, int depth) {
  require(depth < kMaxNesting, "subgraphs are nested more than {} deep", kMaxNesting);
  auto result = std::make_shared<Graph>();
  result->owner = owner;
  std::vector<Bytes> nodes, initializers, sparse, inputs, outputs, infos;
  std::string extra;
  Message message(bytes);
  while (message.next()) {
    if (message.field() < 64) result->given |= uint64_t{1} << message.field();
    switch (message.field()) {
      case graph::node: nodes.push_back(message.bytes()); break;
      case graph::name: result->name = message.text(); break;
      case graph::initializer: initializers.push_back(message.bytes()); break;
      case graph::sparse_initializer: sparse.push_back(message.bytes()); break;
      case graph::doc_string: result->doc = message.text(); break;
      case graph::input: inputs.push_back(message.bytes()); break;
      case graph::output: outputs.push_back(message.bytes()); break;
      case graph::value_info: infos.push_back(message.bytes()); break;
      case graph::metadata_props: result->metadata.push_back(read_entry(message.bytes())); break;
      default: message.skip(); extra += message.whole_field();
    }
  }
  result->extra = Bytes::own(std::move(extra));
  return in_context(
      [&] { return fmt::format("reading graph '{}'", result->name); },
      [&] {
        Scope scope{outer, {}};
        for (const Bytes& info : inputs) {
          auto [name, type] = read_value_info(info);
          require(!name.empty(), "an input has no name");
          scope.define(result->add_input(std::move(name), std::move(type)));
          result->input_declarations.push_back(info);
        }
        const auto add_constant = [&](const std::string& name, const TensorPtr& tensor,
                                      const std::vector<int64_t>& dims, DType dtype) {
          require(!name.empty(), "an initializer has no name");
          const auto at = scope.values.find(name);
          if (at != scope.values.end()) {  // an input with a default
            require(at->second->constant == nullptr && !at->second->sparse, "two initializers have the name '{}'",
                    name);
            const Type type = Type::tensor(dtype, Shape(dims.begin(), dims.end()));
            if (at->second->type.kind == Type::Kind::Unknown) at->second->type = type;
            require(can_default_to(at->second->type, type), "input '{}' is of {}, and its default of {}", name,
                    text_of(at->second->type), text_of(type));
            at->second->constant = tensor;
            result->add_initializer(at->second);
            return at->second;
          }
          Value* value = result->new_value(name, Type::tensor(dtype, Shape(dims.begin(), dims.end())));
          value->constant = tensor;
          result->add_initializer(value);
          scope.define(value);
          return value;
        };
        for (const Bytes& initializer : initializers) {
          const TensorPtr tensor = tensors_.read(initializer);
          add_constant(tensor->source_name, tensor, tensor->dims, tensor->dtype);
        }
        for (const Bytes& initializer : sparse) {
          const SparseTensorPtr tensor = tensors_.read_sparse(initializer);
          check_indices(*tensor);
          add_constant(tensor->values->source_name, nullptr, tensor->dims, tensor->values->dtype)->sparse = tensor;
        }
        read_nodes(*result, scope, std::move(nodes), depth);
        for (const Bytes& info : infos) {
          auto [name, type] = read_value_info(info);
          const auto at = scope.values.find(name);
          Value* value = at == scope.values.end() ? nullptr : at->second;
          if (value != nullptr && value->type.kind == Type::Kind::Unknown) value->type = std::move(type);
          result->value_declarations.emplace_back(value, info);
        }
        for (const Bytes& info : outputs) {
          auto [name, type] = read_value_info(info);
          Value* value = scope.find(name);
          require(value != nullptr, "output '{}' is never made", name);
          if (value->type.kind == Type::Kind::Unknown) value->type = std::move(type);
          result->add_output(value);
          result->output_declarations.push_back(info);
        }
        return result;
      });
}

Function Reader::read_function(const Bytes& bytes) {
  Function result;
  result.source = bytes;
  result.body = std::make_shared<Graph>();
  Scope scope;
  std::vector<Bytes> nodes, attributes, infos;
  std::vector<std::string_view> outputs;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case function::name: result.name = message.view(); break;
      case function::domain: result.domain = message.view(); break;
      case function::overload: result.overload = message.view(); break;
      case function::input: scope.define(result.body->add_input(message.text(), {})); break;
      case function::output: outputs.push_back(message.view()); break;
      case function::attribute: result.attributes.push_back(message.text()); break;
      case function::attribute_proto: attributes.push_back(message.bytes()); break;
      case function::node: nodes.push_back(message.bytes()); break;
      case function::value_info: infos.push_back(message.bytes()); break;
      case function::doc_string: result.body->doc = message.text(); break;
      case function::metadata_props: result.body->metadata.push_back(read_entry(message.bytes())); break;
      case function::opset_import: read_opset(message.bytes(), result.opsets); break;
      default: message.skip();
    }
  }
  return in_context([&] { return fmt::format("reading function '{}'", result.name.view()); },
                    [&] {
                      result.body->name = result.name.str();
                      for (const Bytes& attribute : attributes) {
                        result.default_attributes.push_back(read_attribute(attribute, scope, nullptr, 0));
                      }
                      const Opsets* saved = std::exchange(opsets_, &result.opsets);
                      in_function_ = true;
                      read_nodes(*result.body, scope, std::move(nodes), 0);
                      in_function_ = false;
                      opsets_ = saved;
                      for (const Bytes& info : infos) {
                        auto [name, type] = read_value_info(info);
                        if (const auto at = scope.values.find(name); at != scope.values.end())
                          at->second->type = std::move(type);
                      }
                      for (const std::string_view name : outputs) {
                        Value* value = scope.find(name);
                        require(value != nullptr, "output '{}' is never made", name);
                        result.body->add_output(value);
                      }
                      return std::move(result);
                    });
}

Model Reader::read_model(const Bytes& bytes) {
  Model result;
  Bytes main_graph;
  bool has_graph = false;
  std::vector<Bytes> functions;
  std::string extra;
  Message message(bytes);
  while (message.next()) {
    if (message.field() < opset::kDefaultLeftOut) result.given |= uint64_t{1} << message.field();
    switch (message.field()) {
      case model::ir_version: result.ir_version = message.integer(); break;
      case model::producer_name: result.producer_name = message.text(); break;
      case model::producer_version: result.producer_version = message.text(); break;
      case model::domain: result.domain = message.text(); break;
      case model::model_version: result.model_version = message.integer(); break;
      case model::doc_string: result.doc = message.text(); break;
      case model::graph:
        has_graph = message.is_bytes();
        main_graph = message.bytes();
        break;
      case model::opset_import:
        if (!read_opset(message.bytes(), result.opsets)) result.given |= uint64_t{1} << opset::kDefaultLeftOut;
        break;
      case model::metadata_props: result.metadata.push_back(read_entry(message.bytes())); break;
      case model::functions: functions.push_back(message.bytes()); break;
      default: {
        const auto field = message.field();  // which a skip may forget
        message.skip();
        if (field == model::training_info || field == model::configuration) extra += message.whole_field();
      }
    }
  }
  if (!has_graph) fail(ErrorKind::BadFile, "this is not an ONNX model: it has no graph");
  require(!result.opsets.empty() || result.ir_version < 3, "the model does not say which opset it follows");
  if (result.opsets.empty()) result.opsets.emplace_back("", 1);  // IR versions 1 and 2 did not say
  result.extra = Bytes::own(std::move(extra));
  opsets_ = &result.opsets;
  result.graph = read_graph(main_graph, nullptr, nullptr, 0);
  for (const Bytes& function : functions) result.functions.push_back(read_function(function));
  return result;
}

}  // namespace
}  // namespace onnx

Model read_onnx(Bytes bytes, const std::string& folder) {
  if (bytes.empty()) fail(ErrorKind::BadFile, "the file is empty");
  budget().add_input(bytes.size());
  try {
    Model model = onnx::Reader(folder).read_model(bytes);
    model.file_size = bytes.size();
    return model;
  } catch (const protozero::end_of_buffer_exception&) {
    fail(ErrorKind::BadFile, "the file is cut off, or it is not an ONNX model: a field reaches past its end");
  } catch (const protozero::exception& e) {
    fail(ErrorKind::BadFile, "this is not an ONNX model: {}", e.what());
  }
}

Model read_onnx(const std::string& path) {
  return in_context([&] { return "reading " + path; },
                    [&] {
                      const std::string folder = std::filesystem::path(path).parent_path().string();
                      Model model = read_onnx(map_file(path), folder.empty() ? "." : folder);
                      model.path = path;
                      return model;
                    });
}

}  // namespace tonnx
