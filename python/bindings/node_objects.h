// node_objects.h - names, sizes and nodes of a model as Python sees them.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "tensors.h"

namespace tonnx::python_binding {

/// A text out of a file, which may be anything.
nanobind::object text_object(std::string_view text);
nanobind::list text_list(const std::vector<std::string>& texts);

/// Numbers, and the names of sizes that are open.
nanobind::list sizes_object(const Shape& shape);

/// What a converter of the user's own is told of a node.
nanobind::dict node_object(const Node& node, BufferTable& buffers);

}  // namespace tonnx::python_binding
