// errors.cpp - errors of the library as Python's, and Python's as the library's.
#include <tonnx/tools.h>

#include "bindings.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

constexpr std::pair<Error::Kind, const char*> kKinds[] = {{Error::Kind::BadFile, "bad_file"},
                                                          {Error::Kind::InvalidModel, "invalid_model"},
                                                          {Error::Kind::Unsupported, "unsupported"},
                                                          {Error::Kind::Internal, "internal"}};

}  // namespace

const char* kind_name(Error::Kind kind) {
  for (const auto& [each, name] : kKinds) {
    if (each == kind) return name;
  }
  return "internal";
}

std::optional<Error::Kind> find_kind(const std::string& name) {
  for (const auto& [kind, each] : kKinds) {
    if (each == name) return kind;
  }
  return std::nullopt;
}

Error error_of(const nb::python_error& e) {
  const nb::handle value = e.value();
  const std::string text = nb::str(value).c_str();
  const std::string name = nb::hasattr(value, "kind") ? nb::str(value.attr("kind")).c_str() : "";
  if (const auto kind = find_kind(name)) return {*kind, text};
  return {Error::Kind::Unsupported, std::string(nb::type_name(e.type()).c_str()) + ": " + text};
}

std::vector<std::pair<std::string, DType>> types_of(const TypeNames& names) {
  std::vector<std::pair<std::string, DType>> types;
  for (const auto& [input, name] : names) {
    const auto dtype = find_dtype(name);
    if (!dtype)
      throw Error(Error::Kind::InvalidModel,
                  "the input '" + shown(input) + "' is of the type '" + shown(name) + "', which is none");
    types.emplace_back(input, *dtype);
  }
  return types;
}

void bind_errors(nb::module_& m) {
  static nb::object error_type = nb::steal(PyErr_NewException("tonnx._core.CoreError", PyExc_RuntimeError, nullptr));
  m.attr("CoreError") = error_type;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      const nb::object value = error_type(nb::str(visible_text(e.what(), true).c_str()), nb::str(kind_name(e.kind())));
      PyErr_SetObject(error_type.ptr(), value.ptr());
    }
  });
}

}  // namespace tonnx::python_binding
