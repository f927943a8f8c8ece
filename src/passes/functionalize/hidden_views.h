// hidden_views.h - operators that may give a view, though their schemas do not say so.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Makes a node that only looks at its one tensor, such as an einsum of it that sums nothing, the view that it is.
void show_view(Node& node);

}  // namespace tonnx
