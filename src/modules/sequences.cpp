// sequences.cpp - finds members of lists that are called in their order.
#include "modules/sequences.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "modules/loops.h"
#include "modules/places.h"
#include "modules/plain_layers.h"

namespace tonnx {
namespace {

using Kind = ModulePart::Kind;

const Symbol kHouse("tonnx"), kCall("call_part");
constexpr std::string_view kChildren = "children()";

/// One member of a list, and the node that calls it.
struct Step {
  const Member* member = nullptr;
  Node* call = nullptr;
};

class SequenceFinder {
 public:
  SequenceFinder(ModulePart& part, Method& method) : part_(part), calls_of_(method.calls), graph_(*method.graph) {
    note_calls(graph_);
  }

  void run() {
    for (Member& member : part_.members) {
      if (member.part) visit(*member.part, member.name);
    }
    make_loop_of_children();
    remove_unused_nodes(graph_);
  }

 private:
  void note_calls(const Graph& graph) {
    for (Node& node : graph) {
      const auto call = calls_of_.submodule_of.find(&node);
      if (call != calls_of_.submodule_of.end()) calls_[calls_of_.submodules[call->second].name].push_back(&node);
      for (const GraphPtr& inner : subgraphs_of(node)) note_calls(*inner);
    }
  }

  void visit(ModulePart& part, const std::string& access) {
    if (part.kind == Kind::Class && part.graph) return;  // it has found its own
    for (Member& member : part.members) {
      if (!member.part) continue;
      visit(*member.part, access + access_step(part.kind, member.name));
    }
    if (part.kind != Kind::List || make_sequential(part, access)) return;
    for (size_t i = 0; i < part.members.size(); ++i) {
      if (part.members[i].name != std::to_string(i)) return;
    }
    make_loop(part, access, access);
  }

  /// The only calls of the members, in their order; empty where one is called elsewhere, or not at all.
  std::vector<Step> steps_of(const ModulePart& list, const std::string& access) const {
    std::vector<Step> steps;
    for (const Member& member : list.members) {
      const std::string step = access_step(list.kind, member.name);
      const auto calls = calls_.find(access.empty() ? step.substr(1) : access + step);
      if (calls == calls_.end() || calls->second.size() != 1 || calls->second[0]->graph != &graph_) return {};
      steps.push_back({&member, calls->second[0]});
    }
    return steps;
  }

  /// What the call takes, where that is one value beside the weights of the layer.
  Value* only_input(const Node& call) const {
    Value* found = nullptr;
    for (Value* input : call.inputs()) {
      if (input == nullptr || is_weight(call, *input)) continue;
      if (found != nullptr) return nullptr;
      found = input;
    }
    return found;
  }

  /// A constant of the layer itself, as it is or turned.
  bool is_weight(const Node& call, const Value& value) const {
    if (is_call_part(call)) return false;
    const auto own = [&](const Value* constant) {
      const Submodule& layer = calls_of_.submodules[calls_of_.submodule_of.at(&call)];
      return std::any_of(layer.state.begin(), layer.state.end(),
                         [&](const StateEntry& entry) { return entry.value == constant; });
    };
    if (value.constant) return own(&value);
    return value.producer && value.producer->inputs().size() == 1 && value.producer->input(0) &&
           value.producer->input(0)->constant && own(value.producer->input(0));
  }

  /// The nodes between two members, each of which a layer without weights can stand for; nothing where there are
  /// others.
  std::optional<std::vector<Node*>> between(const Node& before, const Node& after) const {
    std::vector<Node*> nodes;
    Value* value = only_input(after);
    while (value != nullptr && value->producer != &before) {
      Node* node = value->producer;
      if (node == nullptr || node->graph != &graph_ || node->outputs().size() != 1 || value->uses.size() != 1 ||
          calls_of_.submodule_of.contains(node) || plain_layer(*node).empty() || nodes.size() > kMostBetween)
        return std::nullopt;
      nodes.insert(nodes.begin(), node);
      value = node->input(0);
    }
    if (value == nullptr || before.outputs().size() != 1 || value->uses.size() != 1) return std::nullopt;
    return nodes;
  }

  /// The number of the node in the list, where its name says one.
  int number_in(const Node& node, const ModulePart& list) const {
    const std::string name = name_within(list.path, node.name, calls_of_.outer_parts);
    return is_index(name) ? std::stoi(name) : -1;
  }

  bool is_plain(const Node* node) const {
    return node != nullptr && node->graph == &graph_ && node->outputs().size() == 1 &&
           !calls_of_.submodule_of.contains(node) && !plain_layer(*node).empty();
  }

  /// Nodes before the first member that have a smaller number; returns what they begin with.
  Value* take_before(const ModulePart& list, Value* value, std::vector<Member>& members) const {
    for (int number = std::stoi(members[0].name); number > 0 && is_plain(value->producer) && value->uses.size() == 1;) {
      const int before = number_in(*value->producer, list);
      if (before < 0 || before >= number) break;
      number = before;
      members.insert(members.begin(), {.name = std::to_string(number), .plain = plain_layer(*value->producer)});
      value = value->producer->input(0);
    }
    return value;
  }

  /// Nodes behind the last member that have a greater number; returns the last of all.
  Node* take_behind(const ModulePart& list, Node* last, std::vector<Member>& members) const {
    for (int number = std::stoi(members.back().name); last->output(0)->uses.size() == 1;) {
      Node* next = last->output(0)->uses[0].user;
      const int behind = is_plain(next) ? number_in(*next, list) : -1;
      if (behind <= number || behind > number + kMostHoles) break;
      number = behind;
      members.push_back({.name = std::to_string(number), .plain = plain_layer(*next)});
      last = next;
    }
    return last;
  }

  bool make_sequential(ModulePart& list, const std::string& access) {
    std::vector<Step> steps = steps_of(list, access);
    if (steps.empty()) return false;
    Value* first = only_input(*steps[0].call);
    if (first == nullptr || steps.back().call->outputs().size() != 1) return false;
    std::vector<Member> members{*steps[0].member};
    for (size_t i = 1; i < steps.size(); ++i) {
      const auto nodes = between(*steps[i - 1].call, *steps[i].call);
      const int index = std::stoi(steps[i - 1].member->name), next = std::stoi(steps[i].member->name);
      if (!nodes || nodes->size() > static_cast<size_t>(next - index - 1)) return false;
      for (size_t k = 0; k < nodes->size(); ++k)
        members.push_back(
            {.name = std::to_string(index + 1 + static_cast<int>(k)), .plain = plain_layer(*(*nodes)[k])});
      members.push_back(*steps[i].member);
    }
    first = take_before(list, first, members);
    if (Node* last = take_behind(list, steps.back().call, members); last != steps.back().call)
      steps.push_back({nullptr, last});
    Node* call = graph_.add_node(kHouse, kCall, steps.back().call);
    call->add_input(first);
    graph_.move_output(steps.back().call->output(0), call, 0);
    replace(steps, call, access);
    list.members = std::move(members);
    list.kind = Kind::Sequential;
    return true;
  }

  /// One node, which has what they gave, in place of all calls.
  void replace(const std::vector<Step>& steps, Node* call, const std::string& access) {
    for (size_t i = steps.size(); i-- > 0;) {
      calls_of_.submodule_of.erase(steps[i].call);
      erase_with_inputs(steps[i].call);
    }
    calls_of_.submodule_of[call] = calls_of_.submodules.size();
    calls_of_.submodules.push_back({access, {}, {}});
    calls_[access].push_back(call);
  }

  /// With the nodes that only it needs: turned weights, and what stood between it and the call before.
  void erase_with_inputs(Node* node) {
    const std::vector<Value*> inputs = node->inputs();
    Graph& graph = *node->graph;
    graph.erase(node);
    for (const Value* input : inputs) {
      Node* producer = input ? input->producer : nullptr;
      if (producer && producer->graph == &graph && input->uses.empty() && producer->outputs().size() == 1 &&
          !calls_of_.submodule_of.contains(producer))
        erase_with_inputs(producer);
    }
  }

  void make_loop(const ModulePart& list, const std::string& access, const std::string& word) {
    make_loops_of(list, access, word, "");
    const std::shared_ptr<ModulePart> first = list.members[0].part;
    for (size_t i = 0; first && i < first->others.size(); ++i)
      make_loops_of(list, access, word, "." + first->others[i]->name);
  }

  /// In each graph that calls this method of all members once.
  void make_loops_of(const ModulePart& list, const std::string& access, const std::string& word,
                     const std::string& method) {
    std::vector<const std::vector<Node*>*> calls_of_member;
    for (const Member& member : list.members) {
      const std::string step = access_step(list.kind, member.name) + method;
      const auto calls = calls_.find(access.empty() ? step.substr(1) : access + step);
      if (calls == calls_.end()) return;
      calls_of_member.push_back(&calls->second);
    }
    const std::vector<Node*> firsts = *calls_of_member[0];
    for (const Node* first : firsts) {
      std::vector<Step> steps;
      for (size_t i = 0; i < calls_of_member.size(); ++i) {
        const auto is_here = [&](const Node* call) { return call->graph == first->graph; };
        const std::vector<Node*>& calls = *calls_of_member[i];
        if (first->graph == nullptr || std::count_if(calls.begin(), calls.end(), is_here) != 1) break;
        steps.push_back({&list.members[i], *std::find_if(calls.begin(), calls.end(), is_here)});
      }
      if (steps.size() == list.members.size())
        make_loop_of(std::move(steps), &list == &part_ ? std::string(kChildren) : access, word, method);
    }
  }

  void make_loop_of(std::vector<Step> steps, const std::string& access, const std::string& word,
                    const std::string& method) {
    std::vector<Node*> calls;
    for (const Step& step : steps) calls.push_back(step.call);
    if (!std::all_of(calls.begin(), calls.end(), [](const Node* call) { return is_call_part(*call); })) return;
    const auto loop = find_call_loop(calls, [&](const Node* node) { return calls_of_.submodule_of.contains(node); });
    if (!loop) return;
    Node* node = loop->last->graph->add_node(kHouse, kCall, loop->last);
    set_loop(*node, *loop, calls, word, method);
    if (loop->step != nullptr) steps.push_back({nullptr, loop->last});
    replace(steps, node, access);
  }

  /// The members of a class may be a list too, if not in name: `layer1`, `layer2` and so on.
  void make_loop_of_children() {
    if (part_.kind != Kind::Class || part_.members.size() < kManyChildren) return;
    const std::string stem = stem_of(part_.members[0].name);
    int number = number_of(part_.members[0].name);
    for (const Member& member : part_.members) {
      if (member.tensor != nullptr || stem_of(member.name) != stem || number_of(member.name) != number++) return;
    }
    make_loop(part_, "", stem);
  }

  static constexpr size_t kMostBetween = 8;
  static constexpr int kMostHoles = 8;
  static constexpr size_t kManyChildren = 3;

  ModulePart& part_;
  ModuleTree& calls_of_;
  Graph& graph_;
  std::unordered_map<std::string, std::vector<Node*>> calls_;  // by what is called
};

}  // namespace

namespace {

/// How code calls a member, or what it alone has, if that is no list: `conv`, `block["conv"]`.
std::string only_access(const ModulePart& part, const Member& member) {
  std::string access = access_step(part.kind, member.name).substr(1);
  for (const ModulePart* inner = member.part.get(); inner && inner->kind == Kind::Dict && inner->members.size() == 1;) {
    access += access_step(inner->kind, inner->members[0].name);
    inner = inner->members[0].part.get();
  }
  return access;
}

/// The member that a call is of; null where it is no direct one, or takes or gives more than one value.
const Member* member_called(const ModulePart& part, const Node& call) {
  const Submodule& called = part.calls.submodules[part.calls.submodule_of.at(&call)];
  if (call.outputs().size() != 1 || (is_call_part(call) ? call.inputs().size() : called.spec.inputs.size()) != 1)
    return nullptr;
  const auto member = std::find_if(part.members.begin(), part.members.end(), [&](const Member& each) {
    return each.tensor == nullptr && only_access(part, each) == called.name;
  });
  return member == part.members.end() ? nullptr : &*member;
}

}  // namespace

std::vector<Member> chain_of(const ModulePart& part) {
  if (!part.graph || !part.others.empty() || part.graph->inputs().size() != 1 || part.graph->outputs().size() != 1)
    return {};
  std::vector<Member> chain;
  std::set<std::string> names;
  for (const Member& member : part.members) names.insert(member.name);
  size_t members = 0;
  const Value* value = part.graph->inputs()[0];
  while (value != part.graph->outputs()[0]) {
    if (value->uses.size() != 1 || value->uses[0].user == nullptr || value->uses[0].user->graph != part.graph.get())
      return {};
    const Node& node = *value->uses[0].user;
    if (part.calls.submodule_of.contains(&node)) {
      const Member* member = member_called(part, node);
      if (member == nullptr) return {};
      chain.push_back(*member);
      ++members;
    } else {
      std::string plain = plain_layer(node);
      std::string name = name_within(part.path, node.name, part.calls.outer_parts);
      if (plain.empty() || name.empty() || !names.insert(name).second) return {};
      chain.push_back({.name = std::move(name), .plain = std::move(plain)});
    }
    value = node.output(0);
  }
  const bool is_done = value->uses.size() == 1 && members == part.members.size();
  return is_done ? chain : std::vector<Member>();
}

bool calls_children(const ModulePart& part) {
  if (!part.graph || !part.others.empty() || part.graph->node_count() != 1 || part.graph->inputs().size() != 1 ||
      part.graph->outputs().size() != 1)
    return false;
  const Node& node = *part.graph->first();
  if (!is_call_each(node)) return false;
  const LoopOfCalls loop = loop_of(node);
  return loop.step == nullptr && loop.given.empty() && loop.kept.empty() && loop.method.empty() &&
         node.inputs() == part.graph->inputs() && node.outputs() == part.graph->outputs() &&
         part.calls.submodules[part.calls.submodule_of.at(&node)].name == kChildren;
}

void find_sequences(ModulePart& part) {
  SequenceFinder(part, part).run();
  for (const auto& method : part.others) SequenceFinder(part, *method).run();
}

}  // namespace tonnx
