// one_pass.cpp - one pass of the table at a time, and what a graph that somebody wrote has to be before it.
#include "convert/one_pass.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "ir/text.h"
#include "ops/frame/aten_check.h"
#include "ops/frame/op_def.h"

namespace tonnx {
namespace {

/// What a pass may change: the text of the graph, and which tensors it holds.
std::pair<std::string, std::set<const Tensor*>> state_of(const Graph& graph) {
  std::set<const Tensor*> tensors;
  for (const Value* value : graph.initializers()) tensors.insert(value->constant.get());
  return {print(graph, {.max_elements = 0, .notes = false}), std::move(tensors)};
}

bool is_branch(const Node& node) { return node.domain == "tonnx" && node.op == "cond"; }

/// The condition may be a plain bool, which the signature does not say.
void check_branches(const Node& node) {
  require(node.inputs().size() == 1 && node.input(0) != nullptr, "a branch has one condition");
  for (const char* name : {"then_branch", "else_branch"}) {
    const Attribute* found = node.find_attribute(name);
    const auto* graph = found ? found->value.get<GraphPtr>() : nullptr;
    require(graph && *graph && (*graph)->inputs().empty() && (*graph)->outputs().size() == node.outputs().size(),
            "the graph '{}' does not give what the branch does", name);
  }
}

void check_calls(const Graph& graph) {
  for (const Node& node : graph) {
    require(node.version == 0 && !node.domain.empty(), "the graph has nodes of ONNX among those of aten: {}",
            node.op.view());
    const AtenOpEntry* entry = find_aten_op(node);
    if (entry != nullptr && is_branch(node))
      check_branches(node);
    else if (entry != nullptr)
      check_call(node, entry->signature, CallsOf::Code);
    for (const GraphPtr& subgraph : subgraphs_of(node)) check_calls(*subgraph);
  }
}

}  // namespace

const Pass& find_pass(std::string_view name) {
  const auto passes = pass_table();
  const auto at = std::find_if(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
  if (at != passes.end()) return *at;
  Names known;
  for (const Pass& pass : passes) known.push_back(pass.name);
  fail_invalid("there is no pass '{}'; there are: {}", name, nearest_list(name, known));
}

bool run_aten_pass(Graph& graph, const Pass& pass) {
  const auto before = state_of(graph);
  in_context([&] { return fmt::format("in pass {}", pass.name); }, [&] { pass.on_aten(graph); });
  expect_dialect(graph, pass.dialect);
  return state_of(graph) != before;
}

bool is_aten(const Graph& graph) {
  for (const Node& node : graph) {
    if (node.version == 0 && !node.domain.empty()) return true;
  }
  return false;
}

void check_written_code(const Graph& graph) {
  check_calls(graph);
  try {
    check_dialect(graph, Dialect::Python);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Internal) throw;
    fail_invalid("{}", e.what());  // here it is the text that is wrong
  }
}

}  // namespace tonnx
