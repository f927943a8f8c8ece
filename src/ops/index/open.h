// open.h - how the nodes of this family follow a size that becomes open.
#pragma once
#include "ops/frame/open_node.h"

namespace tonnx {

void open_gather(OpenNode& n);
void open_gather_elements(OpenNode& n);
void open_gather_nd(OpenNode& n);
void open_scatter_elements(OpenNode& n);
void open_scatter_nd(OpenNode& n);

}  // namespace tonnx
