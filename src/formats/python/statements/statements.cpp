// statements.cpp - turns a graph into statements.
#include "formats/python/statements/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/budget.h"
#include "formats/python/control_flow/control_flow.h"
#include "formats/python/statements/block.h"
#include "modules/loops.h"

namespace tonnx::python {
namespace {

constexpr size_t kShortList = 60;  // one that stands in the head of a loop

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

/// Names the parameters of forward; new tensors are made where the first of them is. A tensor of no dimensions says
/// little: PyTorch takes one of the processor beside others of a device, and whoever calls may give a plain number.
std::vector<std::string> name_parameters(const Graph& graph, Scope& scope, bool is_model) {
  std::vector<std::string> names;
  NameSet own;
  NameSet& taken = is_model ? scope.parameters : own;
  std::string scalar;
  for (const Value* input : graph.inputs()) {
    std::string hint = identifier(input->name);
    if (hint.empty() || (is_model && is_made_up(input->name))) hint = graph.inputs().size() == 1 ? "x" : "input";
    names.push_back(taken.add(hint));
    if (!input->type.is_tensor()) continue;
    std::string& device = input->type.rank() == 0 ? scalar : scope.device;
    if (device.empty()) device = names.back() + ".device";
  }
  if (scope.device.empty()) scope.device = scalar;
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

size_t BlockWriter::whole_list_at(size_t at) const {
  const auto& outputs = graph_.outputs();
  const auto place = nesting_.is_inside(outputs[at]) ? place_in_list(*outputs[at]) : std::nullopt;
  if (!place || place->index != 0) return 0;
  const LoopOfCalls loop = loop_of(*place->loop);
  const size_t count = loop.calls * loop.kept.size();
  if (at + count > outputs.size()) return 0;
  const std::vector<const Value*> values(outputs.begin() + static_cast<ptrdiff_t>(at),
                                         outputs.begin() + static_cast<ptrdiff_t>(at + count));
  return whole_list(values).empty() ? 0 : count;
}

std::vector<std::string> BlockWriter::output_texts() const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const size_t count = whole_list_at(i);
    if (count == 0) {
      texts.push_back(text_of(graph_.outputs()[i]));
      continue;
    }
    const std::string list = text_of(graph_.outputs()[i]->producer->input(0));
    texts.push_back(count == graph_.outputs().size() ? fmt::format("tuple({})", list) : "*" + list);
    i += count - 1;
  }
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
  add(fmt::format("{} = {}", gives_list_of_one(node) ? fmt::format("({},)", targets[0]) : joined(targets), text));
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

/// What the loop goes over beside the members: `zip(self.layers, past)`, where each has arguments of its own.
BlockWriter::Walk BlockWriter::walk_of(const Node& node, const LoopOfCalls& loop, const std::string& members,
                                       ChosenNames& others) {
  const int position = liveness_.position_of(node);
  const size_t first = node.inputs().size() - (loop.calls - 1) * loop.given.size();  // of the arguments of the others
  Walk walk;
  std::vector<std::string> lists{members}, targets, grouped;
  std::vector<std::vector<std::string>> rows(loop.calls);
  for (size_t g = 0; g < loop.given.size(); ++g) {
    std::vector<const Value*> values{node.input(static_cast<size_t>(loop.given[g]))};
    for (size_t i = 1; i < loop.calls; ++i) values.push_back(node.input(first + (i - 1) * loop.given.size() + g));
    const std::string& word = loop.given_words[g];
    walk.arguments.push_back(word.empty() ? variables_.choose_early(*values[0], position, others)
                                          : variables_.choose_word(word, position, others));
    if (std::string whole = whole_list(values); !whole.empty()) {
      targets.push_back(walk.arguments.back());
      lists.push_back(std::move(whole));
      continue;
    }
    grouped.push_back(walk.arguments.back());
    for (size_t i = 0; i < loop.calls; ++i) rows[i].push_back(text_of(values[i]));
  }
  if (!grouped.empty()) {
    std::vector<std::string> texts;
    for (const auto& row : rows) texts.push_back(row.size() == 1 ? row[0] : python_tuple(row));
    targets.push_back(grouped.size() == 1 ? grouped[0] : python_tuple(grouped));
    lists.push_back(fmt::format("[{}]", joined(texts)));
    if (lists.back().size() > kShortList) {
      const std::string name =
          variables_.choose_word(loop.list_word.empty() ? "arguments" : loop.list_word, position, others);
      add(fmt::format("{} = {}", name, std::exchange(lists.back(), name)));
    }
  }
  const std::string each = variables_.choose_word(word_for_one_of(loop.word), position, others);
  walk.call = each + loop.method;
  targets.insert(targets.begin(), each);
  walk.head = fmt::format("for {} in {}:", joined(targets),
                          lists.size() == 1 ? lists[0] : fmt::format("zip({})", joined(lists)));
  return walk;
}

/// `outputs` or `reversed(outputs)`, where the values are all that an earlier loop has put there; empty elsewhere.
std::string BlockWriter::whole_list(const std::vector<const Value*>& values) const {
  const Node* maker = nullptr;
  const auto last = static_cast<int64_t>(values.size()) - 1;
  bool is_forward = true, is_backward = true;
  for (int64_t i = 0; i <= last; ++i) {
    const Value& value = *values[static_cast<size_t>(i)];
    const auto place = place_in_list(value);
    if (!place || (maker != nullptr && place->loop != maker)) return "";
    maker = place->loop;
    if (loop_of_kept(*value.producer) != nullptr && !nesting_.is_inside(&value)) return "";
    is_forward = is_forward && place->index == i;
    is_backward = is_backward && place->index == last - i;
  }
  const LoopOfCalls made = loop_of(*maker);
  if (made.calls * made.kept.size() != values.size()) return "";
  const std::string list = text_of(maker->outputs().back());
  return is_forward ? list : is_backward ? fmt::format("reversed({})", list) : "";
}

void BlockWriter::write_each(const Node& node) {
  const int position = liveness_.position_of(node);
  const LoopOfCalls loop = loop_of(node);
  ChosenNames others;
  std::vector<std::string> arguments, targets(loop.carried.size(), "_"), texts, set;
  const size_t count = node.inputs().size() - (loop.calls - 1) * loop.given.size();
  for (size_t k = 0; k < count; ++k) {
    const bool is_given = std::find(loop.given.begin(), loop.given.end(), static_cast<int64_t>(k)) != loop.given.end();
    arguments.push_back(is_given ? "" : text_of(node.input(k)));
  }
  size_t output = 0;
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    if (loop.carried[i] < 0) continue;
    std::string& argument = arguments[static_cast<size_t>(loop.carried[i])];
    const Value* input = node.input(static_cast<size_t>(loop.carried[i]));
    const bool is_free =
        input->constant == nullptr && liveness_.last_use(input) == position && !scope_.parameters.contains(argument) &&
        std::count(node.inputs().begin(), node.inputs().end(), input) == 1 && variables_.find(input) != nullptr &&
        *variables_.find(input) == argument && !variables_.is_live(argument, position);
    const Value& result = *node.output(output++);
    targets[i] = is_free ? argument : variables_.choose_early(result, position, others);
    if (is_free) continue;
    set.push_back(targets[i]);
    texts.push_back(std::exchange(argument, targets[i]));
  }
  if (!set.empty()) add(fmt::format("{} = {}", joined(set), joined(texts)));
  const std::string& list = scope_.tree.submodules[scope_.tree.submodule_of.at(&node)].name;
  const Walk walk = walk_of(node, loop, "self." + list, others);
  for (size_t g = 0; g < loop.given.size(); ++g) arguments[static_cast<size_t>(loop.given[g])] = walk.arguments[g];
  std::vector<std::string> kept;
  for (size_t i = 0; i < loop.kept.size(); ++i) {
    std::string& target = targets[static_cast<size_t>(loop.kept[i])];
    const std::string& word = loop.kept_words[i];
    if (target == "_")
      target = word.empty() ? variables_.choose_early(*node.output(0), position, others)
                            : variables_.choose_word(word, position, others);
    const Node* step = loop.kept_steps[i];
    kept.push_back(step ? expressions_.spelled_with(*step, [&](const Value*) { return target; }) : target);
  }
  const Value* kept_list = loop.kept.empty() ? nullptr : node.outputs().back();
  std::string name;
  if (kept_list != nullptr) {
    name = variables_.choose_word(identifier(kept_list->name), position, others);
    add(fmt::format("{} = []", name));
  }
  add(walk.head);
  std::string text = fmt::format("{}({})", walk.call, joined(arguments));
  if (loop.step != nullptr) {
    const Value* argument = loop.step->graph->inputs()[0];
    text = expressions_.spelled_with(*loop.step,
                                     [&](const Value* value) { return value == argument ? targets[0] : text; });
  }
  add(fmt::format("{} = {}", joined(targets), text), 1);
  if (kept_list != nullptr)
    add(kept.size() == 1 ? fmt::format("{}.append({})", name, kept[0]) : fmt::format("{} += [{}]", name, joined(kept)),
        1);
  output = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (loop.carried[i] < 0) continue;
    const Value* result = node.output(output++);
    if (liveness_.is_used(result)) variables_.set(result, targets[i]);
  }
  if (kept_list != nullptr) variables_.set(kept_list, name);
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
