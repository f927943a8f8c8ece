// tool_names.cpp - names that tools have put something into: functions that were written out where they are called
// (`If_0__Inline_0__encoder.0.weight`), weights that were made common to several graphs (`weight_merged_0`).
#include <cctype>
#include <string>
#include <string_view>

#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr std::string_view kInlined = "__Inline_", kMerged = "_merged_";

/// Behind the digits that begin there.
size_t end_of_digits(std::string_view name, size_t at) {
  while (at < name.size() && std::isdigit(static_cast<unsigned char>(name[at]))) ++at;
  return at;
}

/// `If_0.encoder.weight` of `If_0__Inline_0__encoder.weight`, `/If_0/encoder/Conv` of `If_0__Inline_0__/encoder/Conv`:
/// the call is a place, and what was inside it has its own places there.
std::string as_path(std::string_view name, std::string_view separator) {
  std::string path;
  bool is_node = false;
  for (size_t at = 0; (at = name.find(kInlined)) != std::string_view::npos && (at > 0 || !path.empty());) {
    const size_t digits = at + kInlined.size(), end = end_of_digits(name, digits);
    if (end == digits || name.substr(end, 2) != "__") break;
    path += name.substr(0, at);
    name.remove_prefix(end + 2);
    const bool is_path = name.starts_with('/');
    is_node = is_node || is_path;
    if (!is_path) path += separator;
  }
  path += name;
  if (is_node && !path.starts_with('/')) path.insert(0, "/");
  return path;
}

/// `weight_quantized` of `weight_merged_0_quantized`.
std::string without_merging(std::string name) {
  const size_t mark = name.rfind(kMerged);
  if (mark == std::string::npos || mark == 0) return name;
  const size_t digits = mark + kMerged.size(), end = end_of_digits(name, digits);
  const bool is_whole = end > digits && (end == name.size() || name[end] == '_');
  return is_whole ? name.erase(mark, end - mark) : name;
}

void read_names_of(const Graph& graph) {
  for (Node& node : graph) {
    if (node.name.find(kInlined) != std::string::npos) {
      node.name = as_path(node.name, "/");
      if (!node.name.starts_with('/')) node.name.insert(0, "/");
    }
    for (const GraphPtr& inner : subgraphs_of(node)) read_names_of(*inner);
  }
}

}  // namespace

void read_tool_names(Graph& graph) {
  for (Value* value : graph.initializers()) value->name = without_merging(as_path(value->name, "."));
  read_names_of(graph);
}

}  // namespace tonnx
