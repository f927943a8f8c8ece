// objects.cpp - what an archive holds, as items: modules, weights, constants.
#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/run/interpreter.h"

namespace tonnx::torchscript {

using IKind = Item::Kind;

namespace {

/// An object of C++ (TorchBind), or of a class that is missing. Who reads it is refused.
std::string no_class(const std::string& path, const std::string& name) {
  constexpr std::string_view kBound = "__torch__.torch.classes.";
  std::string text = error_text("'{}' is an object of {}, whose code the archive does not have", path, name);
  if (name.starts_with(std::string(kBound) + "quantized.")) return text + "; " + kInFloats;
  if (name.starts_with(kBound))
    text +=
        ": it is one of C++ (TorchBind), which only PyTorch opens; compute outside of the model what it gives, or "
        "store it in tensors";
  return text;
}

}  // namespace

Item Interpreter::constant(size_t index) {
  const auto known = constants_.find(index);
  if (known != constants_.end()) return known->second;
  require(index < archive_.constants().size(), "there is no constant c{}", index);
  return constants_[index] = item_of(*archive_.constants()[index], fmt::format("c{}", index), true);
}

Item Interpreter::tensor_of(const PickleValue& value, const std::string& path, bool is_constant, bool is_parameter) {
  const TensorPtr tensor = in_context([&] { return error_text("reading tensor '{}'", path); },
                                      [&] { return archive_.tensor(value, is_constant).tensor; });
  // a number that a trace wrote down as a tensor: what the code makes of it and of known sizes is known
  if (is_constant && tensor->dims.empty()) return Item::tensor(ops_.calls.constant(tensor, kLiteral));
  auto [at, is_new] = ops_.weights.try_emplace(tensor.get(), nullptr);
  if (is_new) {
    at->second = ops_.calls.constant(tensor, is_constant ? "constant" : path);
    at->second->trainable = is_parameter;
  }
  return Item::tensor(at->second);
}

Item Interpreter::object_of(const PickleValue& value, const std::string& path) {
  const auto known = objects_.find(&value);
  if (known != objects_.end()) return known->second;
  Item made = Item::of(IKind::Object);
  made.object = std::make_shared<Object>();
  Object& object = *made.object;
  const std::string name = global_name(*value.callee);
  object.type = archive_.find_class(name);
  if (object.type == nullptr) return objects_[&value] = Item::refused(no_class(path, name));
  object.path = path;
  object.is_module = object.type->base == "Module";
  objects_[&value] = made;
  if (value.state == nullptr || !value.state->is(PickleValue::Kind::Dict)) return made;
  const std::vector<std::string>& parameters = object.type->parameters;
  for (size_t i = 0; i + 1 < value.state->entries.size(); i += 2) {
    const PickleValue& key = *value.state->entries[i];
    const PickleValue& entry = *value.state->entries[i + 1];
    if (!key.is(PickleValue::Kind::String)) continue;
    const std::string attribute(key.text);
    const std::string inner = path.empty() ? attribute : path + "." + attribute;
    const bool is_parameter = std::find(parameters.begin(), parameters.end(), attribute) != parameters.end();
    object.attributes[attribute] =
        PickledTensors::is_tensor(entry) ? tensor_of(entry, inner, false, is_parameter) : item_of(entry, inner, false);
  }
  return made;
}

Item Interpreter::item_of(const PickleValue& value, const std::string& path, bool is_constant) {
  using PKind = PickleValue::Kind;
  budget().take(Resource::Memory, sizeof(Item));
  const auto all = [&](IKind kind, const std::vector<PickleValue::Item>& items) {
    Item::Items made;
    for (const PickleValue* each : items) made.push_back(item_of(*each, path, is_constant));
    return Item::of_items(kind, std::move(made));
  };
  switch (value.kind) {
    case PKind::None: return Item::none();
    case PKind::Bool: return Item::of_bool(value.integer != 0);
    case PKind::Int: return Item::of_int(value.integer);
    case PKind::Float: return Item::of_float(value.real);
    case PKind::String: return Item::of_text(std::string(value.text));
    case PKind::Tuple: return all(IKind::Tuple, value.items);
    case PKind::List: return all(IKind::List, value.items);
    case PKind::Dict: return all(IKind::Dict, value.entries);
    case PKind::Object: break;
    default: fail_unsupported("the archive holds a value of a kind that is not known");
  }
  if (PickledTensors::is_tensor(value)) return tensor_of(value, path, is_constant, false);
  const std::vector<PickleValue::Item>& arguments = value.arguments->items;
  if (value.callee->is(PKind::Global) && value.callee->module == "torch.jit._pickle" && !arguments.empty())
    return item_of(*arguments.front(), path, is_constant);  // a list, and what it is a list of
  if (value.is_call_of("torch", "device")) {
    Item device = Item::of(IKind::Device);
    device.text = arguments.empty() ? "cpu" : std::string(arguments.front()->text);
    return device;
  }
  if (value.is_call_of("collections", "OrderedDict")) return all(IKind::Dict, value.entries);
  require(value.callee->is(PKind::Global), "the archive holds a call of what is no name");
  const Class* type = archive_.find_class(global_name(*value.callee));
  if (type != nullptr && type->base == "Enum" && arguments.size() == 1)
    return item_of(*arguments.front(), path, is_constant);
  return object_of(value, path);
}

}  // namespace tonnx::torchscript
