// control_flow_writer.h - branches and loops as statements.
#pragma once
#include "formats/python/statements/block.h"

namespace tonnx::python {

/// Writes tonnx::cond or tonnx::loop, a node of that block, with the blocks inside it.
void write_control_flow(BlockWriter& block, const Node& node);

}  // namespace tonnx::python
