// node_objects.h - names, sizes and nodes of a model as Python sees them.
#pragma once
#include <nanobind/nanobind.h>
#include <tonnx/graph.h>

#include <string>
#include <string_view>
#include <vector>

namespace tonnx::python_binding {

/// A text out of a file, which may be anything.
nanobind::object text_object(std::string_view text);
nanobind::list text_list(const std::vector<std::string>& texts);

/// What a converter of the user's own is told of a node.
nanobind::dict node_object(NodeView node);
/// What it is told of the graph around it.
nanobind::dict graph_object(GraphView graph);

}  // namespace tonnx::python_binding
