// to_code_copies.h - brings what only programs of torch.export have to the form that a person would write.
#pragma once
#include "ir/graph.h"

namespace tonnx {

/// Copies, views and conversions that change no value go away, views become reshapes, and numbers lose the names that
/// tracing gave them; integers are not trained. The graph is functional: who shares whose memory does not matter.
void drop_copies(Graph& graph);

}  // namespace tonnx
