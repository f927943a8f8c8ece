// support.h - which nodes of a model cannot be converted, found before any work is done.
#pragma once
#include <string>
#include <vector>

#include "convert/lowering.h"

namespace tonnx {

/// An operator that is not supported, with the nodes that have it.
struct UnsupportedOp {
  std::string domain;  // empty for ai.onnx
  std::string op;
  int64_t version = 0;
  std::vector<std::string> nodes;  // by name, or by the first output where a node has none
  std::string reason;              // empty: no version of tonnx has had it
};

/// `Conv-11`, `com.microsoft::Gelu-1`: the operator with the version of it that the node's opset has.
std::string label_of(const Node& node);

/// All that keeps the graph, and the graphs inside it, from being converted to PyTorch, sorted by domain and operator.
/// An input of strings counts as an operator `input`.
std::vector<UnsupportedOp> find_unsupported(const Graph& graph, const LoweringOptions& options = {});
/// One line for each.
std::string describe(const std::vector<UnsupportedOp>& unsupported, size_t most_names);
/// Throws Unsupported, with the whole list, where there is anything.
void require_supported(const Graph& graph, const LoweringOptions& options);

}  // namespace tonnx
