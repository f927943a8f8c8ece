// text.cpp - prints models and graphs; docs/ir.md has the grammar.
#include "ir/text.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/join.h"
#include "base/quote.h"
#include "ir/text_lexer.h"

namespace tonnx {
namespace {

std::string name_text(const Value* value) {
  const bool plain = !value->name.empty() && text::plain_name_length(value->name) == value->name.size();
  return "%" + (plain ? value->name : quoted(value->name));
}

/// The shortest text that reads back as the same number, and never as an integer.
template <class Float>
std::string float_text(Float value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

/// ONNX keeps numbers in 32 bits. In aten a number of 32 bits whose short text means another one in 64 gets an `f`.
std::string number_text(double value, bool is_aten) {
  const auto narrow = static_cast<float>(value);
  if (!is_aten) return float_text(narrow);
  const std::string exact = float_text(value);
  if (static_cast<double>(narrow) != value) return exact;
  const std::string rounded = float_text(narrow);
  return rounded == exact ? exact : rounded + "f";
}

std::string size_text(const Tensor& tensor) {
  const auto bytes = static_cast<double>(tensor.data.size());
  if (tensor.dtype == DType::String) return fmt::format("<{} strings>", tensor.strings.size());
  if (bytes < 1e3) return fmt::format("<{} B>", bytes);
  if (bytes < 1e6) return fmt::format("<{:.1f} kB>", bytes / 1e3);
  return bytes < 1e9 ? fmt::format("<{:.1f} MB>", bytes / 1e6) : fmt::format("<{:.1f} GB>", bytes / 1e9);
}

/// Of a number of 16 bits, the shortest text that is rounded to it.
std::string short_float_text(DType dtype, double value) {
  const bool is_short = !std::isfinite(value) || (std::fabs(value) < 1e6 && std::trunc(value) == value);
  for (int digits = 1; !is_short && digits < 9; ++digits) {
    const std::string text = fmt::format("{:.{}g}", value, digits);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    if (bits_of(dtype, rounded) == bits_of(dtype, value)) return float_text(rounded);
  }
  return float_text(static_cast<float>(value));
}

std::string element_text(const Tensor& tensor, int64_t i) {
  const DType dtype = tensor.dtype;
  const auto as_bits = [&] { return fmt::format("0x{:x}", element_bits(tensor, i)); };
  if (dtype == DType::String) return quoted(tensor.strings[static_cast<size_t>(i)]);
  if (dtype == DType::Bool) {
    const uint64_t bits = element_bits(tensor, i);
    return bits > 1 ? as_bits() : bits == 1 ? "True" : "False";
  }
  if (dtype == DType::UInt64) return std::to_string(element_bits(tensor, i));
  if (is_integer(dtype)) return std::to_string(element_as_int(tensor, i));
  const double value = element_as_double(tensor, i);
  if (std::isnan(value)) {
    const double usual = std::numeric_limits<double>::quiet_NaN();
    return element_bits(tensor, i) == bits_of(dtype, usual) ? "nan" : as_bits();
  }
  if (dtype == DType::Float64) return float_text(value);
  return info(dtype).bits == 16 ? short_float_text(dtype, value) : float_text(static_cast<float>(value));
}

const char* type_name(AttrType type) {
  constexpr const char* kNames[] = {"none",    "float",   "int",    "string", "tensor",  "graph", "floats", "ints",
                                    "strings", "tensors", "graphs", "sparse", "sparses", "type",  "types"};
  return kNames[static_cast<size_t>(type)];
}

void mark_operands(const AttrValue& value, std::vector<bool>& named) {
  if (const auto* operand = value.get<Operand>(); operand && operand->index < named.size())
    named[operand->index] = true;
  if (const auto* list = value.get<AttrList>()) {
    for (const AttrValue& item : *list) mark_operands(item, named);
  }
}

class Printer {
 public:
  Printer(const PrintOptions& options, Opsets opsets) : options_(options), opsets_(std::move(opsets)) {}

  std::string print(const Model& model);
  std::string print(const Graph& graph) {
    print_graph(graph, 0);
    return std::move(out_) + "\n";
  }

 private:
  void print_function(const Function& function);
  void print_opsets(const Opsets& opsets, size_t indent);
  void print_graph(const Graph& graph, size_t indent);
  void print_body(const Graph& graph, size_t indent);
  void print_initializer(const Value& value);
  void print_node(const Node& node, size_t indent);
  void print_attributes(const Node& node, bool is_aten, size_t indent, bool starts);
  void print_attribute(const Attribute& attribute, bool is_aten, size_t indent, const Node* node);
  void print_value(const AttrValue& value, bool is_aten, size_t indent, const Node* node);
  void print_tensor(const Tensor& tensor, bool with_name);
  void print_sparse(const SparseTensor& sparse, bool with_name);
  void print_notes(const std::string& doc, const Metadata& metadata, const std::string& before);
  void print_head(const std::string& doc, const Metadata& metadata, const Bytes& extra, size_t indent);

  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }
  template <class List, class Use>
  void add_list(const List& list, Use&& use) {
    bool first = true;
    for (const auto& item : list) {
      if (!first) out_ += ", ";
      first = false;
      use(item);
    }
  }
  void start_line(size_t indent) { out_.append(indent, ' '); }

  PrintOptions options_;
  Opsets opsets_;  // those that the nodes at hand follow
  std::string out_;
};

void Printer::print_notes(const std::string& doc, const Metadata& metadata, const std::string& before) {
  if (!doc.empty()) add("{}doc {}", before, quoted(doc));
  for (const auto& [key, value] : metadata) add("{}metadata {} = {}", before, quoted(key), quoted(value));
}

void Printer::print_tensor(const Tensor& tensor, bool with_name) {
  const int64_t count = tensor.count();
  add("{}[{}]", name_of(tensor.dtype), joined(tensor.dims, ", "));
  if (count > options_.max_elements) {
    add(" {}", size_text(tensor));
  } else {
    out_ += '{';
    const bool is_complex = info(tensor.dtype).kind == 'c';
    Tensor parts = tensor;  // of complex numbers: real and imaginary in turn
    if (is_complex) parts.dtype = tensor.dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) out_ += ", ";
      out_ += is_complex ? fmt::format("({}, {})", element_text(parts, 2 * i), element_text(parts, 2 * i + 1))
                         : element_text(tensor, i);
    }
    out_ += '}';
  }
  const bool named = with_name && !tensor.source_name.empty();
  if (!named && tensor.doc.empty() && tensor.metadata.empty()) return;
  out_ += '(';
  if (named) out_ += quoted(tensor.source_name);
  print_notes(tensor.doc, tensor.metadata, " ");
  out_ += ')';
}

void Printer::print_sparse(const SparseTensor& sparse, bool with_name) {
  add("sparse[{}](", joined(sparse.dims, ", "));
  print_tensor(*sparse.values, with_name);
  out_ += ", ";
  print_tensor(*sparse.indices, with_name);
  out_ += ')';
}

void Printer::print_value(const AttrValue& value, bool is_aten, size_t indent, const Node* node) {
  const auto in_brackets = [&](const auto& list, auto&& use) {
    out_ += '[';
    add_list(list, use);
    out_ += ']';
  };
  if (value.is_none()) out_ += "None";
  if (const auto* v = value.get<bool>()) out_ += *v ? "True" : "False";
  if (const auto* v = value.get<int64_t>()) add("{}", *v);
  if (const auto* v = value.get<double>()) out_ += number_text(*v, is_aten);
  if (const auto* v = value.get<std::string>()) out_ += quoted(*v);
  if (const auto* v = value.get<DType>()) out_ += name_of(*v);
  if (const auto* v = value.get<Type>()) add("type({})", text_of(*v));
  if (const auto* v = value.get<TensorPtr>()) print_tensor(**v, true);
  if (const auto* v = value.get<SparseTensorPtr>()) print_sparse(**v, true);
  if (const auto* v = value.get<GraphPtr>()) print_graph(**v, indent);
  if (const auto* v = value.get<std::vector<int64_t>>()) in_brackets(*v, [&](int64_t i) { add("{}", i); });
  if (const auto* v = value.get<std::vector<double>>())
    in_brackets(*v, [&](double f) { out_ += number_text(f, is_aten); });
  if (const auto* v = value.get<std::vector<std::string>>()) {
    in_brackets(*v, [&](const std::string& s) { out_ += quoted(s); });
  }
  if (const auto* v = value.get<AttrList>()) {
    in_brackets(*v, [&](const AttrValue& item) { print_value(item, is_aten, indent, node); });
  }
  if (const auto* v = value.get<Operand>()) {
    const Value* operand = node ? node->input(v->index) : nullptr;
    out_ += operand ? name_text(operand) : "_";
  }
}

bool is_empty_list(const AttrValue& value) {
  const auto empty = [](const auto* list) { return list != nullptr && list->empty(); };
  return empty(value.get<std::vector<double>>()) || empty(value.get<std::vector<std::string>>()) ||
         empty(value.get<AttrList>());
}

void Printer::print_attribute(const Attribute& attribute, bool is_aten, size_t indent, const Node* node) {
  out_ += word_or_quoted(attribute.name);
  const bool is_reference = !attribute.reference.empty();
  const AttrType type = attribute.type == AttrType::None ? attr_type_of(attribute.value) : attribute.type;
  const bool says_type = type != AttrType::None && (is_reference || is_empty_list(attribute.value));
  out_ += says_type ? fmt::format(": {} = ", type_name(type)) : "=";
  if (is_reference) {
    add("@{}", word_or_quoted(attribute.reference));
  } else {
    print_value(attribute.value, is_aten, indent, node);
  }
  if (!attribute.doc.empty()) add(" doc {}", quoted(attribute.doc));
}

/// What stands between the brackets; a node with graphs inside has an attribute a line.
void Printer::print_attributes(const Node& node, bool is_aten, size_t indent, bool starts) {
  const bool broken = !subgraphs_of(node).empty();
  for (const Attribute& attribute : node.attributes) {
    if (!starts) out_ += broken ? "," : ", ";
    starts = false;
    if (broken) {
      out_ += '\n';
      start_line(indent + 2);
    }
    print_attribute(attribute, is_aten, indent + 2, &node);
  }
  if (broken) {
    out_ += '\n';
    start_line(indent);
  }
}

std::string aten_operator_text(std::string_view domain, std::string_view op, std::string_view overload) {
  const bool plain = is_word(op) && op.find('.') == std::string_view::npos && is_word("_" + std::string(overload));
  const std::string name = fmt::format("{}::{}", word_or_quoted(domain), plain ? std::string(op) : quoted(op));
  return overload.empty() ? name : fmt::format("{}.{}", name, plain ? std::string(overload) : quoted(overload));
}

std::string onnx_operator_text(std::string_view domain, std::string_view op, std::string_view overload) {
  const bool plain = is_word(op) && op.find('.') == std::string_view::npos && (domain.empty() || is_word(domain));
  std::string text = plain ? std::string(op) : quoted(op);
  if (!domain.empty()) text = fmt::format("{}.{}", plain ? std::string(domain) : quoted(domain), text);
  return overload.empty() ? text : fmt::format("{}:{}", text, word_or_quoted(overload));
}

void Printer::print_node(const Node& node, size_t indent) {
  const bool is_aten = node.version == 0 && !node.domain.empty();
  start_line(indent);
  if (node.outputs().empty()) out_ += "()";
  add_list(node.outputs(), [&](const Value* output) {
    out_ += output ? name_text(output) : "_";
    if (output && output->type.kind != Type::Kind::Unknown) add(": {}", text_of(output->type));
  });
  out_ += " = ";
  out_ += (is_aten ? aten_operator_text : onnx_operator_text)(node.domain.view(), node.op.view(), node.overload.view());
  if (!is_aten && node.version != imported_version(opsets_, node.domain.view())) add("-{}", node.version);
  out_ += '(';
  std::vector<bool> named(node.inputs().size(), false);
  for (const Attribute& attribute : node.attributes) mark_operands(attribute.value, named);
  std::vector<const Value*> positional;
  for (size_t i = 0; i < named.size(); ++i) {
    if (!named[i]) positional.push_back(node.input(i));
  }
  add_list(positional, [&](const Value* input) { out_ += input ? name_text(input) : "_"; });
  if (is_aten) print_attributes(node, true, indent, positional.empty());
  out_ += ')';
  if (!is_aten && !node.attributes.empty()) {
    out_ += " {";
    print_attributes(node, false, indent, true);
    out_ += '}';
  }
  if (!node.name.empty()) add(" {}", quoted(node.name));
  if (options_.notes) print_notes(node.doc, node.metadata, "\n" + std::string(indent + 6, ' '));
  out_ += '\n';
}

void Printer::print_initializer(const Value& value) {
  add("{} {}: ", value.trainable ? "param" : "const", name_text(&value));
  if (value.sparse) {
    print_sparse(*value.sparse, false);
  } else {
    print_tensor(*value.constant, false);
  }
  if (!value.file_dims.empty()) add(" of [{}]", fmt::join(value.file_dims, ", "));
  out_ += '\n';
}

void Printer::print_head(const std::string& doc, const Metadata& metadata, const Bytes& extra, size_t indent) {
  const std::string margin(indent, ' ');
  if (!doc.empty()) add("{}doc {}\n", margin, quoted(doc));
  for (const auto& [key, value] : metadata) add("{}metadata {} = {}\n", margin, quoted(key), quoted(value));
  if (extra.empty()) return;
  const bool whole = static_cast<int64_t>(extra.size() / 4) <= options_.max_elements;
  add("{}extra {}\n", margin, whole ? quoted(extra.view()) : fmt::format("<{} B>", extra.size()));
}

void Printer::print_body(const Graph& graph, size_t indent) {
  const std::string margin(indent, ' ');
  for (const Value* input : graph.inputs()) {
    add("{}input {}", margin, name_text(input));
    if (input->type.kind != Type::Kind::Unknown) add(": {}", text_of(input->type));
    out_ += '\n';
  }
  for (const Value* value : graph.initializers()) {
    out_ += margin;
    print_initializer(*value);
  }
  const bool is_long = graph.owner == nullptr && graph.node_count() > 0;
  if (is_long && !(graph.inputs().empty() && graph.initializers().empty())) out_ += '\n';
  for (const Node& node : graph) print_node(node, indent);
  if (is_long && !graph.outputs().empty()) out_ += '\n';
  for (const Value* output : graph.outputs()) add("{}output {}\n", margin, name_text(output));
}

void Printer::print_graph(const Graph& graph, size_t indent) {
  out_ += "graph ";
  if (!graph.name.empty()) add("{} ", word_or_quoted(graph.name));
  out_ += "{\n";
  print_head(graph.doc, graph.metadata, graph.extra, indent + 2);
  print_body(graph, indent + 2);
  start_line(indent);
  out_ += '}';
}

void Printer::print_opsets(const Opsets& opsets, size_t indent) {
  for (const auto& [domain, version] : opsets) {
    start_line(indent);
    add("opset {}{}{}\n", domain.empty() ? "" : word_or_quoted(domain), domain.empty() ? "" : " ", version);
  }
}

void Printer::print_function(const Function& function) {
  add("function {} {{\n", onnx_operator_text(function.domain.view(), function.name.view(), function.overload.view()));
  print_opsets(function.opsets, 2);
  print_head(function.body->doc, function.body->metadata, function.body->extra, 2);
  for (const std::string& name : function.attributes) add("  attribute {}\n", word_or_quoted(name));
  for (const Attribute& attribute : function.default_attributes) {
    out_ += "  attribute ";
    print_attribute(attribute, false, 2, nullptr);
    out_ += '\n';
  }
  const Opsets saved = std::exchange(opsets_, function.opsets);
  print_body(*function.body, 2);
  opsets_ = saved;
  out_ += "}\n\n";
}

std::string Printer::print(const Model& model) {
  add("ir_version {}\n", model.ir_version);
  print_opsets(model.opsets, 0);
  if (!model.producer_name.empty() || !model.producer_version.empty()) add("producer {}", quoted(model.producer_name));
  if (!model.producer_version.empty()) add(" {}", quoted(model.producer_version));
  if (!model.producer_name.empty() || !model.producer_version.empty()) out_ += '\n';
  if (!model.domain.empty()) add("domain {}\n", quoted(model.domain));
  if (model.model_version != 0) add("version {}\n", model.model_version);
  print_head(model.doc, model.metadata, model.extra, 0);
  out_ += '\n';
  for (const Function& function : model.functions) print_function(function);
  print_graph(*model.graph, 0);
  return std::move(out_) + "\n";
}

}  // namespace

std::string print(const Model& model, const PrintOptions& options) {
  return Printer(options, model.opsets).print(model);
}

std::string print(const Graph& graph, const PrintOptions& options) { return Printer(options, {}).print(graph); }

}  // namespace tonnx
