// graph_writer.cpp - nodes, arguments and the types of values as torch.export writes them.
#include "formats/pt2/graph_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "formats/pt2/dtype.h"
#include "ops/frame/op_def.h"

namespace tonnx::pt2 {
namespace {

constexpr int64_t kStrided = 7;
constexpr int64_t kPositional = 1, kKeyword = 2;

int64_t memory_format(std::string_view name) {
  if (name == "contiguous_format") return 1;
  if (name == "channels_last") return 2;
  return name == "channels_last_3d" ? 3 : 4;
}

bool is_number_kind(Type::Kind kind) {
  return kind == Type::Kind::Int || kind == Type::Kind::Float || kind == Type::Kind::Bool;
}

/// What a value of that type is called among arguments and outputs.
std::string_view variant_for(const Type& type) {
  switch (type.kind) {
    case Type::Kind::Int: return "as_sym_int";
    case Type::Kind::Float: return "as_sym_float";
    case Type::Kind::Bool: return "as_sym_bool";
    default: return "as_tensor";
  }
}

/// The operator as Python finds it.
std::string target_of(const Node& node) {
  const std::string_view domain = node.domain.view();
  if (domain == "_operator" || domain == "math" || domain == "torch")
    return fmt::format("{}.{}", domain, node.op.view());
  if (domain == "higher_order") return fmt::format("torch.ops.higher_order.{}", node.op.view());
  ensure(domain != "tonnx", "a program is of the dialect of torch.export");
  return fmt::format("torch.ops.{}.{}.{}", domain, node.op.view(),
                     node.overload.empty() ? "default" : node.overload.view());
}

/// Operators on plain numbers, whose arguments have no names.
bool is_number_op(const Node& node) {
  const std::string_view domain = node.domain.view();
  return domain == "_operator" || domain == "math" || domain == "torch";
}

}  // namespace

const Node* find_list(const Value* value) {
  const Node* node = value->producer;
  return node && node->domain == "tonnx" && node->op == "list" ? node : nullptr;
}

std::vector<const Value*> flat_outputs(const Graph& graph) {
  std::vector<const Value*> all;
  for (const Value* output : graph.outputs()) {
    if (const Node* list = find_list(output)) {
      all.insert(all.end(), list->inputs().begin(), list->inputs().end());
    } else {
      all.push_back(output);
    }
  }
  return all;
}

void JsonWriter::number(double value) {
  if (std::isnan(value)) return text("NaN");
  if (std::isinf(value)) return text(value < 0 ? "-Infinity" : "Infinity");
  json_.Double(value);
}

GraphWriter::GraphWriter(JsonWriter& json, SizeNames& sizes, SampleSizes hints)
    : json_(json), sizes_(sizes), hints_(std::move(hints)) {
  // what the code that torch.fx makes of the graph uses itself
  for (const char* name :
       {"inf",   "nan", "device", "torch", "math",    "operator", "fx_pytree", "pytree", "NoneType", "list",
        "tuple", "set", "dict",   "str",   "getattr", "slice",    "self",      "type",   "abs",      "round"})
    taken_.reserve(name);
}

const std::string& GraphWriter::give_name(const Value* value, std::string_view hint) {
  std::string name = python::identifier(hint);
  return names_[value] = taken_.add(name.empty() ? "value" : name);
}

void GraphWriter::name_values(const Graph& graph) {
  for (const Node& node : graph) {
    for (const Value* output : node.outputs()) {
      if (output != nullptr) give_name(output, output->name);
    }
    for (const GraphPtr& inner : subgraphs_of(node)) {
      for (const Value* input : inner->inputs()) give_name(input, input->name);
      name_values(*inner);
    }
  }
}

void GraphWriter::write_size(const Dim& dim) {
  if (const auto number = dim.constant()) return json_.variant("as_int", [&] { json_.number(*number); });
  json_.variant("as_expr", [&] {
    json_.begin_object();
    json_.entry("expr_str", sizes_.text(dim));
    json_.key("hint");
    if (const auto hint = value_of(dim, hints_)) {
      json_.variant("as_int", [&] { json_.number(*hint); });
    } else {
      json_.null();
    }
    json_.end_object();
  });
}

void GraphWriter::write_tensor_meta(DType dtype, const Shape& shape, bool requires_grad) {
  json_.begin_object();
  json_.key("dtype");
  json_.number(int64_t{pt2_number_of(widened(dtype))});
  json_.list("sizes", [&] {
    for (const Dim& dim : shape) write_size(dim);
  });
  json_.key("requires_grad");
  json_.flag(requires_grad);
  json_.object("device", [&] {
    json_.entry("type", "cpu");
    json_.key("index");
    json_.null();
  });
  json_.list("strides", [&] {
    for (const Dim& dim : contiguous_strides(shape)) write_size(dim);
  });
  json_.key("storage_offset");
  write_size(0);
  json_.key("layout");
  json_.number(kStrided);
  json_.end_object();
}

void GraphWriter::write_argument(const Value* value) {
  if (value == nullptr) return json_.variant("as_none", [&] { json_.flag(true); });
  const std::string_view kind = variant_for(value->type);
  json_.variant(kind, [&] {
    json_.begin_object();
    json_.entry(kind == "as_tensor" ? "name" : "as_name", name_of(value));
    json_.end_object();
  });
}

void GraphWriter::write_list(const Node& node, const AttrList& list, std::string_view type) {
  const auto operand = [&](const AttrValue& item) -> const Value* {
    const auto* at = item.get<Operand>();
    return at ? node.input(at->index) : nullptr;
  };
  if (type == "Tensor") {
    bool has_none = false;
    for (const AttrValue& item : list) has_none = has_none || item.is_none();
    return json_.variant(has_none ? "as_optional_tensors" : "as_tensors", [&] {
      json_.begin_list();
      for (const AttrValue& item : list) {
        if (has_none) {
          write_argument(operand(item));
        } else {
          json_.begin_object();
          json_.entry("name", name_of(operand(item)));
          json_.end_object();
        }
      }
      json_.end_list();
    });
  }
  const bool is_float = type == "float" || type == "Scalar";
  json_.variant(is_float ? "as_sym_floats" : "as_sym_ints", [&] {
    json_.begin_list();
    for (const AttrValue& item : list) {
      if (const Value* value = operand(item)) {
        json_.variant("as_name", [&] { json_.text(name_of(value)); });
      } else if (const auto* i = item.get<int64_t>()) {
        json_.variant(is_float ? "as_float" : "as_int", [&] { json_.number(*i); });
      } else if (const auto* f = item.get<double>()) {
        json_.variant("as_float", [&] { json_.number(*f); });
      } else {
        fail_unsupported("a list holds what no list of a .pt2 file does");
      }
    }
    json_.end_list();
  });
}

/// An argument of a node, by what its schema says of it.
void GraphWriter::write_constant(const Node& node, const AttrValue& value, std::string_view type, bool is_list) {
  const auto plain = [&](std::string_view kind, auto number) { json_.variant(kind, [&] { json_.number(number); }); };
  const auto numbers = [&](std::string_view kind, const auto& all) {
    json_.variant(kind, [&] {
      json_.begin_list();
      for (const auto number : all) json_.number(number);
      json_.end_list();
    });
  };
  if (const auto* at = value.get<Operand>()) {
    const Value* operand = node.input(at->index);
    if (is_list && is_number_kind(operand->type.kind)) return write_list(node, {value}, type);
    return write_argument(operand);
  }
  if (value.is_none()) return write_argument(nullptr);
  if (const auto* b = value.get<bool>()) return json_.variant("as_bool", [&] { json_.flag(*b); });
  if (const auto* s = value.get<std::string>()) {
    if (type == "MemoryFormat") return plain("as_memory_format", memory_format(*s));
    return json_.variant("as_string", [&] { json_.text(*s); });
  }
  if (const auto* d = value.get<DType>()) return plain("as_scalar_type", int64_t{pt2_number_of(widened(*d))});
  if (const auto* i = value.get<int64_t>()) {
    if (type == "bool") return json_.variant("as_bool", [&] { json_.flag(*i != 0); });
    if (type == "float" && is_list) return numbers("as_floats", std::vector{static_cast<double>(*i)});
    if (type == "float") return plain("as_float", static_cast<double>(*i));
    if (is_list) return numbers("as_ints", std::vector{*i});
    return plain("as_int", *i);
  }
  if (const auto* f = value.get<double>()) return plain("as_float", *f);
  if (const auto* ints = value.get<std::vector<int64_t>>()) {
    if (type == "float") return numbers("as_floats", std::vector<double>(ints->begin(), ints->end()));
    if (type != "bool") return numbers("as_ints", *ints);
    return json_.variant("as_bools", [&] {
      json_.begin_list();
      for (const int64_t i : *ints) json_.flag(i != 0);
      json_.end_list();
    });
  }
  if (const auto* floats = value.get<std::vector<double>>()) {
    if (is_list) return numbers("as_floats", *floats);
    return json_.variant("as_complex", [&] {  // a complex number, by its two parts
      json_.begin_object();
      json_.key("real");
      json_.number((*floats)[0]);
      json_.key("imag");
      json_.number((*floats)[1]);
      json_.end_object();
    });
  }
  const auto* list = value.get<AttrList>();
  if (list == nullptr) fail_unsupported("an argument of {} has no form in a .pt2 file", node.op.view());
  if (list->empty() && type != "Tensor") return numbers("as_ints", std::vector<int64_t>());
  write_list(node, *list, type);
}

void GraphWriter::write_arguments(const Node& node) {
  const auto argument = [&](std::string_view name, int64_t kind, auto&& fill) {
    json_.begin_object();
    json_.entry("name", name);
    json_.key("arg");
    fill();
    json_.key("kind");
    json_.number(kind);
    json_.end_object();
  };
  const ParsedSignature& signature = get_aten_op(node).signature;
  bool gap = false;
  bool takes_tensor = false, has_device = false;
  for (const Param& param : signature.inputs) {
    takes_tensor = takes_tensor || param.type == "Tensor";
    has_device = has_device || param.name == "device";
    const Attribute* given = node.find_attribute(param.name);
    if (given == nullptr || param.type == "Generator") {
      gap = true;
      if (param.name == "device" && !takes_tensor) {
        argument("device", kKeyword, [&] {
          json_.variant("as_device", [&] {
            json_.begin_object();
            json_.entry("type", "cpu");
            json_.key("index");
            json_.null();
            json_.end_object();
          });
        });
      }
      continue;
    }
    const bool is_keyword = (gap || param.keyword_only) && !is_number_op(node);
    argument(param.name, is_keyword ? kKeyword : kPositional,
             [&] { write_constant(node, given->value, param.type, param.is_list); });
  }
}

void GraphWriter::write_outputs(const Node& node) {
  const auto name_at = [&](size_t i) -> const std::string& {
    const Value* output = node.output(i);
    if (output != nullptr) return name_of(output);
    auto& names = unused_[&node];
    while (names.size() <= i) names.push_back(taken_.add("unused"));
    return names[i];
  };
  const auto tensor = [&](size_t i) {
    json_.begin_object();
    json_.entry("name", name_at(i));
    json_.end_object();
  };
  const bool is_hop = node.domain == "higher_order";
  const ParsedSignature* signature = is_hop ? nullptr : &get_aten_op(node).signature;
  if (signature != nullptr && signature->outputs.size() == 1 && signature->outputs[0].is_list &&
      signature->outputs[0].type == "Tensor") {
    return json_.variant("as_tensors", [&] {
      json_.begin_list();
      for (size_t i = 0; i < node.outputs().size(); ++i) tensor(i);
      json_.end_list();
    });
  }
  const size_t count = is_hop ? node.outputs().size() : signature->outputs.size();
  for (size_t i = 0; i < count; ++i) {
    const Value* output = node.output(i);
    if (output != nullptr && is_number_kind(output->type.kind)) {
      write_argument(output);
    } else {
      json_.variant("as_tensor", [&] { tensor(i); });
    }
  }
}

void GraphWriter::write_hop(const Node& node) {
  for (const Attribute& attribute : node.attributes) {
    json_.begin_object();
    json_.entry("name", "");
    json_.key("arg");
    if (const auto* inner = attribute.value.get<GraphPtr>()) {
      json_.variant("as_graph", [&] {
        json_.begin_object();
        json_.entry("name", taken_.add(attribute.name));
        json_.key("graph");
        const std::vector<const Value*> inputs((*inner)->inputs().begin(), (*inner)->inputs().end());
        write_graph(**inner, inputs, attribute.name == "cond_fn");
        json_.end_object();
      });
    } else {
      write_constant(node, attribute.value, "Tensor", attribute.value.get<AttrList>() != nullptr);
    }
    json_.key("kind");
    json_.number(kPositional);
    json_.end_object();
  }
}

void GraphWriter::write_node(const Node& node) {
  const bool is_hop = node.domain == "higher_order";
  json_.begin_object();
  json_.entry("target", target_of(node));
  json_.list("inputs", [&] {
    if (is_hop) {
      write_hop(node);
    } else {
      write_arguments(node);
    }
  });
  json_.list("outputs", [&] { write_outputs(node); });
  json_.object("metadata", [&] {
    for (const auto& [key, value] : node.metadata) json_.entry(key, value);
  });
  if (is_hop) {
    json_.key("is_hop_single_tensor_return");
    json_.flag(false);
  }
  json_.end_object();
}

void GraphWriter::write_values(const Graph& graph, const std::vector<const Value*>& inputs) {
  const auto for_each = [&](auto&& visit) {
    for (const Value* input : inputs) visit(*input);
    for (const Node& node : graph) {
      for (const Value* output : node.outputs()) {
        if (output != nullptr && find_list(output) == nullptr) visit(*output);
      }
    }
  };
  json_.object("tensor_values", [&] {
    for_each([&](const Value& value) {
      if (is_number_kind(value.type.kind)) return;
      json_.key(name_of(&value));
      write_tensor_meta(value.type.dtype == DType::Undefined ? DType::Float32 : value.type.dtype,
                        value.type.shape.value_or(Shape()));
    });
    for (const Node& node : graph) {
      const auto unused = unused_.find(&node);
      if (unused == unused_.end()) continue;
      for (const std::string& name : unused->second) {
        json_.key(name);
        write_tensor_meta(DType::Float32, {});
      }
    }
  });
  json_.object("sym_int_values", [&] {
    for_each([&](const Value& value) {
      if (value.type.kind != Type::Kind::Int) return;
      json_.key(name_of(&value));
      write_size(value.known_ints.value().at(0));
    });
  });
  const auto expressions = [&](std::string_view key, Type::Kind kind, auto&& text) {
    json_.object(key, [&] {
      for_each([&](const Value& value) {
        if (value.type.kind != kind) return;
        json_.key(name_of(&value));
        json_.variant("as_expr", [&] {
          json_.begin_object();
          json_.entry("expr_str", text(value));
          json_.key("hint");
          json_.null();
          json_.end_object();
        });
      });
    });
  };
  expressions("sym_float_values", Type::Kind::Float, [&](const Value& value) { return float_text(value); });
  expressions("sym_bool_values", Type::Kind::Bool, [&](const Value& value) { return bool_text(value); });
}

/// An argument that is a number, as an expression.
std::string GraphWriter::number_text(const Node& node, std::string_view argument) {
  const Attribute* given = node.find_attribute(argument);
  if (given == nullptr) return "Integer(0)";
  if (const auto* i = given->value.get<int64_t>()) return fmt::format("Integer({})", *i);
  if (const auto* f = given->value.get<double>()) return fmt::format("Float('{}', precision=53)", *f);
  const auto* at = given->value.get<Operand>();
  const Value* value = at ? node.input(at->index) : nullptr;
  if (value == nullptr) return "Integer(0)";
  if (value->type.kind == Type::Kind::Float) return float_text(*value);
  if (value->type.kind == Type::Kind::Bool) return bool_text(*value);
  return sizes_.text(value->known_ints.value().at(0));
}

std::string GraphWriter::float_text(const Value& value) {
  if (const auto known = float_texts_.find(&value); known != float_texts_.end()) return known->second;
  const Node* node = value.producer;
  std::string text;
  if (node != nullptr && is_number_op(*node) && node->find_attribute("b") != nullptr) {
    const std::string a = number_text(*node, "a"), b = number_text(*node, "b");
    const std::string_view op = node->op.view();
    const auto is_int = [&](std::string_view argument) {
      const Attribute* given = node->find_attribute(argument);
      const auto* at = given->value.get<Operand>();
      return given->value.get<int64_t>() != nullptr ||
             (at != nullptr && node->input(at->index)->type.kind == Type::Kind::Int);
    };
    if (op == "truediv")
      text = fmt::format("{}({}, {})", is_int("a") && is_int("b") ? "IntTrueDiv" : "FloatTrueDiv", a, b);
    if (op == "mul") text = fmt::format("Mul({}, {})", a, b);
    if (op == "add") text = fmt::format("Add({}, {})", a, b);
    if (op == "sub") text = fmt::format("Add({}, Mul(Integer(-1), {}))", a, b);
    if (op == "sym_max") text = fmt::format("Max({}, {})", a, b);
    if (op == "sym_min") text = fmt::format("Min({}, {})", a, b);
  }
  constexpr size_t kLongest = 2000;
  if (text.empty() || text.size() > kLongest) text = fmt::format("Symbol('zuf{}')", unbacked_floats_++);
  return float_texts_[&value] = text;
}

std::string GraphWriter::bool_text(const Value& value) {
  struct Relation {
    std::string_view op, sympy;
  };
  constexpr Relation kRelations[] = {
      {"eq", "Equality"},          {"ne", "Unequality"},  {"lt", "StrictLessThan"}, {"le", "LessThan"},
      {"gt", "StrictGreaterThan"}, {"ge", "GreaterThan"}, {"and_", "And"},          {"or_", "Or"}};
  const Node* node = value.producer;
  if (node != nullptr) {
    for (const Relation& relation : kRelations) {
      if (relation.op == node->op.view() && node->domain == "_operator")
        return fmt::format("{}({}, {})", relation.sympy, number_text(*node, "a"), number_text(*node, "b"));
    }
    if (node->op == "sym_not") return fmt::format("Not({})", number_text(*node, "a"));
  }
  if (value.known_ints) return fmt::format("Equality({}, Integer(1))", sizes_.text(value.known_ints->at(0)));
  fail_unsupported("a condition on numbers has no form in a .pt2 file");
}

void GraphWriter::write_graph(const Graph& graph, const std::vector<const Value*>& inputs, bool is_single_return) {
  if (graph.owner == nullptr) name_values(graph);
  json_.begin_object();
  json_.list("inputs", [&] {
    for (const Value* input : inputs) write_argument(input);
  });
  json_.list("outputs", [&] {
    for (const Value* output : flat_outputs(graph)) write_argument(output);
  });
  json_.list("nodes", [&] {
    for (const Node& node : graph) {
      if (node.output(0) != nullptr && find_list(node.output(0)) != nullptr) continue;
      in_context(
          [&] { return fmt::format("writing node '{}' ({}::{})", node.name, node.domain.view(), node.op.view()); },
          [&] { write_node(node); });
    }
  });
  write_values(graph, inputs);
  json_.object("custom_obj_values", [] {});
  json_.key("is_single_tensor_return");
  json_.flag(is_single_return);
  json_.end_object();
}

}  // namespace tonnx::pt2
