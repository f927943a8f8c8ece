// types.cpp - types of what recurrent layers give.
#include "ops/recurrent/rows.h"

namespace tonnx {
namespace {

/// The outputs of all steps, then the last states, which are of the shape of the first ones.
void run_steps(TypeNode& n, const std::vector<const Type*>& states) {
  const Type* input = n.tensor("input");
  if (input == nullptr) return;
  const bool both = n.args().flag("bidirectional");
  const Type* state = states.empty() ? nullptr : states[0];
  MaybeShape shape = input->shape;
  if (shape && state && state->shape && !shape->empty() && !state->shape->empty()) {
    shape->back() = state->shape->back() * Dim(both ? 2 : 1);
  } else {
    shape = std::nullopt;
  }
  n.set(0, input->dtype, shape);
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i] != nullptr) n.set(i + 1, states[i]->dtype, states[i]->shape);
  }
}

}  // namespace

void types_lstm(TypeNode& n) { run_steps(n, n.tensors("hx")); }
void types_recurrent(TypeNode& n) { run_steps(n, {n.tensor("hx")}); }

void types_cell(TypeNode& n) {
  std::vector<const Type*> states = n.tensors("hx");
  if (const Type* state = n.tensor("hx")) states = {state};
  for (size_t i = 0; i < states.size() && i < n.found().size(); ++i) {
    if (states[i] != nullptr) n.set(i, states[i]->dtype, states[i]->shape);
  }
}

}  // namespace tonnx
