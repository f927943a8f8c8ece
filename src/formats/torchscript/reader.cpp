// reader.cpp - the program of a TorchScript archive: forward() run on inputs of given shapes.
#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/run/inputs.h"
#include "formats/torchscript/run/interpreter.h"
#include "formats/torchscript/run/item_facts.h"
#include "formats/torchscript/torchscript.h"

namespace tonnx {
namespace {

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
      return torchscript::ScriptInputMaker(graph(), archive_, inputs).make(parameters);
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
    const torchscript::Arguments arguments = make_arguments(parameters);
    const Item result = interpreter.call_method(root, "forward", arguments);
    if (!interpreter.refusals().empty()) interpreter.refusals().fail();
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
    if (item.is(IKind::List) && item.value != nullptr) return add_sequence(*item.value, name);
    if (item.is(IKind::Unset))
      fail_unsupported("the output '{}' has a value in some branches only, or not of one kind in all of them", name);
    if (!item.items)
      fail_unsupported("the output '{}' is {}: return only tensors, numbers, and structures of them", name,
                       torchscript::name_of(item.kind));
    require_known_count(item);
    const bool is_dict = item.is(IKind::Dict);
    const auto& fields = item.object && item.object->type ? item.object->type->fields : no_fields_;
    for (size_t i = is_dict ? 1 : 0; i < item.items->size(); i += is_dict ? 2 : 1) {
      const std::string part = is_dict             ? (*item.items)[i - 1].text
                               : i < fields.size() ? fields[i].first
                                                   : fmt::format("{}{}{}", name, separator_, i);
      add_outputs((*item.items)[i], part, interpreter);
    }
  }

  /// A list of tensors whose length only the run tells, as a sequence: along the first dimension they are one tensor.
  void add_sequence(Value& stacked, const std::string& name) {
    Node& node = *graph().add_node("tonnx", "unbind_list");
    node.add_input(&stacked);
    node.set_attribute("self", Operand{0});
    Type element = stacked.type;
    if (element.shape) element.shape->erase(element.shape->begin());
    graph().add_output(graph().add_output_to(&node, graph().unique_name("list"), Type::sequence(element)));
    program_.output_names.push_back(name);
  }

  torchscript::ScriptArchive archive_;
  const char* separator_;
  Program program_;
  std::vector<std::pair<std::string, torchscript::ExprPtr>> no_fields_;
};

template <class Asked>
Program read_archive(const Bytes& bytes, const Asked& asked, const char* separator) {
  if (!ZipFile::looks_like_zip(bytes.view()))
    fail(ErrorKind::BadFile, "this is no TorchScript file of torch.jit.save: it does not begin as a zip file");
  return ScriptReader(bytes, separator).read(asked);
}

template <class Asked>
Program read_archive(const std::string& path, const Asked& asked, const char* separator) {
  Program program = read_archive(map_file(path), asked, separator);
  program.model.path = path;
  return program;
}

}  // namespace

std::vector<std::string> read_torchscript_inputs(const std::string& path) {
  const torchscript::ScriptArchive archive(map_file(path));
  const PickleValue& root = archive.root();
  const bool is_object = root.is(PickleValue::Kind::Object) && root.callee->is(PickleValue::Kind::Global);
  const torchscript::Class* const type = is_object ? archive.find_class(global_name(*root.callee)) : nullptr;
  std::vector<std::string> names;
  if (type == nullptr || !type->methods.contains("forward")) return names;
  const auto& parameters = type->methods.find("forward")->second.parameters;
  for (size_t i = 1; i < parameters.size(); ++i) names.push_back(parameters[i].name);
  return names;
}

Program read_torchscript(const std::string& path, const ScriptInputs& inputs) {
  return read_archive(path, inputs, "_");
}

Program read_torchscript(const Bytes& bytes, const ScriptInputs& inputs) { return read_archive(bytes, inputs, "_"); }

Program read_torchscript(const std::string& path, const ScriptCall& call) { return read_archive(path, call, "."); }

}  // namespace tonnx
