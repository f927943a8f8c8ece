// statements.cpp - turns a graph into statements.
#include "formats/python/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/budget.h"
#include "formats/modules/loops.h"
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
  for (const StateEntry& tensor : tree.tensors)
    result[tensor.value] = fmt::format("self.{}{}", tensor.name, tensor.transposed ? ".t()" : "");
  for (const Submodule& module : tree.submodules) {
    for (const StateEntry& entry : module.state)
      result[entry.value] = fmt::format("self.{}.{}{}", module.name, entry.name, entry.transposed ? ".t()" : "");
  }
  return result;
}

std::unordered_map<const Value*, std::string> turned_texts(const ModuleTree& tree) {
  std::unordered_map<const Value*, std::string> result;
  for (const StateEntry& tensor : tree.tensors) {
    if (tensor.transposed) result[tensor.value] = "self." + tensor.name;
  }
  return result;
}

/// `encoder.layers` and `encoder["layers"]` give `layer`.
std::string word_for_one_of(const std::string& list) {
  const size_t end = list.ends_with("\"]") ? list.size() - 2 : list.size();
  size_t start = end;
  while (start > 0 && (std::isalnum(static_cast<unsigned char>(list[start - 1])) || list[start - 1] == '_')) --start;
  std::string word = identifier(list.substr(start, end - start));
  if (word.size() > 3 && word.ends_with('s')) word.pop_back();
  return word.size() < 3 ? "block" : word;
}

/// Names the parameters of forward; new tensors are made where the first of them is.
std::vector<std::string> name_parameters(const Graph& graph, Scope& scope, bool is_model) {
  std::vector<std::string> names;
  NameSet own;
  NameSet& taken = is_model ? scope.parameters : own;
  for (const Value* input : graph.inputs()) {
    std::string hint = identifier(input->name);
    if (hint.empty() || (is_model && is_made_up(input->name))) hint = graph.inputs().size() == 1 ? "x" : "input";
    names.push_back(taken.add(hint));
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
      variables_(liveness_, scope_.parameters, scope_.tree.words, nullptr, 0),
      expressions_(scope_, nesting_, variables_, nullptr) {
  for (size_t i = 0; i < graph.inputs().size(); ++i) variables_.set(graph.inputs()[i], result.parameters[i]);
  nesting_.choose(graph_, positions_, expressions_, level_);
  liveness_.find_last_uses(graph_);
}

BlockWriter::BlockWriter(const Graph& graph, BlockWriter& outer, const Node& owner)
    : graph_(graph),
      scope_(outer.scope_),
      result_(outer.result_),
      level_(outer.level_ + 1),
      positions_(positions_of(graph)),
      liveness_(positions_, nesting_),
      variables_(liveness_, scope_.parameters, scope_.tree.words, &outer.variables_,
                 outer.liveness_.position_of(owner)),
      expressions_(scope_, nesting_, variables_, &outer.expressions_) {
  nesting_.choose(graph_, positions_, expressions_, level_);
  liveness_.find_last_uses(graph_);
}

void BlockWriter::add(std::string text, int deeper) {
  budget().take(Resource::Text, static_cast<int64_t>(text.size()));
  result_.statements.push_back({level_ + deeper, std::move(text)});
}

void BlockWriter::add_gap() {
  if (!result_.statements.empty() && result_.statements.back().level == level_) add("");
}

/// `x, y = self.decoder(z)` and `return x, y` are one statement.
void BlockWriter::write_return(const std::vector<std::string>& texts) {
  const std::string all = joined(texts);
  if (!result_.statements.empty() && result_.statements.back().level == level_) {
    std::string& last = result_.statements.back().text;
    const std::string targets = all + " = ";
    const std::string_view value = std::string_view(last).substr(std::min(targets.size(), last.size()));
    const bool is_whole = texts.size() == 1 || value.starts_with("self.") || value.starts_with("torch.cond(");
    if (last.starts_with(targets) && is_whole) {
      last.replace(0, targets.size(), "return ");
      return;
    }
  }
  add("return " + all);
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
    if (nesting_.contains(&node) || nesting_.is_done_before(&node)) continue;
    if (const Projections* projections = nesting_.find_projections(&node))
      write_projections(*projections, node);
    else if (is_control(node))
      write_control_flow(*this, node);
    else if (is_call_each(node))
      write_each(node);
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

void BlockWriter::write_projections(const Projections& projections, const Node& first) {
  std::vector<std::string> targets, layers;
  for (size_t i = 0; i < projections.nodes.size(); ++i) {
    const Value* output = projections.nodes[i]->output(0);
    targets.push_back(variables_.choose(output, first));
    variables_.set(output, targets.back());
    layers.push_back(expressions_.name_of_layer(*projections.layers[i]));
  }
  const std::string text = expressions_.expression(first).first;
  const std::string name = expressions_.name_of_layer(*projections.layers[static_cast<size_t>(
      std::find(projections.nodes.begin(), projections.nodes.end(), &first) - projections.nodes.begin())]);
  const std::string move = text.substr(name.size());
  const char* each = move.starts_with("(f)") ? "g" : "f";
  add(fmt::format("{} = ({}{} for {} in ({}))", joined(targets), each, move, each, joined(layers)));
}

void BlockWriter::write_each(const Node& node) {
  const int position = liveness_.position_of(node);
  const auto& carried = *node.find_attribute("carried")->value.get<std::vector<int64_t>>();
  const std::string& list = scope_.tree.submodules[scope_.tree.submodule_of.at(&node)].name;
  ChosenNames others;
  std::vector<std::string> arguments, targets(carried.size()), texts, set;
  for (const Value* input : node.inputs()) arguments.push_back(text_of(input));
  for (size_t i = 0; i < carried.size(); ++i) {
    std::string& argument = arguments[static_cast<size_t>(carried[i])];
    const Value* input = node.input(static_cast<size_t>(carried[i]));
    const bool is_free = input->constant == nullptr && liveness_.last_use(input) == position &&
                         !scope_.parameters.contains(argument) &&
                         std::count(node.inputs().begin(), node.inputs().end(), input) == 1 &&
                         variables_.find(input) != nullptr && *variables_.find(input) == argument;
    targets[i] = is_free ? argument : variables_.choose_early(*node.output(i), position, others);
    if (is_free) continue;
    set.push_back(targets[i]);
    texts.push_back(std::exchange(argument, targets[i]));
  }
  if (!set.empty()) add(fmt::format("{} = {}", joined(set), joined(texts)));
  const auto& word = *node.find_attribute("word")->value.get<std::string>();
  const std::string each = variables_.choose_word(word_for_one_of(word), position, others);
  add(fmt::format("for {} in self.{}:", each, list));
  std::string text = fmt::format("{}({})", each, joined(arguments));
  if (const Node* step = step_of_loop(node)) {
    const Value* argument = step->graph->inputs()[0];
    text = expressions_.spelled_with(*step, [&](const Value* value) { return value == argument ? targets[0] : text; });
  }
  add(fmt::format("{} = {}", joined(targets), text), 1);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (liveness_.is_used(node.output(i))) variables_.set(node.output(i), targets[i]);
  }
}

Forward write_forward(const Graph& graph, const ModuleTree& tree, const std::string& state_name, bool is_model) {
  Scope scope{tree, constant_texts(tree), turned_texts(tree), {}, {}};
  Forward result{name_parameters(graph, scope, is_model), {}};
  if (scope.device.empty() && !state_name.empty()) scope.device = "self." + state_name + ".device";
  BlockWriter block(graph, scope, result);
  block.write_statements();
  block.write_return(block.output_texts());
  return result;
}

}  // namespace tonnx::python
