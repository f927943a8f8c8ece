// files.h - the part of the binding that has nothing but the public interface.
#pragma once
#include <nanobind/nanobind.h>

namespace tonnx::python_binding {

/// Needs `CoreError` in the module.
void bind_files(nanobind::module_& m);

}  // namespace tonnx::python_binding
