// opset.h - brings nodes from one opset to another by the history of their operators, and infers types on the way up.
#pragma once
#include <functional>

#include "ir/model.h"

namespace tonnx {

/// Brings every node of ai.onnx to kNewestOpset and infers types and shapes, in one walk. Nodes that `leave_alone`
/// accepts, and those of operators that the tables do not have, stay as they are.
void upgrade_and_infer(Graph& graph, const std::function<bool(const Node&)>& leave_alone = nullptr);

/// Brings the model to another opset of ai.onnx, up or down, touching only nodes whose operator changed in between.
/// Throws Unsupported with the list of all nodes that cannot be brought there.
void change_opset(Model& model, int64_t target);

}  // namespace tonnx
