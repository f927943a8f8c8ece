// loops.cpp - finds calls whose arguments follow from those of the call before.
#include "formats/modules/loops.h"

#include <algorithm>

#include "ir/clone.h"
#include "ops/frame/emission.h"

namespace tonnx {
namespace {

const Symbol kHouse("tonnx"), kCallEach("call_each");

/// Each takes what the one before gives.
std::optional<CallLoop> find_plain_loop(const std::vector<Node*>& calls) {
  const size_t inputs = calls[0]->inputs().size(), outputs = calls[0]->outputs().size();
  std::vector<int64_t> carried(outputs, -1);
  for (size_t k = 0; k < inputs; ++k) {
    const Value* next = calls[1]->input(k);
    if (next == calls[0]->input(k)) continue;
    if (next == nullptr || next->producer != calls[0] || carried[next->output_index] >= 0) return std::nullopt;
    carried[next->output_index] = static_cast<int64_t>(k);
  }
  for (size_t i = 1; i < calls.size(); ++i) {
    for (size_t k = 0; k < inputs; ++k) {
      const auto from = std::find(carried.begin(), carried.end(), static_cast<int64_t>(k));
      const Value* want = from == carried.end() ? calls[0]->input(k)
                                                : calls[i - 1]->output(static_cast<size_t>(from - carried.begin()));
      if (calls[i]->input(k) != want) return std::nullopt;
    }
    for (const Value* output : calls[i - 1]->outputs()) {
      const bool is_handed_on = carried[output->output_index] >= 0 && output->uses.size() == 1;
      if (!is_handed_on && !output->uses.empty()) return std::nullopt;
    }
  }
  if (std::any_of(carried.begin(), carried.end(), [](int64_t k) { return k < 0; })) return std::nullopt;
  return CallLoop{std::move(carried), calls.back(), nullptr};
}

/// The node that alone uses the result of a call, as it is or beside one of the call's arguments.
Node* step_behind(const Node& call) {
  if (call.outputs().size() != 1 || call.output(0)->uses.size() != 1) return nullptr;
  Node* step = call.output(0)->uses[0].user;
  const bool is_step = step != nullptr && step->graph == call.graph && step->domain == "aten" &&
                       (step->inputs().size() == 1 || step->inputs().size() == 2) && step->outputs().size() == 1 &&
                       find_aten_op(*step) != nullptr;
  return is_step ? step : nullptr;
}

/// What code says of it.
std::string text_of_step(const Node& step, const Value* argument) {
  const auto text = [&](const Value* value, int) { return std::string(value == argument ? "x" : "y"); };
  const AtenOpEntry& entry = *find_aten_op(step);
  return spell(Emission(step, entry, text), *entry.op).first;
}

/// What the first call is given in the place where the second one takes what the step behind the first one gives.
const Value* carried_argument(const std::vector<Node*>& calls, const Node& step) {
  for (size_t k = 0; k < calls[1]->inputs().size(); ++k) {
    if (calls[1]->input(k) == step.output(0)) return calls[0]->input(k);
  }
  return nullptr;
}

std::optional<CallLoop> find_stepping_loop(const std::vector<Node*>& calls) {
  CallLoop loop;
  std::string text;
  const Value* result = nullptr;  // of the step before
  for (size_t i = 0; i < calls.size(); ++i) {
    Node* step = step_behind(*calls[i]);
    if (step == nullptr) return std::nullopt;
    const bool is_alone = step->inputs().size() == 1;
    const Value* argument = is_alone && i == 0                      ? carried_argument(calls, *step)
                            : is_alone                              ? result
                            : step->input(0) == calls[i]->output(0) ? step->input(1)
                                                                    : step->input(0);
    const auto at = std::find(calls[i]->inputs().begin(), calls[i]->inputs().end(), argument);
    const auto k = at - calls[i]->inputs().begin();
    if (argument == nullptr || at == calls[i]->inputs().end()) return std::nullopt;
    if (i == 0) {
      loop = {{k}, step, step};
      text = text_of_step(*step, argument);
    } else if (loop.carried[0] != k || argument != result || result->uses.size() != step->inputs().size() ||
               text_of_step(*step, argument) != text) {
      return std::nullopt;
    }
    for (size_t other = 0; other < calls[i]->inputs().size(); ++other) {
      if (static_cast<ptrdiff_t>(other) != k && calls[i]->input(other) != calls[0]->input(other)) return std::nullopt;
    }
    result = step->output(0);
    loop.last = step;
  }
  return loop;
}

}  // namespace

std::optional<CallLoop> find_call_loop(const std::vector<Node*>& calls) {
  if (calls.size() < 2) return std::nullopt;
  for (const Node* call : calls) {
    if (call->inputs().size() != calls[0]->inputs().size() || call->outputs().size() != calls[0]->outputs().size())
      return std::nullopt;
  }
  auto loop = find_plain_loop(calls);
  return loop ? loop : find_stepping_loop(calls);
}

bool is_call_each(const Node& node) { return node.domain == kHouse && node.op == kCallEach; }

void set_loop(Node& node, const CallLoop& loop, const Node& first, const std::string& word) {
  node.domain = kHouse;
  node.op = kCallEach;
  node.set_attribute("carried", loop.carried);
  node.set_attribute("word", word);
  if (loop.step == nullptr) return;
  auto graph = std::make_shared<Graph>();
  const Value* argument = first.input(static_cast<size_t>(loop.carried[0]));
  ValueMap map;
  map[argument] = graph->add_input("x", argument->type);
  map[first.output(0)] = graph->add_input("y", first.output(0)->type);
  const Node* step = clone_node(*loop.step, *graph, nullptr, map);
  graph->add_output(step->output(0));
  node.set_attribute("step", graph);
}

const Node* step_of_loop(const Node& loop) {
  const Attribute* step = loop.find_attribute("step");
  return step ? (*step->value.get<GraphPtr>())->first() : nullptr;
}

}  // namespace tonnx
