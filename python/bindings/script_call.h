// script_call.h - a call of a scripted module, as Python describes it.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <tonnx/live.h>

#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace tonnx::python_binding {

/// What inputs are called, their types, and their sizes: numbers, or the names of those that are open.
using ScriptInputRows =
    std::vector<std::tuple<std::string, std::string, std::vector<std::variant<int64_t, std::string>>>>;
/// Arguments by name, each as its kind and what it holds: ("int", 3), ("input", 0), ("list", [...]).
using ScriptArgumentRows = std::vector<std::pair<std::string, nanobind::tuple>>;

ScriptCall script_call_of(const ScriptInputRows& inputs, const ScriptArgumentRows& arguments);

}  // namespace tonnx::python_binding
