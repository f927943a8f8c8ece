// loops.cpp - finds calls whose arguments follow from those of the call before.
#include "modules/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "ir/clone.h"
#include "ops/frame/emission.h"
#include "ops/frame/python_names.h"

namespace tonnx {
namespace {

const Symbol kHouse("tonnx"), kCallEach("call_each"), kListAt("list_at");
constexpr size_t kFewestWithLists = 4;  // calls that are worth a loop over lists
constexpr size_t kLongestWord = 24;

/// For each result of a call which argument of the next it is; `given`: the arguments that are something else in each.
struct Roles {
  std::vector<int64_t> carried, given;
};
Roles roles_of(const std::vector<Node*>& calls) {
  Roles roles{std::vector<int64_t>(calls[0]->outputs().size(), -1), {}};
  for (size_t k = 0; k < calls[0]->inputs().size(); ++k) {
    const auto all = [&](auto&& want) {
      for (size_t i = 1; i < calls.size(); ++i) {
        if (calls[i]->input(k) != want(i)) return false;
      }
      return true;
    };
    const Value *first = calls[0]->input(k), *next = calls[1]->input(k);
    if (all([&](size_t) { return first; })) continue;
    if (next != nullptr && next->producer == calls[0] && roles.carried[next->output_index] < 0 &&
        all([&](size_t i) { return calls[i - 1]->output(next->output_index); })) {
      roles.carried[next->output_index] = static_cast<int64_t>(k);
    } else {
      roles.given.push_back(static_cast<int64_t>(k));
    }
  }
  return roles;
}

/// The node of the graph that uses the value, itself or with a graph inside it, whose output it may be; null where that
/// is outside.
Node* user_in(const Graph& graph, const Use& use) {
  Node* user = use.user == nullptr && use.output_of != &graph ? use.output_of->owner : use.user;
  while (user != nullptr && user->graph != &graph) user = user->graph ? user->graph->owner : nullptr;
  return user;
}

/// The nodes between the calls that need what a call gives, in their order, those in `steps` left out; nothing where a
/// call needs one of them.
std::optional<std::vector<Node*>> find_behind(const std::vector<Node*>& calls,
                                              const std::unordered_set<const Node*>& steps) {
  const Graph& graph = *calls[0]->graph;
  const std::unordered_set<const Node*> all(calls.begin(), calls.end());
  std::unordered_set<const Node*> dependent;
  std::vector<Node*> behind;
  for (Node* node = calls[0]; node != calls.back(); node = node->next) {
    if (node == nullptr) return std::nullopt;  // they are not in their order
    const bool is_call = all.contains(node);
    if (!is_call && !dependent.contains(node)) continue;
    if (!is_call && !steps.contains(node)) behind.push_back(node);
    for (const Value* output : node->outputs()) {
      if (output == nullptr) continue;
      for (const Use& use : output->uses) {
        const Node* user = user_in(graph, use);
        if (user == nullptr || (is_call && all.contains(user))) continue;
        if (all.contains(user)) return std::nullopt;
        dependent.insert(user);
      }
    }
  }
  return behind;
}

/// Whether the node does something with what a call beside it gives.
bool is_step(const Node* node, const Node& call) {
  return node != nullptr && node->graph == call.graph && node->domain == "aten" && node->outputs().size() == 1 &&
         find_aten_op(*node) != nullptr;
}

/// The node that alone uses the result of a call, as it is or beside one of the call's arguments.
Node* step_behind(const Node& call) {
  if (call.outputs().size() != 1 || call.output(0)->uses.size() != 1) return nullptr;
  Node* step = call.output(0)->uses[0].user;
  return is_step(step, call) && (step->inputs().size() == 1 || step->inputs().size() == 2) ? step : nullptr;
}

/// What code says of it.
std::string text_of_step(const Node& step, const Value* argument) {
  const auto text = [&](const Value* value, int) { return std::string(value == argument ? "x" : "y"); };
  const AtenOpEntry& entry = *find_aten_op(step);
  return spell(Emission(step, entry, text), *entry.op).first;
}

/// The nodes that alone use result j of the calls, where they do the same with it; empty elsewhere.
std::vector<Node*> find_kept_steps(const std::vector<Node*>& calls, size_t j,
                                   const std::function<bool(const Node*)>& is_module) {
  std::vector<Node*> steps;
  std::string text;
  for (const Node* call : calls) {
    const Value* result = call->output(j);
    Node* step = result->uses.size() == 1 ? result->uses[0].user : nullptr;
    if (!is_step(step, *call) || step->inputs().size() != 1 || is_module(step)) return {};
    std::string own = text_of_step(*step, nullptr);
    if (!steps.empty() && own != text) return {};
    text = std::move(own);
    steps.push_back(step);
  }
  return steps;
}

/// The output of its graph that the value is, itself or after one more step.
struct AsOutput {
  uint32_t place = std::numeric_limits<uint32_t>::max();  // that of no output
  std::string name;
};
AsOutput as_output(const Value& value) {
  for (const Use& use : value.uses) {
    if (use.user == nullptr) return {use.index, value.name};
    if (use.user->outputs().size() != 1 || use.user->output(0) == nullptr) continue;
    for (const Use& next : use.user->output(0)->uses) {
      if (next.user == nullptr) return {next.index, use.user->output(0)->name};
    }
  }
  return {};
}

/// What is given and kept, in the order of the inputs and the outputs of the graph.
void sort_as_listed(CallLoop& loop, const Node& first) {
  const auto place = [&](int64_t k) {
    const Value* value = first.input(static_cast<size_t>(k));
    const std::vector<Value*>& inputs = value->graph->inputs();
    return std::find(inputs.begin(), inputs.end(), value) - inputs.begin();
  };
  std::stable_sort(loop.given.begin(), loop.given.end(), [&](int64_t a, int64_t b) { return place(a) < place(b); });
  const auto out = [&](int64_t j) { return as_output(*first.output(static_cast<size_t>(j))).place; };
  std::stable_sort(loop.kept.begin(), loop.kept.end(), [&](int64_t a, int64_t b) { return out(a) < out(b); });
}

/// Each takes what the one before gives.
std::optional<CallLoop> find_plain_loop(const std::vector<Node*>& calls,
                                        const std::function<bool(const Node*)>& is_module) {
  Roles roles = roles_of(calls);
  if (std::all_of(roles.carried.begin(), roles.carried.end(), [](int64_t k) { return k < 0; })) return std::nullopt;
  const std::unordered_set<const Node*> all(calls.begin(), calls.end());
  for (const int64_t k : roles.given) {
    for (const Node* call : calls) {
      const Value* value = call->input(static_cast<size_t>(k));
      if (value == nullptr || (value->producer != nullptr && all.contains(value->producer))) return std::nullopt;
    }
  }
  CallLoop loop{std::move(roles.carried), std::move(roles.given), {}, calls.back(), nullptr, {}, {}};
  for (size_t j = 0; j < loop.carried.size(); ++j) {
    const bool is_carried = loop.carried[j] >= 0;
    const bool is_kept = std::any_of(calls.begin(), calls.end(), [&](const Node* call) {
      const size_t uses = call->output(j)->uses.size();
      return is_carried ? call != calls.back() && uses != 1 : uses != 0;
    });
    if (is_kept) loop.kept.push_back(static_cast<int64_t>(j));
  }
  if (calls.size() < kFewestWithLists && (!loop.given.empty() || !loop.kept.empty())) return std::nullopt;
  sort_as_listed(loop, *calls[0]);
  std::unordered_set<const Node*> steps;
  for (const int64_t j : loop.kept) {
    loop.kept_steps.push_back(find_kept_steps(calls, static_cast<size_t>(j), is_module));
    steps.insert(loop.kept_steps.back().begin(), loop.kept_steps.back().end());
  }
  auto behind = find_behind(calls, steps);
  if (!behind) return std::nullopt;
  loop.behind = std::move(*behind);
  return loop;
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
      loop = {{k}, {}, {}, step, step, {}, {}};
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

/// Texts around the one number in which names differ, as identifiers: `past_key_values` and `key` of
/// `past_key_values.0.key`, `past_key_values.1.key` ...; empty where they differ in more.
struct WordsAround {
  std::string before, behind;
};
WordsAround words_around(const std::vector<std::string>& names) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string &first = names[0], &last = names.back();
  size_t begin = 0;
  while (begin < first.size() && begin < last.size() && first[begin] == last[begin]) ++begin;
  while (begin > 0 && is_digit(first[begin - 1])) --begin;
  const std::string before = first.substr(0, begin);
  std::string behind;
  for (const std::string& name : names) {
    size_t end = begin;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end == begin || !name.starts_with(before)) return {};
    if (&name == &first)
      behind = name.substr(end);
    else if (name.substr(end) != behind)
      return {};
  }
  const auto word = [](std::string text) {
    text = text.find('/') == std::string::npos ? python::identifier(text) : std::string();
    const size_t start = text.find_first_not_of('_');
    return start == std::string::npos || text.size() > kLongestWord
               ? std::string()
               : text.substr(start, text.find_last_not_of('_') + 1 - start);
  };
  return {word(before), word(behind)};
}

struct LoopWords {
  std::vector<std::string> given, kept;
  std::string list_of_given, list_of_kept = "outputs";
};
LoopWords words_of(const CallLoop& loop, const std::vector<Node*>& calls) {
  LoopWords words;
  for (const int64_t k : loop.given) {
    std::vector<std::string> names;
    for (const Node* call : calls) names.push_back(call->input(static_cast<size_t>(k))->name);
    const WordsAround around = words_around(names);
    words.given.push_back(around.behind);
    if (words.list_of_given.empty()) words.list_of_given = around.before;
  }
  for (const int64_t j : loop.kept) {
    std::vector<std::string> names;
    for (const Node* call : calls) names.push_back(as_output(*call->output(static_cast<size_t>(j))).name);
    const WordsAround around = words_around(names);
    words.kept.push_back(around.behind);
    if (!around.before.empty() && words.list_of_kept == "outputs") words.list_of_kept = around.before;
  }
  return words;
}

void add_step(Node& node, const CallLoop& loop, const Node& first) {
  auto graph = std::make_shared<Graph>();
  const Value* argument = first.input(static_cast<size_t>(loop.carried[0]));
  ValueMap map;
  map[argument] = graph->add_input("x", argument->type);
  map[first.output(0)] = graph->add_input("y", first.output(0)->type);
  const Node* step = clone_node(*loop.step, *graph, nullptr, map);
  graph->add_output(step->output(0));
  node.set_attribute("step", graph);
}

void add_kept_steps(Node& node, const CallLoop& loop) {
  for (size_t k = 0; k < loop.kept.size(); ++k) {
    if (loop.kept_steps[k].empty()) continue;
    const Node& first = *loop.kept_steps[k][0];
    auto graph = std::make_shared<Graph>();
    ValueMap map;
    map[first.input(0)] = graph->add_input("x", first.input(0)->type);
    graph->add_output(clone_node(first, *graph, nullptr, map)->output(0));
    node.set_attribute(fmt::format("kept_step_{}", k), graph);
  }
}

/// What is carried is the loop's own, and what is kept is taken out of a list; what needs either comes behind.
void take_results(Node& node, const CallLoop& loop, const std::vector<Node*>& calls, const std::string& word) {
  Graph& graph = *node.graph;
  size_t outputs = 0;
  for (size_t j = 0; j < loop.carried.size(); ++j) {
    if (loop.carried[j] >= 0) graph.move_output(loop.last->output(j), &node, outputs++);
  }
  if (!loop.kept.empty()) {
    Type type;
    type.kind = Type::Kind::Sequence;
    Value* list = graph.add_output_to(&node, graph.unique_name(word), std::move(type));
    int64_t index = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      for (size_t k = 0; k < loop.kept.size(); ++k) {
        const std::vector<Node*>& steps = loop.kept_steps[k];
        Node* maker = steps.empty() ? calls[i] : steps[i];
        Value* value = maker->output(steps.empty() ? static_cast<size_t>(loop.kept[k]) : 0);
        if (value != nullptr && !value->uses.empty()) {
          Node* at = graph.add_node(kHouse, kListAt, loop.last);
          at->add_input(list);
          at->set_attribute("self", Operand{0});
          at->set_attribute("index", index);
          graph.move_output(value, at, 0);
        }
        if (!steps.empty()) graph.erase(maker);
        ++index;
      }
    }
  }
  for (Node* each : loop.behind) graph.move_node(each, loop.last);
}

}  // namespace

std::optional<CallLoop> find_call_loop(const std::vector<Node*>& calls,
                                       const std::function<bool(const Node*)>& is_module) {
  if (calls.size() < 2) return std::nullopt;
  for (const Node* call : calls) {
    if (call->inputs().size() != calls[0]->inputs().size() || call->outputs().size() != calls[0]->outputs().size())
      return std::nullopt;
  }
  auto loop = find_plain_loop(calls, is_module);
  return loop ? loop : find_stepping_loop(calls);
}

bool is_call_each(const Node& node) { return node.domain == kHouse && node.op == kCallEach; }

void set_loop(Node& node, const CallLoop& loop, const std::vector<Node*>& calls, const std::string& word,
              const std::string& method) {
  const LoopWords words = words_of(loop, calls);
  node.domain = kHouse;
  node.op = kCallEach;
  for (Value* argument : calls[0]->inputs()) node.add_input(argument);
  for (size_t i = 1; i < calls.size(); ++i) {
    for (const int64_t k : loop.given) node.add_input(calls[i]->input(static_cast<size_t>(k)));
  }
  node.set_attribute("carried", loop.carried);
  node.set_attribute("given", loop.given);
  node.set_attribute("kept", loop.kept);
  node.set_attribute("given_words", words.given);
  node.set_attribute("kept_words", words.kept);
  node.set_attribute("list_word", words.list_of_given);
  node.set_attribute("word", word);
  node.set_attribute("method", method);
  node.set_attribute("calls", static_cast<int64_t>(calls.size()));
  if (loop.step != nullptr) add_step(node, loop, *calls[0]);
  add_kept_steps(node, loop);
  take_results(node, loop, calls, words.list_of_kept);
}

LoopOfCalls loop_of(const Node& node) {
  const auto get = [&]<class T>(std::string_view name, const T* /*type*/) -> const T& {
    return *node.find_attribute(name)->value.get<T>();
  };
  constexpr const std::vector<int64_t>* kNumbers = nullptr;
  constexpr const std::vector<std::string>* kTexts = nullptr;
  constexpr const std::string* kText = nullptr;
  constexpr const int64_t* kNumber = nullptr;
  const auto find_step = [&](const std::string& name) -> const Node* {
    const Attribute* step = node.find_attribute(name);
    return step ? (*step->value.get<GraphPtr>())->first() : nullptr;
  };
  std::vector<const Node*> kept_steps;
  for (size_t k = 0; k < get("kept", kNumbers).size(); ++k)
    kept_steps.push_back(find_step(fmt::format("kept_step_{}", k)));
  return {get("carried", kNumbers),  get("given", kNumbers),
          get("kept", kNumbers),     get("given_words", kTexts),
          get("kept_words", kTexts), get("list_word", kText),
          get("word", kText),        get("method", kText),
          find_step("step"),         static_cast<size_t>(get("calls", kNumber)),
          std::move(kept_steps)};
}

const Node* loop_of_kept(const Node& node) {
  const bool is_one = node.domain == kHouse && node.op == kListAt && node.input(0) && node.input(0)->producer;
  return is_one && is_call_each(*node.input(0)->producer) ? node.input(0)->producer : nullptr;
}

std::optional<PlaceInList> place_in_list(const Value& value) {
  if (value.producer == nullptr) return std::nullopt;
  if (const Node* loop = loop_of_kept(*value.producer))
    return PlaceInList{loop, *value.producer->find_attribute("index")->value.get<int64_t>()};
  if (!is_call_each(*value.producer)) return std::nullopt;
  // what the last call gives is the loop's own result, and the last of the list too
  const LoopOfCalls loop = loop_of(*value.producer);
  uint32_t output = 0;
  for (size_t j = 0; j < loop.carried.size(); ++j) {
    if (loop.carried[j] < 0 || output++ != value.output_index) continue;
    const auto at = std::find(loop.kept.begin(), loop.kept.end(), static_cast<int64_t>(j));
    if (at == loop.kept.end()) return std::nullopt;
    const size_t before = (loop.calls - 1) * loop.kept.size();
    return PlaceInList{value.producer, static_cast<int64_t>(before) + (at - loop.kept.begin())};
  }
  return std::nullopt;
}

}  // namespace tonnx
