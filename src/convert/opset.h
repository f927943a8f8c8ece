// opset.h - brings nodes from one opset to another by the history of their operators.
#pragma once
#include <string>
#include <vector>

#include "ir/model.h"

namespace tonnx {

/// Brings the model to another opset of ai.onnx, up or down, touching only nodes whose operator changed in between.
/// Throws Unsupported with the list of all nodes that cannot be brought there.
void change_opset(Model& model, int64_t target);

/// A node that cannot be brought to an opset.
struct OpsetObstacle {
  std::string op;
  int64_t version = 0;  // of the operator, as the node has it
  std::string node;     // its name, or its first output where it has none
  std::string why;
};
/// All of them. The model is brought as far as it can be, and of no use afterwards where there are any. Throws
/// Unsupported where the opset is not known.
std::vector<OpsetObstacle> find_opset_obstacles(Model& model, int64_t target);

/// The IR version that brought each opset, so that a runtime of that time takes the file.
int64_t least_ir_version(int64_t opset);

/// Brings nodes that follow another opset of ai.onnx than the model does, such as those of functions, to the model's.
void align_opset(Model& model);

/// Brings one node, as the newest opset has it, to an older one. False where that cannot say it; what the steps made
/// until then is left behind, unused.
bool bring_down(Node& node, int64_t target);

}  // namespace tonnx
