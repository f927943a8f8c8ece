// text_parser.cpp - parses the text form of models; docs/ir.md has the grammar.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/text.h"
#include "ir/text_parts.h"

namespace tonnx {
namespace {

using text::Token;

constexpr int64_t kDefaultIrVersion = 10;

/// The names that a graph can see: its own, then those of the graphs around it.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, Value*> values = {};

  Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      const auto at = scope->values.find(name);
      if (at != scope->values.end()) return at->second;
    }
    return nullptr;
  }
};

class Parser : text::PartParser {
 public:
  explicit Parser(std::string_view source) : PartParser(source) {}
  Model parse_model();

 private:
  struct Place {  // what the values of an attribute may refer to
    const Scope* scope = nullptr;
    Node* node = nullptr;
    bool is_aten = false;
  };
  Attribute parse_attribute(std::string name, const Place& place);
  AttrValue parse_value(const Place& place);
  AttrValue parse_number(bool is_aten);
  AttrValue parse_list(const Place& place);
  AttrType parse_attribute_type();
  void parse_attributes(std::string_view end, const Place& place);

  GraphPtr parse_graph(const Scope* outer, Node* owner);
  void parse_body(Graph& graph, Scope& scope, Function* function);
  void parse_node(Graph& graph, Scope& scope);
  void parse_operator(Node& node, bool& is_aten);
  void parse_initializer(Graph& graph, Scope& scope, bool trainable);
  Value* parse_used_value(const Scope& scope);
  void define(Scope& scope, const Token& at, Value* value);
  Bytes parse_extra();
  void parse_opset(Opsets& opsets);
  Function parse_function();

  const Opsets* opsets_ = nullptr;  // those that nodes follow now
};

AttrType Parser::parse_attribute_type() {
  constexpr std::string_view kNames[] = {"none",    "float",   "int",    "string", "tensor",  "graph", "floats", "ints",
                                         "strings", "tensors", "graphs", "sparse", "sparses", "type",  "types"};
  const auto at = std::find(std::begin(kNames), std::end(kNames), token().source);
  if (token().kind != Kind::Word || at == std::end(kNames)) fail_expected("the type of an attribute");
  lexer_.advance();
  return static_cast<AttrType>(at - std::begin(kNames));
}

AttrValue empty_list(AttrType type) {
  switch (type) {
    case AttrType::Floats: return std::vector<double>();
    case AttrType::Strings: return std::vector<std::string>();
    case AttrType::Tensors:
    case AttrType::Graphs:
    case AttrType::SparseTensors:
    case AttrType::Types: return AttrList();
    default: return std::vector<int64_t>();
  }
}

Attribute Parser::parse_attribute(std::string name, const Place& place) {
  Attribute attribute;
  attribute.name = std::move(name);
  if (take_mark(":")) attribute.type = parse_attribute_type();
  expect_mark("=");
  if (take_mark("@")) {
    attribute.reference = take_word_or_string("the name of an attribute");
  } else {
    const Token at = token();
    attribute.value = parse_value(place);
    const auto* ints = attribute.value.get<std::vector<int64_t>>();
    if (ints != nullptr && ints->empty() && attribute.type != AttrType::None)
      attribute.value = empty_list(attribute.type);
    if (!place.is_aten && attribute.type == AttrType::None) attribute.type = attr_type_of(attribute.value);
    if (attribute.type != AttrType::None && attr_type_of(attribute.value) != attribute.type &&
        !(attribute.value.get<AttrList>() && attribute.value.get<AttrList>()->empty())) {
      lexer_.fail(at, fmt::format("attribute '{}' is not of its type", attribute.name));
    }
    if (!place.is_aten && attribute.type == AttrType::None && !attribute.value.is_none()) {
      lexer_.fail(at, fmt::format("attribute '{}' is of a type that ONNX does not have", attribute.name));
    }
  }
  if (take_word("doc")) attribute.doc = take_string();
  return attribute;
}

AttrValue Parser::parse_number(bool is_aten) {
  const bool negative = take_mark("-");
  if (at_integer()) return take_integer(negative);
  const bool is_narrow = !is_aten || token().source.ends_with('f');
  const double value = is_narrow ? static_cast<double>(take_float<float>()) : take_float<double>();
  return negative ? -value : value;
}

AttrValue Parser::parse_list(const Place& place) {
  expect_mark("[");
  AttrList list;
  nested(text::kMaxNesting, [&] {
    parse_items("]", [&] { list.push_back(parse_value(place)); });
    return 0;
  });
  const auto as = [&]<class T>(std::vector<T> typed) -> std::optional<AttrValue> {
    for (AttrValue& item : list) {
      const T* value = item.get<T>();
      if (value == nullptr) return std::nullopt;
      typed.push_back(*value);
    }
    return AttrValue(std::move(typed));
  };
  if (auto ints = as(std::vector<int64_t>())) return *std::move(ints);
  if (auto floats = as(std::vector<double>())) return *std::move(floats);
  if (auto strings = as(std::vector<std::string>())) return *std::move(strings);
  return list;
}

AttrValue Parser::parse_value(const Place& place) {
  const Token at = token();
  if (at.kind == Kind::String) return take_string();
  if (at.kind == Kind::Number || at_mark("-") || at_word("inf") || at_word("nan")) return parse_number(place.is_aten);
  if (at_mark("[")) return parse_list(place);
  if (at.kind == Kind::Value || at_word("_")) {
    if (!place.is_aten) lexer_.fail("a value is no attribute; it stands among the inputs");
    const auto index = static_cast<uint32_t>(place.node->inputs().size());
    place.node->add_input(take_word("_") ? nullptr : parse_used_value(*place.scope));
    return Operand{index};
  }
  if (take_word("None")) return AttrValue();
  if (take_word("True")) return true;
  if (take_word("False")) return false;
  if (take_word("sparse")) return parse_sparse();
  if (at_word("graph")) return parse_graph(place.scope, place.node);
  if (take_word("type")) {
    expect_mark("(");
    Type type = parse_type();
    expect_mark(")");
    return type;
  }
  if (at.kind != Kind::Word || (!find_dtype(at.source) && !at_word("undefined"))) fail_expected("a value");
  const DType dtype = parse_dtype();
  if (at_mark("[")) return TensorPtr(parse_tensor(dtype));
  return dtype;
}

void Parser::parse_attributes(std::string_view end, const Place& place) {
  std::unordered_set<std::string> names;
  parse_items(end, [&] {
    const Token at = token();
    Attribute attribute = parse_attribute(take_word_or_string("the name of an attribute"), place);
    if (!names.insert(attribute.name).second)
      lexer_.fail(at, fmt::format("attribute '{}' is given twice", attribute.name));
    place.node->attributes.push_back(std::move(attribute));
  });
}

Value* Parser::parse_used_value(const Scope& scope) {
  if (token().kind != Kind::Value) fail_expected("a value");
  Value* value = scope.find(token().text);
  if (value == nullptr) lexer_.fail(fmt::format("{} is used, but nothing before makes it", token().source));
  lexer_.advance();
  return value;
}

void Parser::define(Scope& scope, const Token& at, Value* value) {
  if (!scope.values.emplace(value->name, value).second)
    lexer_.fail(at, fmt::format("two values have the name {}", at.source));
}

Bytes Parser::parse_extra() {
  if (at_mark("<")) lexer_.fail("the bytes are left out here; print the model with more elements to have them");
  return Bytes::own(take_string());
}

/// `com.microsoft.Gelu:overload-1`, or `aten::add.Tensor`; sets the node's names and version.
void Parser::parse_operator(Node& node, bool& is_aten) {
  const bool first_quoted = token().kind == Kind::String;
  std::string first = take_word_or_string("an operator");
  is_aten = take_mark("::");
  if (is_aten) {
    const bool is_quoted = token().kind == Kind::String;
    std::string op = take_word_or_string("an operator");
    node.domain = first;
    const size_t dot = is_quoted ? std::string::npos : op.find('.');
    node.op = std::string_view(op).substr(0, dot);
    if (dot != std::string::npos) node.overload = std::string_view(op).substr(dot + 1);
    if (take_mark(".")) node.overload = take_word_or_string("an overload");
    return;
  }
  if (first_quoted && take_mark(".")) {
    node.domain = first;
    first = take_string();
  } else if (const size_t dot = first.rfind('.'); !first_quoted && dot != std::string::npos) {
    node.domain = std::string_view(first).substr(0, dot);
    first.erase(0, dot + 1);
  }
  node.op = first;
  if (take_mark(":")) node.overload = take_word_or_string("an overload");
  node.version = take_mark("-") ? parse_integer() : imported_version(*opsets_, node.domain.view());
}

void Parser::parse_node(Graph& graph, Scope& scope) {
  struct Output {
    Token at;
    Type type;
  };
  std::vector<Output> outputs;
  if (take_mark("(")) {
    expect_mark(")");
  } else {
    do {
      Output& output = outputs.emplace_back();
      output.at = token();
      if (take_word("_")) continue;
      take(Kind::Value, "a statement");
      if (take_mark(":")) output.type = parse_type();
    } while (take_mark(","));
  }
  expect_mark("=");
  Node* node = graph.add_node("", "");
  bool is_aten = false;
  parse_operator(*node, is_aten);
  const Place place{&scope, node, is_aten};
  expect_mark("(");
  while (token().kind == Kind::Value || at_word("_")) {
    node->add_input(take_word("_") ? nullptr : parse_used_value(scope));
    if (!take_mark(",")) break;
  }
  if (is_aten) {
    parse_attributes(")", place);
  } else {
    expect_mark(")");
    if (take_mark("{")) parse_attributes("}", place);
  }
  if (token().kind == Kind::String) node->name = take_string();
  while (parse_note(node->doc, node->metadata)) {
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].at.kind == Kind::Word) {
      node->resize_outputs(i + 1);
    } else {
      define(scope, outputs[i].at, graph.add_output_to(node, outputs[i].at.text, std::move(outputs[i].type)));
    }
  }
}

void Parser::parse_initializer(Graph& graph, Scope& scope, bool trainable) {
  const Token at = token();
  const std::string name = take(Kind::Value, "the name of a constant");
  const auto found = scope.values.find(name);
  Value* value = found == scope.values.end() ? nullptr : found->second;
  if (value != nullptr && (value->producer || value->constant || value->sparse)) {
    lexer_.fail(at, fmt::format("two values have the name {}", at.source));
  }
  expect_mark(":");
  TensorPtr tensor;
  SparseTensorPtr sparse;
  if (take_word("sparse")) {
    sparse = parse_sparse();
  } else {
    tensor = parse_tensor(parse_dtype());
  }
  if (value == nullptr) {
    value = graph.new_value(name, {});
    define(scope, at, value);
  }
  const std::vector<int64_t>& dims = tensor ? tensor->dims : sparse->dims;
  const DType dtype = (tensor ? tensor : sparse->values)->dtype;
  if (value->type.kind == Type::Kind::Unknown) value->type = Type::tensor(dtype, Shape(dims.begin(), dims.end()));
  value->constant = std::move(tensor);
  value->sparse = std::move(sparse);
  value->trainable = trainable;
  if (take_word("of")) {
    const Token start = token();
    value->file_dims = parse_sizes();
    if (located(start, [&] { return count_of(value->file_dims); }) != count_of(dims))
      lexer_.fail(start, fmt::format("{} has another number of elements", at.source));
  }
  graph.add_initializer(value);
}

void Parser::parse_opset(Opsets& opsets) {
  std::string domain;
  if (token().kind != Kind::Number && !at_mark("-")) domain = take_word_or_string("a domain");
  const int64_t version = parse_integer();
  if (opsets.size() >= kMaxOpsets) lexer_.fail(fmt::format("more than {} opsets", kMaxOpsets));
  opsets.emplace_back(std::move(domain), version);
}

void Parser::parse_body(Graph& graph, Scope& scope, Function* function) {
  expect_mark("{");
  while (!take_mark("}")) {
    if (function && take_word("opset")) {
      parse_opset(function->opsets);
    } else if (function && take_word("attribute")) {
      std::string name = take_word_or_string("the name of an attribute");
      if (at_mark("=") || at_mark(":")) {
        function->default_attributes.push_back(parse_attribute(std::move(name), {&scope, nullptr, false}));
      } else {
        function->attributes.push_back(std::move(name));
      }
    } else if (take_word("extra")) {
      graph.extra = parse_extra();
    } else if (take_word("input")) {
      const Token at = token();
      std::string name = take(Kind::Value, "the name of an input");
      Type type = take_mark(":") ? parse_type() : Type{};
      define(scope, at, graph.add_input(std::move(name), std::move(type)));
    } else if (at_word("const") || at_word("param")) {
      const bool trainable = at_word("param");
      lexer_.advance();
      parse_initializer(graph, scope, trainable);
    } else if (take_word("output")) {
      graph.add_output(parse_used_value(scope));
    } else if (!parse_note(graph.doc, graph.metadata)) {
      parse_node(graph, scope);
    }
  }
  graph.input_declarations.resize(graph.inputs().size());
  graph.output_declarations.resize(graph.outputs().size());
}

GraphPtr Parser::parse_graph(const Scope* outer, Node* owner) {
  return nested(text::kMaxNesting, [&] {
    auto graph = std::make_shared<Graph>();
    graph->owner = owner;
    take(Kind::Word, "graph");
    if (!at_mark("{")) graph->name = take_word_or_string("the name of a graph");
    Scope scope{outer};
    parse_body(*graph, scope, nullptr);
    return graph;
  });
}

Function Parser::parse_function() {
  Function function;
  Node name;  // its names are those of an operator
  bool is_aten = false;
  parse_operator(name, is_aten);
  if (is_aten) lexer_.fail("a function has a domain of ONNX, which a dot joins to its name");
  function.domain = name.domain;
  function.name = name.op;
  function.overload = name.overload;
  function.body = std::make_shared<Graph>();
  function.body->name = name.op.str();
  Scope scope;
  const Opsets* saved = std::exchange(opsets_, &function.opsets);
  parse_body(*function.body, scope, &function);
  opsets_ = saved;
  return function;
}

Model Parser::parse_model() {
  Model model;
  model.ir_version = kDefaultIrVersion;
  opsets_ = &model.opsets;
  while (!model.graph) {
    if (take_word("ir_version")) {
      model.ir_version = parse_integer();
    } else if (take_word("opset")) {
      parse_opset(model.opsets);
    } else if (take_word("producer")) {
      model.producer_name = take_string();
      if (token().kind == Kind::String) model.producer_version = take_string();
    } else if (take_word("domain")) {
      model.domain = take_string();
    } else if (take_word("version")) {
      model.model_version = parse_integer();
    } else if (take_word("extra")) {
      model.extra = parse_extra();
    } else if (take_word("function")) {
      model.functions.push_back(parse_function());
    } else if (at_word("graph")) {
      model.graph = parse_graph(nullptr, nullptr);
    } else if (!parse_note(model.doc, model.metadata)) {
      fail_expected("a graph");
    }
  }
  if (token().kind != Kind::End) fail_expected("the end");
  return model;
}

}  // namespace

Model parse_model(std::string_view source) { return Parser(source).parse_model(); }

}  // namespace tonnx
