// statements.cpp - turns a graph into statements.
#include "formats/python/statements.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/budget.h"
#include "formats/python/block.h"
#include "formats/python/control_flow.h"
#include "formats/python/control_flow_writer.h"

namespace tonnx::python {
namespace {

/// `y, (h, c)`, or `y, _` where nobody wants what is inside.
std::vector<std::string> nested_targets(const std::vector<std::string>& targets) {
  const std::vector<std::string> inner(targets.begin() + 1, targets.end());
  const bool is_unused = std::all_of(inner.begin(), inner.end(), [](const std::string& name) { return name == "_"; });
  return {targets[0], is_unused ? "_" : python_tuple(inner)};
}

std::unordered_map<const Value*, std::string> constant_texts(const ModuleTree& tree) {
  std::unordered_map<const Value*, std::string> result;
  for (const StateEntry& tensor : tree.tensors) result[tensor.value] = "self." + tensor.name;
  for (const Submodule& module : tree.submodules) {
    for (const StateEntry& entry : module.state)
      result[entry.value] = fmt::format("self.{}.{}{}", module.name, entry.name, entry.transposed ? ".t()" : "");
  }
  return result;
}

/// Names the parameters of forward; new tensors are made where the first of them is.
std::vector<std::string> name_parameters(const Graph& graph, Scope& scope) {
  std::vector<std::string> names;
  for (const Value* input : graph.inputs()) {
    std::string hint = identifier(input->name);
    if (hint.empty() || is_made_up(input->name)) hint = graph.inputs().size() == 1 ? "x" : "input";
    names.push_back(scope.parameters.add(hint));
    if (scope.device.empty() && input->type.is_tensor()) scope.device = names.back() + ".device";
  }
  return names;
}

}  // namespace

BlockWriter::BlockWriter(const Graph& graph, const Scope& scope, Forward& result)
    : graph_(graph),
      scope_(scope),
      result_(result),
      level_(0),
      positions_(positions_of(graph)),
      liveness_(positions_, nesting_),
      variables_(liveness_, scope_.parameters, nullptr, 0),
      expressions_(scope_, nesting_, variables_, nullptr) {
  for (size_t i = 0; i < graph.inputs().size(); ++i) variables_.set(graph.inputs()[i], result.parameters[i]);
  nesting_.choose(graph_, positions_, expressions_, /*is_forward=*/true);
  liveness_.find_last_uses(graph_);
}

BlockWriter::BlockWriter(const Graph& graph, BlockWriter& outer, const Node& owner)
    : graph_(graph),
      scope_(outer.scope_),
      result_(outer.result_),
      level_(outer.level_ + 1),
      positions_(positions_of(graph)),
      liveness_(positions_, nesting_),
      variables_(liveness_, scope_.parameters, &outer.variables_, outer.liveness_.position_of(owner)),
      expressions_(scope_, nesting_, variables_, &outer.expressions_) {
  nesting_.choose(graph_, positions_, expressions_, /*is_forward=*/false);
  liveness_.find_last_uses(graph_);
}

void BlockWriter::add(std::string text, int deeper) {
  budget().take(Resource::Text, static_cast<int64_t>(text.size()));
  result_.statements.push_back({level_ + deeper, std::move(text)});
}

void BlockWriter::add_gap() {
  if (!result_.statements.empty() && result_.statements.back().level == level_) add("");
}

std::vector<std::string> BlockWriter::output_texts() const {
  std::vector<std::string> texts;
  for (const Value* output : graph_.outputs()) texts.push_back(text_of(output));
  return texts;
}

void BlockWriter::write_assignment(const std::vector<std::string>& names) {
  std::vector<std::string> targets, texts;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string text = text_of(graph_.outputs()[i]);
    if (names[i].empty() || text == names[i]) continue;
    targets.push_back(names[i]);
    texts.push_back(std::move(text));
  }
  if (!targets.empty()) add(fmt::format("{} = {}", joined(targets), joined(texts)));
}

void BlockWriter::write_statements() {
  for (const Node& node : graph_) {
    if (nesting_.contains(&node)) continue;
    if (is_control(node))
      write_control_flow(*this, node);
    else
      write_statement(node);
  }
}

void BlockWriter::write_statement(const Node& node) {
  const std::string text = expressions_.expression(node).first;
  std::vector<std::string> targets;
  for (const Value* output : node.outputs()) {
    const std::string name = variables_.choose(output, node);
    if (name != "_") variables_.set(output, name);
    targets.push_back(name);
  }
  const ModuleTree& tree = scope_.tree;
  if (const auto module = tree.submodule_of.find(&node);
      module != tree.submodule_of.end() && tree.submodules[module->second].spec.nests_results) {
    targets = nested_targets(targets);
  }
  const AtenOpEntry* entry = find_aten_op(node);
  const bool is_nested = entry && entry->signature.outputs.size() == 2 && entry->signature.outputs[1].is_list;
  if (is_nested) targets = nested_targets(targets);  // a tensor, and a list of them
  const bool unpacks_one = targets.size() == 1 && entry && entry->signature.outputs[0].is_list &&
                           entry->signature.outputs[0].type == "Tensor";
  add(fmt::format("{} = {}", unpacks_one ? fmt::format("({},)", targets[0]) : joined(targets), text));
}

Forward write_forward(const Graph& graph, const ModuleTree& tree, const std::string& state_name) {
  Scope scope{tree, constant_texts(tree), {}, {}};
  Forward result{name_parameters(graph, scope), {}};
  if (scope.device.empty() && !state_name.empty()) scope.device = "self." + state_name + ".device";
  BlockWriter block(graph, scope, result);
  block.write_statements();
  block.write_return(block.output_texts());
  return result;
}

}  // namespace tonnx::python
