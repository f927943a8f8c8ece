// script_call.cpp - a call of a scripted module, as Python describes it.
#include "script_call.h"

#include <map>

#include "bindings.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

using Kind = ScriptArgument::Kind;

ScriptArgument argument_of(const nb::tuple& row) {
  static const std::map<std::string, Kind> kinds{{"none", Kind::None},   {"int", Kind::Int},   {"float", Kind::Float},
                                                 {"bool", Kind::Bool},   {"text", Kind::Text}, {"list", Kind::List},
                                                 {"tuple", Kind::Tuple}, {"dict", Kind::Dict}, {"input", Kind::Input}};
  ScriptArgument result;
  result.kind = kinds.at(nb::cast<std::string>(row[0]));
  switch (result.kind) {
    case Kind::None: break;
    case Kind::Int:
    case Kind::Bool:
    case Kind::Input: result.integer = nb::cast<int64_t>(row[1]); break;
    case Kind::Float: result.real = nb::cast<double>(row[1]); break;
    case Kind::Text: result.text = nb::cast<std::string>(row[1]); break;
    case Kind::List:
    case Kind::Tuple:
    case Kind::Dict:
      for (const nb::handle item : nb::cast<nb::list>(row[1]))
        result.items.push_back(argument_of(nb::cast<nb::tuple>(item)));
  }
  return result;
}

}  // namespace

ScriptCall script_call_of(const ScriptInputRows& inputs, const ScriptArgumentRows& arguments) {
  ScriptCall call;
  for (const auto& [name, type, sizes] : inputs) {
    std::vector<Dim> shape;
    for (const auto& size : sizes) {
      const auto* number = std::get_if<int64_t>(&size);
      shape.push_back(number != nullptr ? Dim(*number) : Dim(std::get<std::string>(size)));
    }
    call.inputs.emplace_back(name, Type::tensor(types_of({{name, type}}).at(0).second, std::move(shape)));
  }
  for (const auto& [name, row] : arguments) call.arguments.emplace_back(name, argument_of(row));
  return call;
}

}  // namespace tonnx::python_binding
