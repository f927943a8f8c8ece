// open.h - how the nodes of this family follow a size that becomes open.
#pragma once
#include "ops/frame/open_node.h"

namespace tonnx {

void open_reshape(OpenNode& n);
void open_flatten(OpenNode& n);
void open_expand(OpenNode& n);
void open_squeeze(OpenNode& n);

}  // namespace tonnx
