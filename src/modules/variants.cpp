// variants.cpp - brings parts of a model that differ in one step to the same form.
#include "modules/variants.h"

#include <algorithm>

namespace tonnx {
namespace {

const Symbol kTonnxDomain("tonnx"), kOptionalAdd("optional_add"), kPartCall("call_part");

std::optional<size_t> argument_number(const Graph& graph, const Value* value) {
  const auto at = std::find(graph.inputs().begin(), graph.inputs().end(), value);
  if (at == graph.inputs().end()) return std::nullopt;
  return static_cast<size_t>(at - graph.inputs().begin());
}

bool is_plain_sum(const Node& node) {
  if (node.domain != "aten" || node.op != "add" || node.overload != "Tensor" || node.inputs().size() != 2) return false;
  return std::none_of(node.attributes.begin(), node.attributes.end(),
                      [](const Attribute& each) { return each.value.get<Operand>() == nullptr; });
}

}  // namespace

bool is_optional_add(const Node& node) { return node.domain == kTonnxDomain && node.op == kOptionalAdd; }

size_t shortcut_input(const Node& node) {
  return static_cast<size_t>(*node.find_attribute("shortcut")->value.get<int64_t>());
}

std::optional<Shortcut> find_shortcut(const ModulePart& part) {
  if (!part.graph || part.graph->outputs().size() != 1) return std::nullopt;
  const Value* result = part.graph->outputs()[0];
  const Node* sum = result->producer;
  if (sum == nullptr || sum->graph != part.graph.get() || !is_plain_sum(*sum) || result->uses.size() != 1)
    return std::nullopt;
  const auto first = argument_number(*part.graph, sum->input(0)), second = argument_number(*part.graph, sum->input(1));
  if (first.has_value() == second.has_value() || sum->input(first ? 1 : 0)->constant) return std::nullopt;
  return first ? Shortcut{*first, 0} : Shortcut{*second, 1};
}

Undo make_shortcut_optional(ModulePart& part, const Shortcut& shortcut) {
  Node* sum = part.graph->outputs()[0]->producer;
  const Symbol domain = sum->domain, op = sum->op, overload = sum->overload;
  std::vector<Attribute> attributes = std::move(sum->attributes);
  sum->attributes.clear();
  sum->domain = kTonnxDomain;
  sum->op = kOptionalAdd;
  sum->overload = Symbol();
  sum->set_attribute("shortcut", static_cast<int64_t>(shortcut.input_index));
  return [sum, domain, op, overload, attributes] {
    sum->domain = domain;
    sum->op = op;
    sum->overload = overload;
    sum->attributes = attributes;
  };
}

Undo add_optional_shortcut(ModulePart& part, const Shortcut& shortcut) {
  Graph& graph = *part.graph;
  Value* result = graph.outputs()[0];
  Value* around = graph.inputs()[shortcut.argument];
  Node* sum = graph.add_node(kTonnxDomain, kOptionalAdd);
  sum->add_input(shortcut.input_index == 0 ? around : result);
  sum->add_input(shortcut.input_index == 0 ? result : around);
  sum->set_attribute("shortcut", static_cast<int64_t>(shortcut.input_index));
  graph.set_output(0, graph.add_output_to(sum, graph.unique_name("sum"), result->type));
  return [&graph, sum, result] {
    graph.set_output(0, result);
    graph.erase(sum);
  };
}

bool is_left_alone(const ModulePart& part, const std::string& member) {
  const auto is_it = [&](const auto& called) {
    return called.name.starts_with(member) && (called.name.size() == member.size() ||
                                               called.name[member.size()] == '.' || called.name[member.size()] == '[');
  };
  const auto mentions = [&](const Method& method) {
    return std::any_of(method.calls.submodules.begin(), method.calls.submodules.end(), is_it) ||
           std::any_of(method.calls.tensors.begin(), method.calls.tensors.end(), is_it);
  };
  return !mentions(part) &&
         std::none_of(part.others.begin(), part.others.end(), [&](const auto& method) { return mentions(*method); });
}

std::optional<size_t> argument_of_member(const ModulePart& part, const std::string& member) {
  const Node* call = nullptr;
  for (const auto& [node, index] : part.calls.submodule_of) {
    if (part.calls.submodules[index].name != member) continue;
    if (call != nullptr) return std::nullopt;
    call = node;
  }
  if (call == nullptr || call->graph != part.graph.get() || !is_call_part(*call) || call->inputs().size() != 1 ||
      call->outputs().size() != 1)
    return std::nullopt;
  return argument_number(*part.graph, call->input(0));
}

std::optional<Undo> add_optional_call(ModulePart& part, const std::string& member, size_t argument, size_t use) {
  Graph& graph = *part.graph;
  Value* value = graph.inputs()[argument];
  if (use >= value->uses.size()) return std::nullopt;
  Node* user = value->uses[use].user;
  if (user == nullptr || user->graph != &graph) return std::nullopt;
  const size_t index = value->uses[use].index;
  Node* call = graph.add_node(kTonnxDomain, kPartCall, user);
  call->add_input(value);
  user->set_input(index, graph.add_output_to(call, graph.unique_name(member), value->type));
  ModuleTree& calls = part.calls;
  calls.submodule_of[call] = calls.submodules.size();
  calls.submodules.push_back({member, {}, {}});
  return [&graph, &calls, call, user, index, value] {
    calls.submodule_of.erase(call);
    calls.submodules.pop_back();
    user->set_input(index, value);
    graph.erase(call);
  };
}

}  // namespace tonnx
