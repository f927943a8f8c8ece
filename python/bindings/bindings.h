// bindings.h - what the files of the binding share.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"

namespace tonnx::python_binding {

void bind_batch(nanobind::module_& m);

/// What Python raised, as an Error: of its own kind where it has one.
inline Error error_of(const nanobind::python_error& e) {
  namespace nb = nanobind;
  const nb::handle value = e.value();
  const std::string text = nb::str(value).c_str();
  const std::string kind = nb::hasattr(value, "kind") ? nb::str(value.attr("kind")).c_str() : "";
  for (const ErrorKind each :
       {ErrorKind::BadFile, ErrorKind::InvalidModel, ErrorKind::Unsupported, ErrorKind::Internal}) {
    if (kind == name_of(each)) return {each, text};
  }
  return {ErrorKind::Unsupported, fmt::format("{}: {}", nb::type_name(e.type()).c_str(), text)};
}

/// Calls a function that gives a text, from any thread. The function is kept alive by the caller.
template <class... Args>
std::string call_for_text(nanobind::handle function, const Args&... args) {
  const nanobind::gil_scoped_acquire gil;
  try {
    return nanobind::cast<std::string>(function(args...));
  } catch (const nanobind::python_error& e) {
    throw error_of(e);
  }
}

}  // namespace tonnx::python_binding
