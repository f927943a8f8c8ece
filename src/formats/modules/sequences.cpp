// sequences.cpp - finds members of lists that are called in their order.
#include "formats/modules/sequences.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/join.h"
#include "formats/modules/places.h"
#include "formats/modules/plain_layers.h"
#include "ops/frame/python_names.h"

namespace tonnx {
namespace {

using Kind = ModulePart::Kind;

const Symbol kHouse("tonnx"), kCallEach("call_each"), kCall("call_part");

/// One member of a list, and the node that calls it.
struct Step {
  const Member* member = nullptr;
  Node* call = nullptr;
};

class SequenceFinder {
 public:
  explicit SequenceFinder(ModulePart& part) : part_(part), graph_(*part.graph) {
    for (Node& node : graph_) {
      const auto call = part_.calls.submodule_of.find(&node);
      if (call != part_.calls.submodule_of.end()) calls_[part_.calls.submodules[call->second].name].push_back(&node);
    }
    for (const auto& [node, call] : part_.calls.submodule_of) {
      if (node->graph != &graph_)
        calls_[part_.calls.submodules[call].name].push_back(nullptr);  // in a branch or a loop
    }
  }

  void run() {
    for (Member& member : part_.members) {
      if (member.part) visit(*member.part, member.name);
    }
    remove_unused_nodes(graph_);
  }

 private:
  void visit(ModulePart& part, const std::string& access) {
    if (part.kind == Kind::Class && part.graph) return;  // it has found its own
    for (Member& member : part.members) {
      if (!member.part) continue;
      visit(*member.part, access + access_step(part.kind, member.name));
    }
    if (part.kind == Kind::List && !make_sequential(part, access)) make_loop(part, access);
  }

  /// The only calls of the members, in their order; empty where one is called elsewhere, or not at all.
  std::vector<Step> steps_of(const ModulePart& list, const std::string& access) const {
    std::vector<Step> steps;
    for (const Member& member : list.members) {
      const auto calls = calls_.find(access + access_step(list.kind, member.name));
      if (calls == calls_.end() || calls->second.size() != 1 || calls->second[0] == nullptr) return {};
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
      const Submodule& layer = part_.calls.submodules[part_.calls.submodule_of.at(&call)];
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
          part_.calls.submodule_of.contains(node) || plain_layer(*node).empty() || nodes.size() > kMostBetween)
        return std::nullopt;
      nodes.insert(nodes.begin(), node);
      value = node->input(0);
    }
    if (value == nullptr || before.outputs().size() != 1 || value->uses.size() != 1) return std::nullopt;
    return nodes;
  }

  /// The number of the node in the list, where its name says one.
  int number_in(const Node& node, const ModulePart& list) const {
    Path path = path_of_name(python::path_of_node(node.name));
    path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(std::min(path.size(), part_.calls.outer_parts)));
    const auto parts = static_cast<size_t>(std::count(list.path.begin(), list.path.end(), '.')) + 1;
    if (path.size() <= parts || !is_index(path[parts])) return -1;
    const int number = std::stoi(path[parts]);
    path.resize(parts);
    return joined(path, ".") == list.path ? number : -1;
  }

  bool is_plain(const Node* node) const {
    return node != nullptr && node->graph == &graph_ && node->outputs().size() == 1 &&
           !part_.calls.submodule_of.contains(node) && !plain_layer(*node).empty();
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
    replace(steps, {first}, kCall, access);
    list.members = std::move(members);
    list.kind = Kind::Sequential;
    return true;
  }

  /// One node in place of all calls.
  Node* replace(const std::vector<Step>& steps, const std::vector<Value*>& inputs, Symbol op,
                const std::string& access) {
    Node* last = steps.back().call;
    Node* call = graph_.add_node(kHouse, op, last);
    for (Value* input : inputs) call->add_input(input);
    const std::vector<Value*> outputs = last->outputs();
    for (size_t i = 0; i < outputs.size(); ++i) graph_.move_output(outputs[i], call, i);
    last->resize_outputs(0);
    for (size_t i = steps.size(); i-- > 0;) {
      part_.calls.submodule_of.erase(steps[i].call);
      erase_with_inputs(steps[i].call);
    }
    part_.calls.submodule_of[call] = part_.calls.submodules.size();
    part_.calls.submodules.push_back({access, {}, {}});
    calls_[access].push_back(call);
    return call;
  }

  /// With the nodes that only it needs: turned weights, and what stood between it and the call before.
  void erase_with_inputs(Node* node) {
    const std::vector<Value*> inputs = node->inputs();
    graph_.erase(node);
    for (const Value* input : inputs) {
      Node* producer = input ? input->producer : nullptr;
      if (producer && producer->graph == &graph_ && input->uses.empty() && producer->outputs().size() == 1 &&
          !part_.calls.submodule_of.contains(producer))
        erase_with_inputs(producer);
    }
  }

  bool make_loop(ModulePart& list, const std::string& access) {
    const std::vector<Step> steps = steps_of(list, access);
    if (steps.size() < 2) return false;
    const size_t inputs = steps[0].call->inputs().size(), outputs = steps[0].call->outputs().size();
    for (size_t i = 0; i < steps.size(); ++i) {
      const Node& call = *steps[i].call;
      if (!is_call_part(call) || call.inputs().size() != inputs || call.outputs().size() != outputs ||
          steps[i].member->name != std::to_string(i))
        return false;
    }
    std::vector<int64_t> carried(outputs, -1);  // which argument of the next call an output is
    for (size_t k = 0; k < inputs; ++k) {
      const Value* next = steps[1].call->input(k);
      if (next == steps[0].call->input(k)) continue;
      if (next == nullptr || next->producer != steps[0].call || carried[next->output_index] >= 0) return false;
      carried[next->output_index] = static_cast<int64_t>(k);
    }
    for (size_t i = 1; i < steps.size(); ++i) {
      for (size_t k = 0; k < inputs; ++k) {
        const Value* input = steps[i].call->input(k);
        const auto from = std::find(carried.begin(), carried.end(), static_cast<int64_t>(k));
        const Value* want = from == carried.end()
                                ? steps[0].call->input(k)
                                : steps[i - 1].call->output(static_cast<size_t>(from - carried.begin()));
        if (input != want) return false;
      }
      for (const Value* output : steps[i - 1].call->outputs()) {
        const bool is_handed_on = carried[output->output_index] >= 0 && output->uses.size() == 1;
        if (!is_handed_on && !output->uses.empty()) return false;
      }
    }
    if (std::any_of(carried.begin(), carried.end(), [](int64_t k) { return k < 0; })) return false;
    Node* loop = replace(steps, steps[0].call->inputs(), kCallEach, access);
    loop->set_attribute("carried", carried);
    return true;
  }

  static constexpr size_t kMostBetween = 8;
  static constexpr int kMostHoles = 8;

  ModulePart& part_;
  Graph& graph_;
  std::unordered_map<std::string, std::vector<Node*>> calls_;  // by what is called
};

}  // namespace

bool is_call_each(const Node& node) { return node.domain == kHouse && node.op == kCallEach; }

void find_sequences(ModulePart& part) { SequenceFinder(part).run(); }

}  // namespace tonnx
