// open.h - how the nodes of this family follow a size that becomes open.
#pragma once
#include "ops/frame/open_node.h"

namespace tonnx {

void open_concat(OpenNode& n);
void open_split(OpenNode& n);
void open_slice(OpenNode& n);

}  // namespace tonnx
