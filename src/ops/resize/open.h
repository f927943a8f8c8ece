// open.h - how the nodes of this family follow a size that becomes open.
#pragma once
#include "ops/frame/open_node.h"

namespace tonnx {

void open_resize(OpenNode& n);

}  // namespace tonnx
