// inputs.cpp - makes inputs of a graph of the parameters of forward().
#include "formats/torchscript/run/inputs.h"

#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "base/nearest.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;
using PKind = PickleValue::Kind;

constexpr size_t kMostParts = 4096;  // of all lists and dicts among the inputs
constexpr int kMostNested = 16;

/// `List`, `Tensor`, or the whole name of a class.
std::string type_name(const Expr* type) {
  if (type == nullptr) return "Tensor";
  if (type->kind == Expr::Kind::Subscript) return type_name(type->items[0].get());
  if (type->kind == Expr::Kind::Attribute) return type_name(type->items[0].get()) + "." + type->text;
  return type->text;
}

/// The type of one element of a list, a tuple or a dict; of an optional value, that of the value.
const Expr* element_type(const Expr& type, size_t place) {
  if (type.kind != Expr::Kind::Subscript) return nullptr;
  const Expr* const inside = type.items[1].get();
  if (inside == nullptr || inside->kind != Expr::Kind::Tuple) return inside;
  if (type_name(&type) == "Dict") place = 1;
  return place < inside->items.size() ? inside->items[place].get() : nullptr;
}

/// Whether it is a place in a list of that length.
bool is_place(const std::string& step, size_t size) {
  return !step.empty() && step.size() < 5 &&
         std::all_of(step.begin(), step.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         static_cast<size_t>(std::stoi(step)) < size;
}

}  // namespace

std::string ScriptInputMaker::Path::input_name() const {
  std::string result = name;
  std::replace(result.begin(), result.end(), '.', '_');
  return result;
}

Arguments ScriptInputMaker::make(const std::vector<Parameter>& parameters) {
  require_inputs(parameters);
  Arguments arguments;
  for (size_t i = 1; i < parameters.size(); ++i)
    argument_of(parameters[i], {parameters[i].name, std::to_string(i - 1)}, arguments);
  const auto require_used = [&](const std::string& path) {
    if (!used_.contains(path)) fail_invalid("the model has no input '{}'", path);
  };
  for (const auto& [path, shape] : given_.shapes) require_used(path);
  for (const auto& [path, type] : given_.types) require_used(path);
  return arguments;
}

void ScriptInputMaker::require_inputs(const std::vector<Parameter>& parameters) const {
  Names names;
  for (size_t i = 1; i < parameters.size(); ++i) names.emplace_back(parameters[i].name);
  const auto require_input = [&](const std::string& path) {
    const std::string first = path.substr(0, path.find('.'));
    if (!is_place(first, names.size()) && std::find(names.begin(), names.end(), first) == names.end())
      fail_invalid("the model has no input '{}'; it has: {}", path, nearest_list(first, names));
  };
  for (const auto& [path, shape] : given_.shapes) require_input(path);
  for (const auto& [path, type] : given_.types) require_input(path);
}

void ScriptInputMaker::read_traced() {
  if (std::exchange(is_read_, true)) return;
  const PickleValue* const inputs = archive_.traced_inputs();
  if (inputs == nullptr) return;
  in_context([] { return error_text("reading traced_inputs.pkl"); },
             [&] {
               for (size_t i = 0; i < inputs->items.size(); ++i) add_traced(*inputs->items[i], std::to_string(i), 0);
             });
}

/// What torch.jit tags with a type is the first argument of a call.
void ScriptInputMaker::add_traced(const PickleValue& value, const std::string& path, int depth) {
  if (depth > kMostNested || ++traced_count_ > kMostParts)
    fail_unsupported("the archive was traced with too many inputs");
  budget().take(Resource::Memory, static_cast<int64_t>(sizeof(Item) + path.size()));
  if (PickledTensors::is_tensor(value)) {
    const auto [dtype, sizes] = PickledTensors::type_of(value);
    traced_.types[path] = dtype;
    traced_.shapes[path] = sizes;
    traced_order_.push_back(path);
  } else if (value.is(PKind::Object) && value.arguments != nullptr && !value.arguments->items.empty()) {
    add_traced(*value.arguments->items[0], path, depth + 1);
  } else if (value.is(PKind::List) || value.is(PKind::Tuple)) {
    for (size_t i = 0; i < value.items.size(); ++i)
      add_traced(*value.items[i], fmt::format("{}.{}", path, i), depth + 1);
  } else if (value.is(PKind::Dict)) {
    for (size_t i = 0; i + 1 < value.entries.size(); i += 2) {
      if (value.entries[i]->is(PKind::String))
        add_traced(*value.entries[i + 1], fmt::format("{}.{}", path, value.entries[i]->text), depth + 1);
    }
  }
}

template <class T>
const T* ScriptInputMaker::find_of(std::map<std::string, T> ScriptInputs::*all, const Path& path) {
  for (const std::string& said : {path.name, path.place}) {
    const auto at = (given_.*all).find(said);
    if (at == (given_.*all).end()) continue;
    used_.insert(said);
    return &at->second;
  }
  read_traced();
  const auto at = (traced_.*all).find(path.place);
  return at == (traced_.*all).end() ? nullptr : &at->second;
}

std::vector<std::string> ScriptInputMaker::steps_behind(const Path& path) {
  std::vector<std::string> result;
  const auto add = [&](const std::string& said, const std::string& before) {
    if (!said.starts_with(before + ".")) return;
    const std::string step = said.substr(before.size() + 1, said.find('.', before.size() + 1) - before.size() - 1);
    if (std::find(result.begin(), result.end(), step) == result.end()) result.push_back(step);
    if (result.size() > kMostParts) fail_unsupported("the input '{}' has more than {} parts", path.name, kMostParts);
  };
  const auto add_given = [&](const std::string& said) {
    add(said, path.name);
    add(said, path.place);
  };
  for (const auto& [said, shape] : given_.shapes) add_given(said);
  for (const auto& [said, type] : given_.types) add_given(said);
  if (!result.empty()) return result;
  read_traced();
  for (const std::string& said : traced_order_) add(said, path.place);
  return result;
}

Value* ScriptInputMaker::add_input(const Path& path, DType dtype, Shape shape) {
  return graph_.add_input(graph_.unique_name(path.input_name()), Type::tensor(dtype, std::move(shape)));
}

void ScriptInputMaker::argument_of(const Parameter& parameter, const Path& path, Arguments& arguments) {
  const bool is_said = given_.shapes.contains(path.name) || given_.shapes.contains(path.place);
  if (parameter.value && !is_said && steps_behind(path).empty()) {
    // its default; but what was traced, and what may be none, is said by the archive or not at all
    if (find_of(&ScriptInputs::shapes, path) == nullptr && type_name(parameter.type.get()) != "Optional") return;
  }
  arguments.keywords.emplace_back(parameter.name, item_of(parameter.type.get(), path));
}

Item ScriptInputMaker::item_of(const Expr* type, const Path& path) {
  const std::string name = type_name(type);
  if (name == "int" || name == "float" || name == "bool") {
    const IKind kind = name == "int" ? IKind::Int : name == "float" ? IKind::Float : IKind::Bool;
    const DType dtype = name == "int" ? DType::Int64 : name == "float" ? DType::Float32 : DType::Bool;
    find_of(&ScriptInputs::shapes, path);  // it has none, and may be told so
    find_of(&ScriptInputs::types, path);
    return Item::of_value(kind, add_input(path, dtype, Shape()));
  }
  const DType* const dtype = find_of(&ScriptInputs::types, path);
  if (const auto* const dims = find_of(&ScriptInputs::shapes, path)) {
    Shape shape;
    for (size_t i = 0; i < dims->size(); ++i)
      shape.push_back((*dims)[i] >= 0 ? Dim((*dims)[i]) : Dim::symbol(fmt::format("{}_{}", path.input_name(), i)));
    return Item::tensor(add_input(path, dtype ? *dtype : DType::Float32, shape));
  }
  const std::vector<std::string> steps = steps_behind(path);
  if (name == "Optional") return steps.empty() ? Item::none() : item_of(element_type(*type, 0), path);
  if (name == "List" || name == "Tuple" || name == "Dict") return items_of(*type, path, steps);
  const Class* const named = archive_.find_class(name);
  if (named != nullptr && named->base == "NamedTuple") return fields_of(*named, path);
  if (name != "Tensor") fail_unsupported("the input '{}' is a {}, and no tensor", path.name, name);
  fail_invalid("the shape of the input '{}' is not in the file: --input-shape {}:1,3,224,224 gives it", path.name,
               path.name);
}

Item ScriptInputMaker::items_of(const Expr& type, const Path& path, const std::vector<std::string>& steps) {
  const std::string name = type_name(&type);
  const bool is_dict = name == "Dict";
  Item::Items items;
  if (name == "Tuple") {
    const Expr* const inside = type.items[1].get();
    const size_t count = inside != nullptr && inside->kind == Expr::Kind::Tuple ? inside->items.size() : 1;
    for (size_t i = 0; i < count; ++i) items.push_back(item_of(element_type(type, i), path.part(std::to_string(i))));
    return Item::of_items(IKind::Tuple, std::move(items));
  }
  if (steps.empty())
    fail_invalid("the input '{}' is a {}: --input-shape {}.{}:1,3,224,224 gives the shape of {}", path.name, name,
                 path.name, is_dict ? "key" : "0", is_dict ? "the value of a key" : "its first element");
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string step = is_dict ? steps[i] : std::to_string(i);
    if (!is_dict && !is_place(steps[i], steps.size()))
      fail_invalid("the input '{}' is a List of {}, and has no '{}'", path.name, steps.size(), steps[i]);
    if (is_dict) items.push_back(Item::of_text(step));
    items.push_back(item_of(element_type(type, i), path.part(step)));
  }
  return Item::of_items(is_dict ? IKind::Dict : IKind::List, std::move(items));
}

/// The fields of a NamedTuple, by their names or their places.
Item ScriptInputMaker::fields_of(const Class& type, const Path& path) {
  Item::Items items;
  for (size_t i = 0; i < type.fields.size(); ++i) {
    const auto& [field, field_type] = type.fields[i];
    const Path by_place = path.part(std::to_string(i));
    const bool is_by_place = given_.shapes.contains(by_place.name) || given_.shapes.contains(by_place.place);
    items.push_back(item_of(field_type.get(), is_by_place ? by_place : path.part(field)));
  }
  Item made = Item::of_items(IKind::Tuple, std::move(items));
  made.object = std::make_shared<Object>();
  made.object->type = &type;
  return made;
}

}  // namespace tonnx::torchscript
