// tree_names.h - names for the tensors inside nested inputs and outputs, from the tree specs of a program.
#pragma once
#include <rapidjson/document.h>

#include <optional>
#include <string>
#include <vector>

namespace tonnx::pt2 {

/// One name for each leaf, in order: `batch.pair.0`. The arguments are called as forward calls them. Nothing where the
/// text is no tree spec of the known form.
std::optional<std::vector<std::string>> input_leaf_names(std::string_view in_spec,
                                                         const std::vector<std::string>& argument_names);
/// Keys joined by dots; `output` for a single tensor, `output.0` and so on for a plain tuple.
std::optional<std::vector<std::string>> output_leaf_names(std::string_view out_spec);

}  // namespace tonnx::pt2
