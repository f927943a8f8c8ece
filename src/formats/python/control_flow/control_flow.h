// control_flow.h - branches and loops on their way to Python: which form they take, and what they use of the code
// around them.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tonnx::python {

/// Whether it is the node `tonnx::op`.
bool is_tonnx(const Node& node, std::string_view op);
/// A branch or a loop: a node with graphs inside it.
bool is_control(const Node& node);
const Graph& graph_of(const Node& node, std::string_view name);

/// The values of graphs around that the graphs inside a node use, constants left out.
std::vector<const Value*> captured_by(const Node& node);

/// A loop, taken apart.
struct LoopParts {
  const Graph& body;
  const AttrList& initial;
  std::string count;  // empty: no limit
  const Value* keep_on = nullptr;
  size_t scans;
};

/// What torch.cond asks for: tensors of the same type and rank from both branches, as far as that is known.
bool can_be_cond(const Node& node);
/// torch.while_loop, which torch.export takes where only the run tells when the loop ends, asks for tensors that keep
/// their type, and stacks nothing. It counts in a tensor.
bool can_be_while(const Node& node, const LoopParts& parts);

}  // namespace tonnx::python
