// bindings.h - what the files of the binding share. All of it is written against the public interface.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tonnx/error.h>
#include <tonnx/options.h>

#include <optional>

namespace tonnx::python_binding {

// Each adds its part to the module. The first of them comes first: the others need its type of errors.
void bind_errors(nanobind::module_& m);
void bind_batch(nanobind::module_& m);
void bind_conversion(nanobind::module_& m);
void bind_files(nanobind::module_& m);
void bind_program(nanobind::module_& m);
void bind_tensors(nanobind::module_& m);
void bind_verify(nanobind::module_& m);

using Shapes = std::map<std::string, std::vector<int64_t>>;
using TypeNames = std::map<std::string, std::string>;
using Names = std::vector<std::string>;

inline InputShapes shapes_of(const Shapes& shapes) { return {shapes.begin(), shapes.end()}; }
inline Limits limits_of(const std::map<std::string, int64_t>& limits) { return {limits.begin(), limits.end()}; }
std::vector<std::pair<std::string, DType>> types_of(const TypeNames& names);

/// `bad_file`: as Python has it.
const char* kind_name(Error::Kind kind);
std::optional<Error::Kind> find_kind(const std::string& name);

/// What Python raised, as an Error: of its own kind where it has one.
Error error_of(const nanobind::python_error& e);

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
