// node_order.h - nodes that the file does not list in the order in which they run.
#pragma once
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tonnx::onnx {

/// What a node reads: its inputs, and what the graphs in it take from around them. The names lie in `node`.
std::vector<std::string_view> names_read_by(const Bytes& node);

/// The nodes, each behind those that make what it reads, and otherwise as they were. The standard asks files for such
/// an order, but ONNX Runtime does not, and tools write others. Throws InvalidModel where there is a cycle.
std::vector<Bytes> in_running_order(const std::vector<Bytes>& nodes);

}  // namespace tonnx::onnx
