// program.cpp - the JSON of an exported program to a graph of aten nodes.
#include "formats/pt2/program.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/identifier.h"
#include "base/json.h"
#include "formats/pt2/check_program.h"
#include "formats/pt2/dtype.h"
#include "formats/pt2/json_access.h"
#include "formats/pt2/onnx_op.h"
#include "formats/pt2/pt2.h"
#include "formats/pt2/sympy.h"
#include "formats/pt2/target.h"
#include "formats/pt2/tree_names.h"
#include "modules/module_tree.h"
#include "ops/frame/op_def.h"

namespace tonnx {
namespace pt2 {
namespace {

/// The sizes of all graphs of a program; equal texts are parsed once.
class Sizes {
 public:
  Dim parse(const Json& json) {
    const auto [kind, value] = variant_of(json);
    if (kind == "as_int") return int_of(*value, "a size");
    require(kind == "as_expr", "a size is '{}'", kind);
    const std::string_view text = text_of(get(*value, "expr_str"), "a size");
    const auto known = known_.find(text);
    if (known != known_.end()) return known->second;
    const auto parsed = parse_size(text, names_);
    // an expression of another kind: equal where the text is
    const Dim dim = parsed ? *parsed : Dim::symbol("expression" + std::to_string(known_.size()));
    known_.emplace(text, dim);
    return dim;
  }
  /// What symbols are called instead of what the file calls them.
  void rename(std::string_view symbol, std::string_view name) { names_[std::string(symbol)] = name; }

 private:
  std::unordered_map<std::string_view, Dim> known_;
  pt2::SymbolNames names_;
};

Type tensor_type(const Json& meta, Sizes& sizes) {
  Shape shape;
  for (const Json& size : get_list(meta, "sizes").GetArray()) shape.push_back(sizes.parse(size));
  return Type::tensor(dtype_of_pt2(int_of(get(meta, "dtype"), "an element type")), std::move(shape));
}

/// The graph of a program, or one inside a node of it.
class GraphReader {
 public:
  GraphReader(const Json& json, Graph& graph, Sizes& sizes, const Pt2Archive& archive, Origin origin)
      : json_(json), graph_(graph), sizes_(sizes), archive_(archive), origin_(origin) {
    const auto index = [&](const char* key, auto& into) {
      const Json& values = get(json_, key);
      require(values.IsObject(), "'{}' is not an object", key);
      for (const auto& member : values.GetObject())
        into.emplace(std::string_view(member.name.GetString(), member.name.GetStringLength()), &member.value);
    };
    index("tensor_values", tensors_);
    index("sym_int_values", ints_);
  }

  void define(std::string_view name, Value* value) {
    require(values_.emplace(name, value).second, "the value '{}' is defined twice", name);
  }
  Type type_of(std::string_view name) {
    const auto meta = tensors_.find(name);
    require(meta != tensors_.end(), "nothing is said of the tensor '{}'", name);
    return tensor_type(*meta->second, sizes_);
  }

  /// An input that is not a weight; null where it is a fixed number, text or None.
  Value* add_input(const Json& argument, const std::string& hint = "") {
    const auto [kind, value] = variant_of(argument);
    if (kind == "as_tensor") {
      const std::string_view name = text_of(get(*value, "name"), "a name");
      Value* made = graph_.add_input(graph_.unique_name(hint.empty() ? name : std::string_view(hint)), type_of(name));
      define(name, made);
      return made;
    }
    if ((kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") && find(*value, "as_name")) {
      const std::string_view name = text_of(get(*value, "as_name"), "a name");
      Value* made =
          graph_.add_input(graph_.unique_name(hint.empty() ? name : std::string_view(hint)), number_type(kind));
      learn_number(*made, name);
      define(name, made);
      return made;
    }
    if (kind == "as_custom_obj") fail_unsupported("an input is an object of a class of its own");
    return nullptr;
  }

  void add_nodes() {
    for (const Json& node : get_list(json_, "nodes").GetArray()) {
      const std::string_view target = text_of(get(node, "target"), "the target of a node");
      in_context([&] { return fmt::format("reading node '{}'", shown(target)); }, [&] { add_node(node, target); });
    }
  }

  /// The value that an output names; null where it is a number, a text or None.
  Value* find_output(const Json& argument) {
    const auto [kind, value] = variant_of(argument);
    if (kind == "as_tensor") return lookup(*value);
    if (kind.starts_with("as_sym_") && find(*value, "as_name")) return lookup(*value);
    return nullptr;
  }

 private:
  static Type number_type(std::string_view kind) {
    return Type::number(kind.starts_with("as_sym_float")  ? Type::Kind::Float
                        : kind.starts_with("as_sym_bool") ? Type::Kind::Bool
                                                          : Type::Kind::Int);
  }

  void learn_number(Value& value, std::string_view name) {
    const auto size = ints_.find(name);
    if (value.type.kind == Type::Kind::Int && size != ints_.end()) value.known_ints = {sizes_.parse(*size->second)};
  }

  Value* lookup(const Json& json) {
    const Json* name = find(json, "name");
    if (name == nullptr) name = &get(json, "as_name");
    const std::string_view text = text_of(*name, "a name");
    const auto at = values_.find(text);
    require(at != values_.end(), "the value '{}' is used before it is made", text);
    return at->second;
  }

  AttrValue operand(Node& node, const Json& json) {
    const auto index = static_cast<uint32_t>(node.inputs().size());
    node.add_input(lookup(json));
    return Operand{index};
  }

  AttrValue argument(Node& node, const Json& json) {
    const auto [kind, value] = variant_of(json);
    const Json& v = *value;
    const auto list = [&](auto&& each) {
      require(v.IsArray(), "'{}' is not a list", kind);
      AttrList result;
      for (const Json& item : v.GetArray()) result.push_back(each(item));
      return AttrValue(std::move(result));
    };
    const auto numbers = [&]<class T>(std::vector<T> result, auto&& each) {
      require(v.IsArray(), "'{}' is not a list", kind);
      for (const Json& item : v.GetArray()) result.push_back(each(item));
      return AttrValue(std::move(result));
    };
    if (kind == "as_none") return {};
    if (kind == "as_tensor") return operand(node, v);
    if (kind == "as_tensors") return list([&](const Json& item) { return operand(node, item); });
    if (kind == "as_optional_tensor") return variant_of(v).first == "as_none" ? AttrValue() : argument(node, v);
    if (kind == "as_optional_tensors" || kind == "as_nested_tensors") {
      return list([&](const Json& item) {
        if (!item.IsArray()) return argument(node, item);
        AttrList inner;
        for (const Json& one : item.GetArray()) inner.push_back(operand(node, one));
        return AttrValue(std::move(inner));
      });
    }
    const bool is_beyond = kind == "as_int" && v.IsNumber() && !v.IsInt64() && v.GetDouble() >= 0x1p63;
    if (is_beyond && node.domain == Symbol("_operator"))
      return std::numeric_limits<int64_t>::max();  // what no size is larger than
    if (kind == "as_int") return int_of(v, "an argument");
    if (kind == "as_ints")
      return numbers(std::vector<int64_t>(), [](const Json& item) { return int_of(item, "an argument"); });
    if (kind == "as_float") return float_of(v);
    if (kind == "as_floats") return numbers(std::vector<double>(), [](const Json& item) { return float_of(item); });
    if (kind == "as_string" || kind == "as_operator") return std::string(text_of(v, "an argument"));
    if (kind == "as_strings") {
      return numbers(std::vector<std::string>(),
                     [](const Json& item) { return std::string(text_of(item, "an argument")); });
    }
    if (kind == "as_bool") {
      require(v.IsBool(), "an argument is not true or false");
      return v.GetBool();
    }
    if (kind == "as_bools") {
      return list([](const Json& item) {
        require(item.IsBool(), "an argument is not true or false");
        return AttrValue(item.GetBool());
      });
    }
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return symbolic(node, v);
    if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") return symbolic_list(node, v);
    if (kind == "as_scalar_type") return dtype_of_pt2(int_of(v, "an element type"));
    if (kind == "as_memory_format") return memory_format(int_of(v, "a memory format"));
    if (kind == "as_layout") return std::string("strided");
    if (kind == "as_device") {
      const std::string_view device = text_of(get(v, "type"), "a device");
      require(is_plain_name(device), "'{}' is no device", device);
      return std::string(device);
    }
    if (kind == "as_graph") return subgraph(node, v);
    if (kind == "as_complex") return std::vector<double>{float_of(get(v, "real")), float_of(get(v, "imag"))};
    if (kind == "as_int_lists") {
      return list([](const Json& item) {
        require(item.IsArray(), "an argument is not a list of lists");
        std::vector<int64_t> inner;
        for (const Json& one : item.GetArray()) inner.push_back(int_of(one, "an argument"));
        return AttrValue(std::move(inner));
      });
    }
    if (kind == "as_float_lists") {
      return list([](const Json& item) {
        require(item.IsArray(), "an argument is not a list of lists");
        std::vector<double> inner;
        for (const Json& one : item.GetArray()) inner.push_back(float_of(one));
        return AttrValue(std::move(inner));
      });
    }
    if (kind == "as_custom_obj") fail_unsupported("an argument is an object of a class of its own");
    fail_unsupported("an argument of the kind '{}' is not known", kind);
  }

  AttrValue symbolic(Node& node, const Json& json) {
    const auto [kind, value] = variant_of(json);
    if (kind == "as_name") return operand(node, json);
    if (kind == "as_int") return int_of(*value, "an argument");
    if (kind == "as_float") return float_of(*value);
    require(kind == "as_bool" && value->IsBool(), "a symbolic argument is '{}'", kind);
    return value->GetBool();
  }

  AttrValue symbolic_list(Node& node, const Json& json) {
    require(json.IsArray(), "a list of sizes is not a list");
    AttrList result;
    std::vector<int64_t> plain;
    for (const Json& item : json.GetArray()) {
      result.push_back(symbolic(node, item));
      // a size that turned out to be a number is one
      const auto* at = result.back().get<Operand>();
      const Value* value = at ? node.input(at->index) : nullptr;
      if (value != nullptr && value->known_ints && value->known_ints->front().is_constant())
        result.back() = *value->known_ints->front().constant();
      if (const auto* number = result.back().get<int64_t>()) plain.push_back(*number);
    }
    return plain.size() == result.size() ? AttrValue(std::move(plain)) : AttrValue(std::move(result));
  }

  static AttrValue memory_format(int64_t number) {
    switch (number) {
      case 1: return std::string("contiguous_format");
      case 2: return std::string("channels_last");
      case 3: return std::string("channels_last_3d");
      case 4: return std::string("preserve_format");
      default: fail_invalid("the memory format {} is not known", number);
    }
  }

  AttrValue subgraph(Node& node, const Json& json) {
    auto graph = std::make_shared<Graph>();
    graph->owner = &node;
    const Json& body = get(json, "graph");
    GraphReader reader(body, *graph, sizes_, archive_, origin_);
    for (const Json& input : get_list(body, "inputs").GetArray()) {
      require(reader.add_input(input) != nullptr, "an input of a graph inside a node is not a value");
    }
    reader.add_nodes();
    for (const Json& output : get_list(body, "outputs").GetArray()) {
      Value* value = reader.find_output(output);
      if (value == nullptr) fail_unsupported("a graph inside a node gives a fixed number or None");
      graph->add_output(value);
    }
    return GraphPtr(std::move(graph));
  }

  void add_node(const Json& json, std::string_view target);
  void add_outputs(Node& node, const Json& json);
  void add_output(Node& node, const Json& json);
  static void set_metadata(Node& node, const Json& json);

  const Json& json_;
  Graph& graph_;
  Sizes& sizes_;
  const Pt2Archive& archive_;
  Origin origin_;
  std::unordered_map<std::string_view, const Json*> tensors_;
  std::unordered_map<std::string_view, const Json*> ints_;
  std::unordered_map<std::string_view, Value*> values_;
};

/// As the schema has them, whatever the file does: the first operand of a node is what it computes with or writes to.
void put_in_order(const Node& node, std::vector<std::pair<std::string, const Json*>>& arguments) {
  const AtenOpEntry* entry = find_aten_op(node);
  const auto place_of = [&](const std::string& name) {
    // those that write, and other names of operators, have no row of their own
    if (entry == nullptr) return name == "self" ? 0 : 1;
    const int at = entry->signature.find_input(name);
    return at < 0 ? INT_MAX : at;
  };
  std::stable_sort(arguments.begin(), arguments.end(),
                   [&](const auto& a, const auto& b) { return place_of(a.first) < place_of(b.first); });
}

/// A number of a tensor that PyTorch knew while it exported: whoever uses it has the number itself, and the node, which
/// says that it gives None, is all that is left.
bool is_answered(const Node& node) {
  if (node.outputs().size() != 1 || node.output(0) != nullptr) return false;
  const AtenOpEntry* entry = find_aten_op(node);
  return entry != nullptr && entry->signature.outputs.size() == 1 && entry->signature.outputs[0].type == "Scalar";
}

void GraphReader::add_node(const Json& json, std::string_view target) {
  Node& node = *graph_.add_node("", "");
  set_target(node, target, origin_);
  std::vector<std::pair<std::string, const Json*>> arguments;
  for (const Json& input : get_list(json, "inputs").GetArray()) {
    const std::string_view given = text_of(get(input, "name"), "the name of an argument");
    arguments.emplace_back(argument_name(node, given, arguments.size()), &input);
  }
  constexpr size_t kMostArguments = 256;  // the longest schema has a few dozen
  require(arguments.size() <= kMostArguments, "a node has {} arguments", arguments.size());
  put_in_order(node, arguments);
  for (auto& [name, input] : arguments) {
    require(node.find_attribute(name) == nullptr, "the argument '{}' is given twice", name);
    AttrValue value = in_context([&] { return fmt::format("reading its argument '{}'", shown(name)); },
                                 [&, &input = input] { return argument(node, get(*input, "arg")); });
    node.attributes.push_back({std::move(name), std::move(value), AttrType::None, {}, {}});
  }
  if (node.domain == "tonnx") read_onnx_op(node, archive_);
  add_outputs(node, json);
  if (is_answered(node)) return graph_.erase(&node);
  if (const Json* metadata = find(json, "metadata")) set_metadata(node, *metadata);
}

void GraphReader::add_outputs(Node& node, const Json& json) {
  for (const Json& output : get_list(json, "outputs").GetArray()) {
    const auto [kind, value] = variant_of(output);
    if (kind == "as_none") {
      node.resize_outputs(node.outputs().size() + 1);
    } else if (kind == "as_tensors" || kind == "as_optional_tensors") {
      require(value->IsArray(), "'{}' is not a list", kind);
      for (const Json& item : value->GetArray()) {
        const auto* inner = kind == "as_tensors" ? &item : find(item, "as_tensor");
        if (inner == nullptr) {
          node.resize_outputs(node.outputs().size() + 1);
        } else {
          add_output(node, *inner);
        }
      }
    } else if (kind == "as_tensor") {
      add_output(node, *value);
    } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
      const std::string_view name = text_of(get(*value, "as_name"), "a name");
      Value* made = graph_.add_output_to(&node, graph_.unique_name(name), number_type(kind));
      learn_number(*made, name);
      define(name, made);
    } else {
      fail_unsupported("the node gives '{}'", kind);
    }
  }
}

void GraphReader::add_output(Node& node, const Json& json) {
  const std::string_view name = text_of(get(json, "name"), "a name");
  // what a symbolic of the user's own makes on its way has no type in PyTorch
  const bool is_known = node.domain != "tonnx" || tensors_.find(name) != tensors_.end();
  define(name, graph_.add_output_to(&node, graph_.unique_name(name), is_known ? type_of(name) : Type{}));
}

/// The path of the module that the node is in names it.
void GraphReader::set_metadata(Node& node, const Json& json) {
  if (const Json* stack = find(json, "nn_module_stack"); stack != nullptr && stack->IsString()) {
    const std::string_view all = text_of(*stack, "metadata");
    node.metadata.emplace_back("nn_module_stack", all);
    std::string_view last = all.substr(all.rfind(';') + 1);
    const size_t first = last.find(','), second = last.find(',', first + 1);
    if (first != last.npos && second != last.npos) last = last.substr(first + 1, second - first - 1);
    node.name = last.substr(0, last.find('@'));
  }
  if (const Json* trace = find(json, "stack_trace"); trace != nullptr && trace->IsString())
    node.metadata.emplace_back("stack_trace", text_of(*trace, "metadata"));
}

/// The main graph, with its weights and the names of its inputs and outputs.
class ProgramReader {
 public:
  ProgramReader(const Json& program, const Pt2Archive& archive, Origin origin)
      : program_(program), archive_(archive), origin_(origin) {}

  Program read() {
    check_version();
    const Json& module = get(program_, "graph_module");
    const Json& json = get(module, "graph");
    const Json& signature = get(module, "signature");
    Model model;
    model.graph = std::make_shared<Graph>();
    model.graph->name = "main_graph";
    GraphReader reader(json, *model.graph, sizes_, archive_, origin_);
    learn_names(module);
    add_inputs(*model.graph, reader, json, signature);
    reader.add_nodes();
    add_outputs(*model.graph, reader, json, signature);
    note_stack_classes(*model.graph);
    model.producer_name = "torch.export";
    if (const Json* version = find(program_, "torch_version"); version && version->IsString())
      model.producer_version = text_of(*version, "a version");
    return {std::move(model), std::move(output_names_)};
  }

 private:
  void check_version() const {
    constexpr int64_t kMajor = 8;
    const Json* version = find(program_, "schema_version");
    require(version != nullptr, "the program does not say which version of the schema it follows");
    const int64_t major = int_of(get(*version, "major"), "the version of the schema");
    if (major != kMajor && major != 0)
      fail_unsupported("the program follows version {} of the schema, and tonnx knows version {}", major, kMajor);
  }

  static std::vector<std::string> strings(const Json* list) {
    std::vector<std::string> result;
    if (list == nullptr || !list->IsArray()) return result;
    for (const Json& item : list->GetArray()) result.emplace_back(text_of(item, "a name"));
    return result;
  }

  void learn_names(const Json& module) {
    const Json* calls = find(module, "module_call_graph");
    const Json* root = calls && calls->IsArray() && calls->Size() > 0 ? find((*calls)[0], "signature") : nullptr;
    if (root != nullptr) {
      if (const Json* spec = find(*root, "in_spec"); spec && spec->IsString())
        leaf_names_ = input_leaf_names(text_of(*spec, "a spec"), strings(find(*root, "forward_arg_names")));
      if (const Json* spec = find(*root, "out_spec"); spec && spec->IsString())
        result_names_ = output_leaf_names(text_of(*spec, "a spec"));
    }
    const Json* given = origin_ == Origin::Package ? find(program_, "tonnx") : nullptr;
    if (given == nullptr) return;
    if (const Json* names = find(*given, "input_names")) leaf_names_ = strings(names);
    if (const Json* names = find(*given, "output_names")) result_names_ = strings(names);
    if (const Json* symbols = find(*given, "symbols"); symbols && symbols->IsObject()) {
      for (const auto& symbol : symbols->GetObject())
        sizes_.rename(symbol.name.GetString(), text_of(symbol.value, "the name of a size"));
    }
  }

  void add_weight(Graph& graph, GraphReader& reader, const Json& spec, const char* key, bool is_constant) {
    const std::string name(text_of(get(spec, key), "the name of a weight"));
    const std::string_view value_name = text_of(get(get(spec, "arg"), "name"), "a name");
    const auto find_in = [&](const std::map<std::string, Pt2Tensor>& all) {
      const auto at = all.find(name);
      return at == all.end() ? nullptr : &at->second;
    };
    const Pt2Tensor* found = find_in(is_constant ? archive_.constants : archive_.weights);
    if (found == nullptr) found = find_in(is_constant ? archive_.weights : archive_.constants);
    require(found != nullptr, "the archive holds no data for '{}'", name);
    auto [at, fresh] = shared_.try_emplace(found->tensor.get(), nullptr);
    if (fresh) {
      const Type declared = reader.type_of(value_name);
      const std::vector<int64_t>& dims = found->tensor->dims;
      require(declared.dtype == found->tensor->dtype && declared.shape == Shape(dims.begin(), dims.end()),
              "the program and the data of '{}' do not agree: {} and {}", name, text_of(declared),
              text_of(Type::tensor(found->tensor->dtype, Shape(dims.begin(), dims.end()))));
      at->second = graph.add_initializer(name, found->tensor);
      at->second->trainable = found->is_param;
    }
    reader.define(value_name, at->second);
  }
  static std::string text_of(const Type& type) { return tonnx::text_of(type); }
  static std::string_view text_of(const Json& json, const char* what) { return pt2::text_of(json, what); }

  void add_inputs(Graph& graph, GraphReader& reader, const Json& json, const Json& signature) {
    const Json& inputs = get_list(json, "inputs");
    const Json& specs = get_list(signature, "input_specs");
    require(inputs.Size() == specs.Size(), "the graph has {} inputs, and its signature {}", inputs.Size(),
            specs.Size());
    std::vector<rapidjson::SizeType> users;
    for (rapidjson::SizeType i = 0; i < specs.Size(); ++i) {
      const auto [kind, spec] = variant_of(specs[i]);
      if (kind == "parameter") {
        add_weight(graph, reader, *spec, "parameter_name", false);
      } else if (kind == "buffer") {
        const Json* persistent = find(*spec, "persistent");
        add_weight(graph, reader, *spec, "buffer_name", persistent && persistent->IsFalse());
      } else if (kind == "tensor_constant") {
        add_weight(graph, reader, *spec, "tensor_constant_name", true);
      } else if (kind == "user_input" || kind == "constant_input") {
        users.push_back(i);
      } else if (kind != "token") {
        fail_unsupported("an input of the program is of the kind '{}'", kind);
      }
    }
    const bool has_names = leaf_names_ && leaf_names_->size() == users.size();
    for (size_t i = 0; i < users.size(); ++i) {
      const bool is_fixed = variant_of(specs[users[i]]).first == "constant_input";
      if (!is_fixed) reader.add_input(inputs[users[i]], has_names ? (*leaf_names_)[i] : "");
    }
  }

  void add_outputs(Graph& graph, GraphReader& reader, const Json& json, const Json& signature) {
    const Json& outputs = get_list(json, "outputs");
    const Json& specs = get_list(signature, "output_specs");
    require(outputs.Size() == specs.Size(), "the graph has {} outputs, and its signature {}", outputs.Size(),
            specs.Size());
    std::vector<rapidjson::SizeType> users;
    for (rapidjson::SizeType i = 0; i < specs.Size(); ++i) {
      const std::string_view kind = variant_of(specs[i]).first;
      if (kind == "user_output" || kind == "loss_output") users.push_back(i);
    }
    const bool has_names = result_names_ && result_names_->size() == users.size();
    for (size_t i = 0; i < users.size(); ++i) {
      const std::string name = has_names ? (*result_names_)[i] : fmt::format("output.{}", i);
      Value* value = reader.find_output(outputs[users[i]]);
      const bool is_fixed = value == nullptr;
      if (is_fixed) value = fixed_output(graph, outputs[users[i]], name);
      if (value == nullptr) continue;
      graph.add_output(value);
      output_names_.push_back(has_names || is_fixed ? name : value->name);
    }
  }

  /// A number that the model always gives, as a tensor of rank 0; null for None, which says nothing.
  static Value* fixed_output(Graph& graph, const Json& argument, const std::string& name) {
    auto [kind, json] = variant_of(argument);
    if (kind == "as_none") return nullptr;
    if (kind.starts_with("as_sym_")) std::tie(kind, json) = variant_of(*json);
    AttrValue number;
    DType dtype = DType::Undefined;
    if (kind == "as_int") {
      number = int_of(*json, "an output");
      dtype = DType::Int64;
    } else if (kind == "as_float") {
      number = float_of(*json);
      dtype = DType::Float32;
    } else if (kind == "as_bool" && json->IsBool()) {
      number = json->GetBool();
      dtype = DType::Bool;
    } else {
      fail_unsupported("the output '{}' is {}: return only tensors, numbers, and structures of them", name,
                       kind == "as_string" ? "text" : kind);
    }
    Node& node = *graph.add_node("aten", "scalar_tensor");
    node.set_attribute("s", std::move(number));
    node.set_attribute("dtype", dtype);
    return graph.add_output_to(&node, graph.unique_name("number"), Type::tensor(dtype, Shape()));
  }

  const Json& program_;
  const Pt2Archive& archive_;
  Origin origin_;
  Sizes sizes_;
  std::optional<std::vector<std::string>> leaf_names_, result_names_;
  std::map<const Tensor*, Value*> shared_;
  std::vector<std::string> output_names_;
};

}  // namespace
}  // namespace pt2

Program pt2::read_json(const rapidjson::Value& json, const Pt2Archive& archive, Origin origin) {
  return in_context([] { return std::string("reading the program"); },
                    [&] {
                      Program program = ProgramReader(json, archive, origin).read();
                      check_program(*program.model.graph);
                      return program;
                    });
}

Program read_program(const Pt2Archive& archive) {
  return pt2::read_json(parse_json(archive.program.view(), "the program"), archive, pt2::Origin::File);
}

Program read_pt2(const std::string& path) {
  Program program = read_program(read_pt2_archive(path));
  program.model.path = path;
  return program;
}

}  // namespace tonnx
