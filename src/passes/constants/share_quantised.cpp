// share_quantised.cpp - quantised weights that a file has several times, as those of both branches of a decoder, are
// one.
#include "base/computed.h"
#include "ops/frame/node_facts.h"
#include "passes/frame/equal_tensors.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr size_t kManyBytes = 256;  // smaller ones are constants of the layers that they belong to

/// Nobody trains integers, so that layers may have them in common.
bool is_quantised_weight(const Value& value) {
  return value.constant && !value.uses.empty() && !value.sparse && is_integer(value.constant->dtype) &&
         info(value.constant->dtype).bits <= 8 && value.constant->data.size() >= kManyBytes &&
         !is_graph_output(&value) && !is_computed(value.constant->data);
}

}  // namespace

void share_quantised(Graph& graph) {
  EqualTensors known;
  for (Value* value : graph.initializers()) {
    if (!is_quantised_weight(*value)) continue;
    if (Value* same = known.find_or_add(value)) graph.replace_uses(value, same);
  }
}

}  // namespace tonnx
