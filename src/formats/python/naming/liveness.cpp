// liveness.cpp - finds the last statement that uses each value.
#include "formats/python/naming/liveness.h"

#include "formats/python/control_flow/control_flow.h"

namespace tonnx::python {

int Liveness::last_use(const Value* value) const {
  const auto at = last_use_.find(value);
  return at == last_use_.end() ? -1 : at->second;
}

void Liveness::visit_variables(const Node& node, const std::function<void(const Value*)>& use) const {
  for (const Value* input : node.inputs()) {
    if (input == nullptr || input->constant != nullptr) continue;
    if (nesting_.is_inside(input)) {
      visit_variables(*input->producer, use);
    } else {
      use(input);
    }
  }
  if (is_control(node)) {
    for (const Value* value : captured_by(node)) use(value);
  }
}

void Liveness::find_last_uses(const Graph& graph) {
  for (const Node& node : graph) {
    if (nesting_.contains(&node)) continue;
    visit_variables(node, [&](const Value* value) { last_use_[value] = position_of(node); });
  }
  const int end = static_cast<int>(positions_.size());
  for (const Value* output : graph.outputs()) {
    last_use_[output] = end;
    if (nesting_.is_inside(output))
      visit_variables(*output->producer, [&](const Value* value) { last_use_[value] = end; });
  }
}

}  // namespace tonnx::python
