// vetted_program.cpp - copies a program field by field, as its schema says; what the schema does not have is left out.
#include "formats/pt2/vetted_program.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/identifier.h"
#include "base/join.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "formats/pt2/expression_text.h"
#include "formats/pt2/graph_writer.h"
#include "formats/pt2/json_access.h"
#include "formats/pt2/target.h"
#include "ops/frame/op_def.h"

namespace tonnx::pt2 {
namespace {

bool is_name_for_code(std::string_view name) { return is_identifier(name) && !name.starts_with("__"); }

/// A name that torch.fx writes into code.
std::string_view identifier_of(const Json& json, const char* what) {
  const std::string_view name = text_of(json, what);
  require(is_name_for_code(name), "{} is '{}', which is no name for code", what, name);
  return name;
}

std::string_view path_of(const Json& json) { return vetted_path(text_of(json, "the name of a weight")); }

/// Operators of PyTorch itself compute, but for a few; those of other libraries must be known, or allowed.
void require_operator(std::string_view target, const AllowedOps& allowed) {
  Node node;
  set_target(node, target, Origin::File);
  const std::string_view library = node.domain.view(), op = node.op.view();
  const bool is_fine = find_aten_op(node) != nullptr || (library == "aten" && !does_more_than_compute(library, op));
  if (!is_fine && !allowed.contains(node))
    fail_unsupported("the operator '{}' is none that is run out of a file", target);
}

/// What PyTorch looks up, part by part, in its own modules: `torch.ops.aten.add.Tensor`, `_operator.mul`, `math.ceil`.
std::string_view vetted_target(const Json& node, const AllowedOps& allowed) {
  constexpr std::string_view kNumbers[] = {
      "_operator.add",  "_operator.sub", "_operator.mul",    "_operator.floordiv", "_operator.truediv", "_operator.mod",
      "_operator.pow",  "_operator.neg", "_operator.pos",    "_operator.abs",      "_operator.eq",      "_operator.ne",
      "_operator.lt",   "_operator.le",  "_operator.gt",     "_operator.ge",       "_operator.and_",    "_operator.or_",
      "_operator.not_", "_operator.xor", "_operator.lshift", "_operator.rshift",   "_operator.getitem", "math.ceil",
      "math.floor",     "math.trunc",    "torch.sym_int",    "torch.sym_float",    "torch.sym_max",     "torch.sym_min",
      "torch.sym_not",  "torch.sym_ite", "torch.sym_sum",    "torch.sym_sqrt",     "torch._sym_sqrt"};
  constexpr std::string_view kWithGraphs[] = {
      "cond", "while_loop", "scan", "map_impl", "wrap_with_set_grad_enabled", "wrap_with_autocast"};
  const std::string_view target = text_of(get(node, "target"), "the target of a node");
  const auto is_one_of = [](const auto& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (is_one_of(kNumbers, target)) return target;
  constexpr std::string_view kOps = "torch.ops.", kGraphs = "torch.ops.higher_order.";
  if (target.starts_with(kGraphs) && is_one_of(kWithGraphs, target.substr(kGraphs.size()))) return target;
  const bool is_op =
      target.starts_with(kOps) && !target.starts_with(kGraphs) && std::count(target.begin(), target.end(), '.') == 4;
  if (!is_op) fail_unsupported("the operator '{}' is none that is run out of a file", target);
  require_operator(target, allowed);
  return target;
}

class Copy {
 public:
  Copy(const Json& program, const AllowedOps& allowed) : program_(program), allowed_(allowed) {}

  std::string text() {
    const Json& module = get(program_, "graph_module");
    json_.begin_object();
    json_.object("graph_module", [&] {
      json_.key("graph");
      copy_graph(get(module, "graph"));
      copy_signature(get(module, "signature"));
      copy_calls(module);
      json_.object("metadata", [] {});
      json_.object("treespec_namedtuple_fields", [] {});
    });
    json_.object("opset_version", [&] { copy_int(get(program_, "opset_version"), "aten"); });
    copy_ranges();
    json_.object("schema_version", [&] {
      copy_int(get(program_, "schema_version"), "major");
      copy_int(get(program_, "schema_version"), "minor");
    });
    json_.list("verifiers", [&] { copy_verifiers(); });
    json_.entry("torch_version", "");
    json_.list("guards_code", [&] { copy_guards(); });
    json_.end_object();
    return std::string(json_.result());
  }

 private:
  void put(std::string_view key, const auto& body) {
    json_.key(key);
    body();
  }
  void copy_int(const Json& object, const char* key) {
    json_.key(key);
    json_.number(int_of(get(object, key), key));
  }
  void copy_flag(const Json& json) {
    require(json.IsBool(), "an argument is not true or false");
    json_.flag(json.GetBool());
  }
  void copy_list(const Json& json, const auto& each) {
    require(json.IsArray(), "an argument is not a list");
    json_.begin_list();
    for (const Json& item : json.GetArray()) each(item);
    json_.end_list();
  }
  /// A field that is a list of arguments or of their like.
  void copy_list(const Json& object, const char* key, const auto& each) {
    json_.key(key);
    copy_list(get_list(object, key), each);
  }
  /// `{"name": ...}`.
  void copy_named(const Json& json) {
    json_.begin_object();
    json_.entry("name", identifier_of(get(json, "name"), "the name of a value"));
    json_.end_object();
  }

  void copy_argument(const Json& json);
  void copy_number(const Json& json);
  void copy_device(const Json& json);
  void copy_size(const Json& json);
  void copy_meta(const Json& json);
  void copy_graph(const Json& json);
  void copy_values(const Json& graph, const char* key, const auto& each);
  void copy_node(const Json& json);
  void copy_signature(const Json& json);
  void copy_input(std::string_view kind, const Json& spec);
  void copy_output(std::string_view kind, const Json& spec);
  void copy_calls(const Json& module);
  void copy_ranges();
  void copy_verifiers();
  void copy_guards();

  const Json& program_;
  const AllowedOps& allowed_;
  bool keeps_guards_ = false;  // they name the inputs by their places in the tree
  JsonWriter json_;
};

/// A symbolic number: a name, or what it turned out to be.
void Copy::copy_number(const Json& json) {
  const auto [kind, value] = variant_of(json);
  json_.begin_object();
  json_.key(kind);
  if (kind == "as_name") {
    json_.text(identifier_of(*value, "the name of a value"));
  } else if (kind == "as_int") {
    json_.number(int_of(*value, "an argument"));
  } else if (kind == "as_float") {
    json_.number(float_of(*value));
  } else {
    require(kind == "as_bool", "a symbolic argument is '{}'", kind);
    copy_flag(*value);
  }
  json_.end_object();
}

void Copy::copy_device(const Json& json) {
  const std::string_view type = text_of(get(json, "type"), "a device");
  require(is_name_for_code(type), "'{}' is no device", type);
  json_.begin_object();
  json_.entry("type", type);
  json_.key("index");
  if (const Json* index = find(json, "index")) {
    json_.number(int_of(*index, "the number of a device"));
  } else {
    json_.null();
  }
  json_.end_object();
}

void Copy::copy_argument(const Json& json) {
  const auto [kind, value] = variant_of(json);
  const Json& v = *value;
  const auto named = [&](const Json& item) { copy_named(item); };
  const auto integer = [&](const Json& item) { json_.number(int_of(item, "an argument")); };
  const auto real = [&](const Json& item) { json_.number(float_of(item)); };
  const auto word = [&](const Json& item) { json_.text(text_of(item, "an argument")); };
  const auto flag = [&](const Json& item) { copy_flag(item); };
  const auto number = [&](const Json& item) { copy_number(item); };
  const auto lists_of = [&](const auto& each) { copy_list(v, [&](const Json& item) { copy_list(item, each); }); };
  json_.begin_object();
  json_.key(kind);
  if (kind == "as_none") {
    json_.flag(true);
  } else if (kind == "as_tensor") {
    copy_named(v);
  } else if (kind == "as_tensors") {
    copy_list(v, named);
  } else if (kind == "as_optional_tensor") {
    copy_argument(v);
  } else if (kind == "as_optional_tensors") {
    copy_list(v, [&](const Json& item) { copy_argument(item); });
  } else if (kind == "as_nested_tensors") {
    lists_of(named);
  } else if (kind == "as_int" || kind == "as_scalar_type" || kind == "as_memory_format" || kind == "as_layout") {
    integer(v);
  } else if (kind == "as_ints") {
    copy_list(v, integer);
  } else if (kind == "as_int_lists") {
    lists_of(integer);
  } else if (kind == "as_float") {
    real(v);
  } else if (kind == "as_floats") {
    copy_list(v, real);
  } else if (kind == "as_float_lists") {
    lists_of(real);
  } else if (kind == "as_string") {
    word(v);
  } else if (kind == "as_strings") {
    copy_list(v, word);
  } else if (kind == "as_bool") {
    flag(v);
  } else if (kind == "as_bools") {
    copy_list(v, flag);
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    copy_number(v);
  } else if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") {
    copy_list(v, number);
  } else if (kind == "as_device") {
    copy_device(v);
  } else if (kind == "as_complex") {
    json_.begin_object();
    for (const char* const part : {"real", "imag"}) put(part, [&] { real(get(v, part)); });
    json_.end_object();
  } else if (kind == "as_graph") {
    json_.begin_object();
    json_.entry("name", identifier_of(get(v, "name"), "the name of a graph"));
    put("graph", [&] { copy_graph(get(v, "graph")); });
    json_.end_object();
  } else {
    fail_unsupported("an argument is of the kind '{}', which is not run out of a file", kind);
  }
  json_.end_object();
}

/// A size, or a number or condition that is written in the same way.
void Copy::copy_size(const Json& json) {
  const auto [kind, value] = variant_of(json);
  if (kind != "as_expr") return copy_number(json);
  json_.begin_object();
  json_.object("as_expr", [&] {
    json_.entry("expr_str", vetted_expression(text_of(get(*value, "expr_str"), "a size")));
    json_.key("hint");
    if (const Json* hint = find(*value, "hint")) {
      copy_number(*hint);
    } else {
      json_.null();
    }
  });
  json_.end_object();
}

void Copy::copy_meta(const Json& json) {
  const auto size = [&](const Json& item) { copy_size(item); };
  json_.begin_object();
  copy_int(json, "dtype");
  copy_list(json, "sizes", size);
  put("requires_grad", [&] { copy_flag(get(json, "requires_grad")); });
  put("device", [&] { copy_device(get(json, "device")); });
  copy_list(json, "strides", size);
  put("storage_offset", [&] { copy_size(get(json, "storage_offset")); });
  copy_int(json, "layout");
  json_.end_object();
}

void Copy::copy_values(const Json& graph, const char* key, const auto& each) {
  std::unordered_set<std::string_view> seen;
  json_.object(key, [&] {
    const Json* values = find(graph, key);
    if (values == nullptr) return;
    require(values->IsObject(), "'{}' is not an object", key);
    for (const auto& member : values->GetObject()) {
      const std::string_view name = identifier_of(member.name, "the name of a value");
      if (!seen.insert(name).second) continue;  // the first counts, as for the reader
      json_.key(name);
      each(member.value);
    }
  });
}

void Copy::copy_graph(const Json& json) {
  const auto argument = [&](const Json& item) { copy_argument(item); };
  const auto size = [&](const Json& item) { copy_size(item); };
  json_.begin_object();
  copy_list(json, "inputs", argument);
  copy_list(json, "outputs", argument);
  copy_list(json, "nodes", [&](const Json& node) {
    in_context([&] { return "copying the node " + std::string(text_of(get(node, "target"), "the target of a node")); },
               [&] { copy_node(node); });
  });
  copy_values(json, "tensor_values", [&](const Json& meta) { copy_meta(meta); });
  copy_values(json, "sym_int_values", size);
  copy_values(json, "sym_bool_values", size);
  copy_values(json, "sym_float_values", size);
  if (const Json* objects = find(json, "custom_obj_values"); objects && objects->IsObject() && !objects->ObjectEmpty())
    fail_unsupported("the program has objects of classes of its own");
  json_.object("custom_obj_values", [] {});
  const Json* single = find(json, "is_single_tensor_return");
  put("is_single_tensor_return", [&] { json_.flag(single != nullptr && single->IsTrue()); });
  json_.end_object();
}

void Copy::copy_node(const Json& json) {
  json_.begin_object();
  json_.entry("target", vetted_target(json, allowed_));
  copy_list(json, "inputs", [&](const Json& input) {
    const std::string_view name = text_of(get(input, "name"), "the name of an argument");
    require(name.empty() || is_name_for_code(name), "the argument '{}' has no name for code", name);
    json_.begin_object();
    json_.entry("name", name);
    put("arg", [&] { copy_argument(get(input, "arg")); });
    if (find(input, "kind") != nullptr) copy_int(input, "kind");
    json_.end_object();
  });
  copy_list(json, "outputs", [&](const Json& output) { copy_argument(output); });
  json_.object("metadata", [&] {
    // where the node lies among the modules: PyTorch only cuts it into its parts
    const Json* metadata = find(json, "metadata");
    const Json* stack = metadata ? find(*metadata, "nn_module_stack") : nullptr;
    if (stack != nullptr) json_.entry("nn_module_stack", text_of(*stack, "metadata"));
  });
  if (const Json* single = find(json, "is_hop_single_tensor_return"))
    put("is_hop_single_tensor_return", [&] { copy_flag(*single); });
  if (const Json* name = find(json, "name")) json_.entry("name", identifier_of(*name, "the name of a node"));
  json_.end_object();
}

void Copy::copy_input(std::string_view kind, const Json& spec) {
  const auto weight = [&](const char* key) {
    put("arg", [&] { copy_named(get(spec, "arg")); });
    json_.entry(key, path_of(get(spec, key)));
  };
  if (kind == "user_input") return put("arg", [&] { copy_argument(get(spec, "arg")); });
  if (kind == "parameter") return weight("parameter_name");
  if (kind == "tensor_constant") return weight("tensor_constant_name");
  if (kind == "token") return put("arg", [&] { copy_named(get(spec, "arg")); });
  if (kind == "buffer") {
    weight("buffer_name");
    const Json* persistent = find(spec, "persistent");
    return put("persistent", [&] { json_.flag(persistent == nullptr || !persistent->IsFalse()); });
  }
  if (kind != "constant_input") fail_unsupported("an input of the program is of the kind '{}'", kind);
  const std::string_view name = text_of(get(spec, "name"), "the name of an input");
  require(name.empty() || is_name_for_code(name), "the input '{}' has no name for code", name);
  json_.entry("name", name);
  const std::string_view value = variant_of(get(spec, "value")).first;
  constexpr std::string_view kValues[] = {"as_none", "as_int", "as_float", "as_string", "as_bool"};
  require(std::find(std::begin(kValues), std::end(kValues), value) != std::end(kValues), "the input '{}' is '{}'", name,
          value);
  put("value", [&] { copy_argument(get(spec, "value")); });
}

void Copy::copy_output(std::string_view kind, const Json& spec) {
  struct Kind {
    std::string_view name;
    const char* target;  // the field that says what is written
  };
  constexpr Kind kKinds[] = {{"loss_output", nullptr},
                             {"token", nullptr},
                             {"buffer_mutation", "buffer_name"},
                             {"parameter_mutation", "parameter_name"},
                             {"gradient_to_parameter", "parameter_name"},
                             {"gradient_to_user_input", "user_input_name"},
                             {"user_input_mutation", "user_input_name"}};
  if (kind == "user_output") return put("arg", [&] { copy_argument(get(spec, "arg")); });
  const auto found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& one) { return one.name == kind; });
  if (found == std::end(kKinds)) fail_unsupported("an output of the program is of the kind '{}'", kind);
  put("arg", [&] { copy_named(get(spec, "arg")); });
  if (found->target != nullptr) json_.entry(found->target, path_of(get(spec, found->target)));
}

void Copy::copy_signature(const Json& json) {
  const auto copy_specs = [&](const char* key, auto copy) {
    copy_list(json, key, [&](const Json& item) {
      const auto [kind, spec] = variant_of(item);
      json_.begin_object();
      json_.object(kind, [&, kind = kind, spec = spec] { (this->*copy)(kind, *spec); });
      json_.end_object();
    });
  };
  json_.object("signature", [&] {
    copy_specs("input_specs", &Copy::copy_input);
    copy_specs("output_specs", &Copy::copy_output);
  });
}

/// The trees of inputs and outputs. PyTorch looks up the classes of their nodes, and makes what is in their contexts:
/// lists, tuples and dicts stay what they are, and a node of any other class becomes a tuple, for only the order of the
/// leaves counts.
class Trees {
 public:
  bool are_plain = true;  // no node became another

  std::string copy(const Json& node) {
    const Json* type = find(node, "type");
    if (type == nullptr) return R"({"type": null, "context": null, "children_spec": []})";
    const std::string_view name = text_of(*type, "a tree spec");
    if (name == "builtins.dict" || name == "collections.OrderedDict") {
      if (const auto keys = find_keys(node)) return print(name, fmt::format("[{}]", joined(*keys, ", ")), node);
    } else if (name == "builtins.list" || name == "builtins.tuple") {
      return print(name, "null", node);
    }
    are_plain = false;
    return print("builtins.tuple", "null", node);
  }

  /// Arguments by name: the names stand in code.
  std::string copy_keywords(const Json& node) {
    const auto keys = find_keys(node);
    require(keys.has_value(), "the arguments by name have no names");
    return print("builtins.dict", fmt::format("[{}]", joined(*keys, ", ")), node);
  }

  std::string print(std::string_view type, std::string_view context, const Json& node) {
    std::vector<std::string> children;
    for (const Json& child : get_list(node, "children_spec").GetArray()) children.push_back(copy(child));
    return fmt::format(R"({{"type": "{}", "context": "{}", "children_spec": [{}]}})", type, context,
                       joined(children, ", "));
  }

 private:
  /// Each in quotes, as it stands in a text within a text; nothing where one is no name.
  static std::optional<std::vector<std::string>> find_keys(const Json& node) {
    const rapidjson::Document keys = parse_json(text_of(get(node, "context"), "a tree spec"), "a tree spec");
    if (!keys.IsArray() || keys.Size() != get_list(node, "children_spec").Size()) return std::nullopt;
    std::vector<std::string> result;
    for (const Json& key : keys.GetArray()) {
      if (!key.IsString() || !is_name_for_code(text_of(key, "a key"))) return std::nullopt;
      result.push_back(fmt::format(R"(\"{}\")", text_of(key, "a key")));
    }
    return result;
  }
};

/// The call of the whole program; those of its modules are only needed to take it apart.
void Copy::copy_calls(const Json& module) {
  const Json& calls = get_list(module, "module_call_graph");
  require(!calls.Empty(), "the program does not say how it is called");
  const Json& signature = get(calls[0], "signature");
  const auto tree_of = [&](const char* key) {
    rapidjson::Document spec = parse_json(text_of(get(signature, key), "a tree spec"), "a tree spec");
    require(spec.IsArray() && spec.Size() == 2, "a tree spec is not a version and a tree");
    return spec;
  };
  const rapidjson::Document in = tree_of("in_spec"), out = tree_of("out_spec");
  const Json& parts = get_list(in[1], "children_spec");
  require(parts.Size() == 2, "the arguments of the program are not those by place and those by name");
  Trees trees;
  const std::string inputs = trees.print("builtins.tuple", "null", parts[0]) + ", " + trees.copy_keywords(parts[1]);
  keeps_guards_ = trees.are_plain;
  json_.list("module_call_graph", [&] {
    json_.begin_object();
    json_.entry("fqn", "");
    json_.object("signature", [&] {
      json_.list("inputs", [] {});
      json_.list("outputs", [] {});
      json_.entry(
          "in_spec",
          fmt::format(R"([1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{}]}}])", inputs));
      json_.entry("out_spec", fmt::format("[1, {}]", trees.copy(out[1])));
      if (find(signature, "forward_arg_names") != nullptr) {
        copy_list(signature, "forward_arg_names",
                  [&](const Json& name) { json_.text(identifier_of(name, "the name of an argument")); });
      }
    });
    json_.end_object();
  });
}

/// `s0`, and `2*s0 + 1` too: PyTorch looks such a text up, but for those that begin as a number of its own.
bool is_range_name(std::string_view name) {
  constexpr std::string_view kCharacters = "+-*/%(), .";
  const auto is_part = [&](char c) { return is_word_char(c) || kCharacters.find(c) != std::string_view::npos; };
  if (is_symbol_name(name)) return true;
  return !name.empty() && name[0] != 'u' && name[0] != 'z' && std::all_of(name.begin(), name.end(), is_part);
}

void Copy::copy_ranges() {
  std::unordered_set<std::string_view> seen;
  json_.object("range_constraints", [&] {
    const Json& ranges = get(program_, "range_constraints");
    require(ranges.IsObject(), "the ranges of sizes are not an object");
    for (const auto& member : ranges.GetObject()) {
      const std::string_view name = text_of(member.name, "a size");
      require(is_range_name(name), "'{}' is no name of a size", name);
      if (!seen.insert(name).second) continue;
      json_.object(name, [&] {
        for (const char* const key : {"min_val", "max_val"}) {
          json_.key(key);
          if (const Json* limit = find(member.value, key)) {
            json_.number(int_of(*limit, "the range of a size"));
          } else {
            json_.null();
          }
        }
      });
    }
  });
}

void Copy::copy_verifiers() {
  const Json* verifiers = find(program_, "verifiers");
  if (verifiers == nullptr || !verifiers->IsArray()) return;
  for (const Json& verifier : verifiers->GetArray()) {
    const std::string_view name = text_of(verifier, "a verifier");
    if (name == "TRAINING" || name == "ATEN") json_.text(name);
  }
}

void Copy::copy_guards() {
  const Json* guards = find(program_, "guards_code");
  if (!keeps_guards_ || guards == nullptr || !guards->IsArray()) return;
  for (const Json& guard : guards->GetArray()) {
    if (const auto text = vetted_guard(text_of(guard, "a guard"))) json_.text(*text);
  }
}

}  // namespace

std::string_view vetted_path(std::string_view name) {
  require(!name.empty() && !name.starts_with("__") && name.find(".__") == name.npos, "'{}' is no name of a weight",
          name);
  for (std::string_view rest = name; !rest.empty();) {
    const size_t length = visible_length(rest);
    const bool is_plain = length > 0 && std::string_view("\"'\\`{}").find(rest[0]) == std::string_view::npos;
    require(is_plain, "the name '{}' of a weight has a character that code could trip over", name);
    rest.remove_prefix(length);
  }
  return name;
}

std::string vetted_program(const rapidjson::Value& program, const AllowedOps& allowed) {
  return Copy(program, allowed).text();
}

}  // namespace tonnx::pt2
