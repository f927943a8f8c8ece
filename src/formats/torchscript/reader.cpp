// reader.cpp - the program of a TorchScript archive: forward() run on inputs of given shapes.
#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "base/nearest.h"
#include "formats/torchscript/interpreter.h"
#include "formats/torchscript/torchscript.h"

namespace tonnx {
namespace {

using torchscript::Expr;
using torchscript::Item;
using torchscript::Parameter;
using IKind = Item::Kind;

class ScriptReader {
 public:
  /// `separator`: between the name of a result and the place of an element.
  ScriptReader(const Bytes& bytes, const char* separator) : archive_(bytes), separator_(separator) {
    program_.model.graph = std::make_shared<Graph>();
    program_.model.graph->name = "main_graph";
    program_.model.producer_name = "torch.jit";
  }

  Program read(const ScriptInputs& inputs) {
    return read([&](const std::vector<Parameter>& parameters) {
      torchscript::Arguments arguments;
      for (const auto& [name, shape] : inputs.shapes) require_input(name);
      for (const auto& [name, type] : inputs.types) require_input(name);
      for (size_t i = 1; i < parameters.size(); ++i) add_argument(parameters[i], i - 1, inputs, arguments);
      return arguments;
    });
  }

  Program read(const ScriptCall& call) {
    return read([&](const std::vector<Parameter>&) {
      torchscript::Arguments arguments;
      std::vector<Value*> values;
      values.reserve(call.inputs.size());
      for (const auto& [name, type] : call.inputs) values.push_back(graph().add_input(graph().unique_name(name), type));
      for (const auto& [name, argument] : call.arguments)
        arguments.keywords.emplace_back(name, item_of(argument, values));
      return arguments;
    });
  }

 private:
  Graph& graph() { return *program_.model.graph; }

  template <class MakeArguments>
  Program read(const MakeArguments& make_arguments) {
    torchscript::Interpreter interpreter(archive_, graph());
    const Item root = interpreter.root();
    require(root.is(IKind::Object), "the archive holds no module");
    const auto forward = root.object->type->methods.find("forward");
    if (forward == root.object->type->methods.end()) fail_unsupported("the module has no method forward");
    const auto& parameters = forward->second.parameters;
    for (size_t i = 1; i < parameters.size(); ++i) names_.emplace_back(parameters[i].name);
    const Item result = interpreter.call_method(root, "forward", make_arguments(parameters));
    add_outputs(result, "output", interpreter);
    return std::move(program_);
  }

  static Item item_of(const ScriptArgument& argument, const std::vector<Value*>& inputs) {
    using Kind = ScriptArgument::Kind;
    Item::Items items;
    for (const ScriptArgument& each : argument.items) items.push_back(item_of(each, inputs));
    switch (argument.kind) {
      case Kind::None: return Item::none();
      case Kind::Int: return Item::of_int(argument.integer);
      case Kind::Float: return Item::of_float(argument.real);
      case Kind::Bool: return Item::of_bool(argument.integer != 0);
      case Kind::Text: return Item::of_text(argument.text);
      case Kind::Input: return Item::tensor(inputs.at(static_cast<size_t>(argument.integer)));
      case Kind::List: return Item::of_items(IKind::List, std::move(items));
      case Kind::Tuple: return Item::of_items(IKind::Tuple, std::move(items));
      case Kind::Dict: return Item::of_items(IKind::Dict, std::move(items));
    }
    return Item::none();
  }

  void require_input(const std::string& name) const {
    const bool is_place = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
                          name.size() < 5 && static_cast<size_t>(std::stoi(name)) < names_.size();
    if (!is_place && std::find(names_.begin(), names_.end(), name) == names_.end())
      fail_invalid("the model has no input '{}'; it has: {}", name,
                   nearest_list(name, Names(names_.begin(), names_.end())));
  }

  template <class T>
  const T* find_given(const std::map<std::string, T>& all, const std::string& name, size_t place) const {
    auto at = all.find(name);
    if (at == all.end()) at = all.find(std::to_string(place));
    return at == all.end() ? nullptr : &at->second;
  }

  void add_argument(const Parameter& parameter, size_t place, const ScriptInputs& inputs,
                    torchscript::Arguments& arguments) {
    const std::vector<int64_t>* const dims = find_given(inputs.shapes, parameter.name, place);
    const DType* const given = find_given(inputs.types, parameter.name, place);
    const std::string type = !parameter.type                                 ? "Tensor"
                             : parameter.type->kind == Expr::Kind::Subscript ? parameter.type->items[0]->text
                                                                             : parameter.type->text;
    const auto add = [&](DType dtype, Shape shape) {
      return graph().add_input(graph().unique_name(parameter.name), Type::tensor(dtype, std::move(shape)));
    };
    if (!parameter.value && (type == "int" || type == "float" || type == "bool")) {
      const IKind kind = type == "int" ? IKind::Int : type == "float" ? IKind::Float : IKind::Bool;
      const DType dtype = type == "int" ? DType::Int64 : type == "float" ? DType::Float32 : DType::Bool;
      arguments.keywords.emplace_back(parameter.name, Item::of_value(kind, add(dtype, Shape())));
      return;
    }
    if (dims != nullptr) {
      Shape shape;
      for (size_t i = 0; i < dims->size(); ++i)
        shape.push_back((*dims)[i] >= 0 ? Dim((*dims)[i]) : Dim::symbol(fmt::format("{}_{}", parameter.name, i)));
      arguments.keywords.emplace_back(parameter.name, Item::tensor(add(given ? *given : DType::Float32, shape)));
      return;
    }
    if (type == "Optional") {
      arguments.keywords.emplace_back(parameter.name, Item::none());
      return;
    }
    if (parameter.value) return;  // its default
    if (type != "Tensor") fail_unsupported("the input '{}' is a {}, and no tensor", parameter.name, type);
    fail_invalid("the shape of the input '{}' is not in the file: --input-shape {}:1,3,224,224 gives it",
                 parameter.name, parameter.name);
  }

  void add_outputs(const Item& item, const std::string& name, torchscript::Interpreter& interpreter) {
    budget().take(Resource::Memory, static_cast<int64_t>(sizeof(Item) + name.size()));
    if (item.is(IKind::None)) return;
    if (item.is(IKind::Tensor) || item.is_number()) {
      Value* value = item.is(IKind::Tensor) && item.value
                         ? item.value
                         : interpreter.calls().as_tensor(item.number ? *item.number : item);
      graph().add_output(value);
      program_.output_names.push_back(name);
      return;
    }
    if (!item.items) fail_unsupported("the model gives {}", torchscript::name_of(item.kind));
    const bool is_dict = item.is(IKind::Dict);
    const auto& fields = item.object && item.object->type ? item.object->type->fields : no_fields_;
    for (size_t i = is_dict ? 1 : 0; i < item.items->size(); i += is_dict ? 2 : 1) {
      const std::string part = is_dict             ? (*item.items)[i - 1].text
                               : i < fields.size() ? fields[i].first
                                                   : fmt::format("{}{}{}", name, separator_, i);
      add_outputs((*item.items)[i], part, interpreter);
    }
  }

  torchscript::ScriptArchive archive_;
  const char* separator_;
  Program program_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, torchscript::ExprPtr>> no_fields_;
};

template <class Asked>
Program read_archive(const std::string& path, const Asked& asked, const char* separator) {
  const Bytes bytes = map_file(path);
  if (!ZipFile::looks_like_zip(bytes.view()))
    fail(ErrorKind::BadFile, "this is no TorchScript file of torch.jit.save: it does not begin as a zip file");
  Program program = ScriptReader(bytes, separator).read(asked);
  program.model.path = path;
  return program;
}

}  // namespace

Program read_torchscript(const std::string& path, const ScriptInputs& inputs) {
  return read_archive(path, inputs, "_");
}

Program read_torchscript(const std::string& path, const ScriptCall& call) { return read_archive(path, call, "."); }

}  // namespace tonnx
