// onnx_op.h - nodes of ONNX itself among those of a program: what symbolics of the user's own asked for.
#pragma once
#include "formats/pt2/archive.h"
#include "ir/graph.h"

namespace tonnx::pt2 {

/// The argument `attributes` of such a node is JSON, `{"alpha": {"kind": "f", "value": 1.0}}`; each becomes an argument
/// `attr.alpha` of the node. Tensors are names of constants of the program.
void read_onnx_op(Node& node, const Pt2Archive& archive);

}  // namespace tonnx::pt2
