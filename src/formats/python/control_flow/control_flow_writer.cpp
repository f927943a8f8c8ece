// control_flow_writer.cpp - writes if, for and while, or torch.cond and torch.while_loop where those can be.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "formats/python/control_flow/control_flow.h"
#include "formats/python/statements/block.h"

namespace tonnx::python {
namespace {

constexpr const char* kContiguous = ".clone(memory_format=torch.contiguous_format)";
constexpr size_t kChoiceWidth = 88;  // `x = a if c else b` stays below this

/// Whether a value may share memory with one that exists outside the block.
bool is_alias(const Graph& graph, const Value* value) {
  if (std::count(graph.outputs().begin(), graph.outputs().end(), value) > 1) return true;
  if (value->graph == &graph && value->producer && is_tonnx(*value->producer, "cond"))
    return !can_be_cond(*value->producer);
  return may_share(graph, *value);
}

/// The outputs of a function that is a branch or the body of a loop. Those that share memory with what is outside are
/// copied; both branches must give tensors that lie in memory in the same way.
std::vector<std::string> returned_texts(const BlockWriter& block) {
  std::vector<std::string> texts;
  const std::vector<Value*>& outputs = block.graph().outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value* output = outputs[i];
    if (const size_t count = block.whole_list_at(i); count > 0) {
      texts.push_back(fmt::format("*(x{} for x in {})", kContiguous, block.text_of(output->producer->input(0))));
      i += count - 1;
    } else if (!is_alias(block.graph(), output)) {
      texts.push_back(block.text_of(output));
    } else {
      const bool is_view = output->graph == &block.graph() && output->producer != nullptr;
      texts.push_back(block.text_of(output, precedence::kAtom) + (is_view ? kContiguous : ".clone()"));
    }
  }
  return texts;
}

/// One branch or loop of a block.
class ControlFlowWriter {
 public:
  ControlFlowWriter(BlockWriter& block, const Node& node)
      : block_(block), node_(node), position_(block.liveness().position_of(node)) {}

  void write() {
    if (is_tonnx(node_, "cond")) return can_be_cond(node_) ? write_cond() : write_if();
    const LoopParts parts = loop_parts();
    return can_be_while(node_, parts) ? write_while_loop(parts) : write_loop(parts);
  }

 private:
  std::string choose_word(const std::string& word) { return block_.variables().choose_word(word, position_, chosen_); }
  std::string choose_name(const Value& value) { return block_.variables().choose_early(value, position_, chosen_); }
  bool is_used(const Value* value) const { return block_.liveness().is_used(value); }
  const Value* initial_value(const LoopParts& parts, size_t i) const {
    return node_.input(parts.initial[i].get<Operand>()->index);
  }

  // Branches

  std::string branch_condition() const {
    std::string condition = block_.text_of(node_.input(0));
    if (condition.starts_with('(') && condition.ends_with(')') && !node_.input(0)->type.is_tensor() &&
        block_.nesting().is_inside(node_.input(0))) {
      condition = condition.substr(1, condition.size() - 2);
    }
    return condition;
  }

  void write_cond() {
    const std::string condition = branch_condition();
    block_.add_gap();
    for (const char* name : {"then_branch", "else_branch"}) {
      BlockWriter branch(graph_of(node_, name), block_, node_);
      block_.add(fmt::format("def {}():", name));
      branch.write_statements();
      branch.write_return(returned_texts(branch));
      block_.add("");
    }
    std::vector<std::string> names;
    for (const Value* output : node_.outputs()) {
      names.push_back(is_used(output) ? choose_name(*output) : "_");
      if (is_used(output)) block_.variables().set(output, names.back());
    }
    block_.add(
        fmt::format("{} = torch.cond({} if torch.compiler.is_compiling() else bool({}), then_branch, else_branch)",
                    names.size() == 1 ? names[0] : joined(names), condition, condition));
  }

  /// The names are chosen first, and set at the end of each branch.
  void write_if() {
    const std::string condition = branch_condition();
    std::vector<std::string> names;
    for (const Value* output : node_.outputs()) names.push_back(is_used(output) ? choose_name(*output) : "");
    const size_t first = block_.statement_count();
    for (const char* name : {"then_branch", "else_branch"}) {
      BlockWriter branch(graph_of(node_, name), block_, node_);
      block_.add(name[0] == 't' ? fmt::format("if {}:", condition) : "else:");
      const size_t before = block_.statement_count();
      branch.write_statements();
      branch.write_assignment(names);
      if (block_.statement_count() == before) block_.add("pass", 1);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty()) block_.variables().set(node_.output(i), names[i]);
    }
    shorten_if(first);
  }

  /// 1. if c: x = a; else: x = b -> x = a if c else b; 2. an else that does nothing is left out
  void shorten_if(size_t first) {
    std::vector<Statement>& all = block_.statements();
    if (all.size() < first + 4 || all[all.size() - 2].text != "else:" || all[all.size() - 2].level != block_.level())
      return;
    if (all.back().text == "pass") {
      all.resize(all.size() - 2);
      return;
    }
    if (all.size() != first + 4) return;
    const std::string &then = all[first + 1].text, &other = all[first + 3].text;
    const size_t equals = then.find(" = ");
    if (equals == std::string::npos || other.compare(0, equals + 3, then, 0, equals + 3) != 0) return;
    const bool is_one = then.find(',') > equals;
    const auto side = [&](const std::string& text) {
      const std::string value = text.substr(equals + 3);
      return is_one ? value : "(" + value + ")";
    };
    const std::string condition = all[first].text.substr(3, all[first].text.size() - 4);
    std::string text =
        fmt::format("{}{} if {} else {}", then.substr(0, equals + 3), side(then), condition, side(other));
    const bool is_nested = (then + other + condition).find(" if ") != std::string::npos;
    if (is_nested || text.size() > kChoiceWidth) return;
    all.resize(first);
    block_.add(std::move(text));
  }

  // Loops

  LoopParts loop_parts() const {
    const AttrValue& scans = node_.find_attribute("scans")->value;
    static const AttrList kNone;
    const auto* initial = node_.find_attribute("initial")->value.get<AttrList>();
    LoopParts parts{graph_of(node_, "body"), initial ? *initial : kNone, "", nullptr,
                    static_cast<size_t>(*scans.get<int64_t>())};
    if (const Attribute* count = node_.find_attribute("count")) {
      if (const auto* number = count->value.get<int64_t>()) parts.count = std::to_string(*number);
      if (const auto* operand = count->value.get<Operand>()) parts.count = block_.text_of(node_.input(operand->index));
      if (parts.count.starts_with('(') && parts.count.ends_with(" else 0)"))
        parts.count = parts.count.substr(1, parts.count.size() - 2);
    }
    if (const Attribute* keep = node_.find_attribute("keep_on")) {
      if (const auto* operand = keep->value.get<Operand>()) parts.keep_on = node_.input(operand->index);
    }
    return parts;
  }

  /// What the loop may go up to, as a tensor or a number: `n` of `n.item()`, and the condition that comes with it.
  std::string while_condition(const LoopParts& parts, const std::string& counter, const std::string& keep) const {
    std::vector<std::string> terms;
    if (!keep.empty()) terms.push_back(keep);
    if (const Attribute* count = node_.find_attribute("count"); count && !parts.count.empty()) {
      std::string limit = parts.count;
      if (const auto* operand = count->value.get<Operand>()) {
        const Node* counted = node_.input(operand->index)->producer;
        if (counted && is_tonnx(*counted, "count_if")) {
          terms.push_back(block_.text_of(counted->input(0), precedence::kBitAnd));
          const Value* number = counted->input(1);
          const auto* constant = counted->find_attribute("count")->value.get<int64_t>();
          limit = constant ? std::to_string(*constant) : block_.text_of(number, precedence::kCompare + 1);
          counted = number ? number->producer : nullptr;
        }
        if (counted && is_tonnx(*counted, "item")) limit = block_.text_of(counted->input(0), precedence::kCompare + 1);
      }
      const std::string below = fmt::format("{} < {}", counter, limit);
      terms.push_back(terms.empty() ? below : "(" + below + ")");
    }
    if (terms.size() == 1 && terms[0] == keep) return keep + ".clone()";  // what goes in must not come out
    return joined(terms, " & ");
  }

  /// What torch.while_loop carries: the number of the iteration, whether to go on, and the values.
  struct WhileState {
    std::vector<std::string> names, initial;
    std::string keep;  // the name of the condition; empty where there is none
  };

  WhileState while_state(const LoopParts& parts, BlockWriter& inner) {
    WhileState state{{choose_word("i")}, {}, ""};
    if (parts.keep_on != nullptr) state.names.push_back(state.keep = choose_word("keep_on"));
    const std::string& device = block_.scope().device;
    state.initial.push_back(fmt::format("torch.tensor(0{})", device.empty() ? "" : ", device=" + device));
    if (parts.keep_on != nullptr) state.initial.push_back(block_.text_of(parts.keep_on));
    std::unordered_set<std::string> given(state.initial.begin(), state.initial.end());
    for (const std::string& name : state.names) inner.variables().reserve(name);
    inner.variables().set(parts.body.inputs()[0], state.names[0]);
    inner.expressions().set_tensor_counter(parts.body.inputs()[0]);
    for (size_t i = 0; i < parts.initial.size(); ++i) {
      const Value* value = initial_value(parts, i);
      std::string text = block_.text_of(value);
      const bool is_twice = given.contains(text);
      state.names.push_back(choose_name(*node_.output(i)));
      state.initial.push_back(is_twice || value->constant != nullptr
                                  ? block_.text_of(value, precedence::kAtom) + ".clone()"
                                  : std::move(text));
      given.insert(state.initial.back());
      inner.variables().set(parts.body.inputs()[i + 1], state.names.back());
    }
    return state;
  }

  void write_while_loop(const LoopParts& parts) {
    BlockWriter inner(parts.body, block_, node_);
    const WhileState state = while_state(parts, inner);
    block_.add_gap();
    block_.add(fmt::format("def condition({}):", joined(state.names)));
    block_.add("return " + while_condition(parts, state.names[0], state.keep), 1);
    block_.add("");
    block_.add(fmt::format("def body({}):", joined(state.names)));
    inner.write_statements();
    std::vector<std::string> next = returned_texts(inner);
    next.insert(next.begin(), state.names[0] + " + 1");
    inner.write_return(next);
    block_.add("");
    run_while_loop(state);
  }

  void run_while_loop(const WhileState& state) {
    const std::string all = choose_word("state");
    block_.add(fmt::format("{} = ({}{})", all, joined(state.initial), state.initial.size() == 1 ? "," : ""));
    block_.add("if torch.compiler.is_compiling():");
    block_.add(fmt::format("{} = torch.while_loop(condition, body, {})", all, all), 1);
    block_.add("else:");
    block_.add(fmt::format("while condition(*{}):", all), 1);
    block_.add(fmt::format("{} = body(*{})", all, all), 2);
    const size_t first = state.names.size() - node_.outputs().size();
    std::vector<std::string> targets(first, "_");
    for (size_t i = 0; i < node_.outputs().size(); ++i) {
      targets.push_back(is_used(node_.output(i)) ? state.names[first + i] : "_");
      if (is_used(node_.output(i))) block_.variables().set(node_.output(i), targets.back());
    }
    block_.add(fmt::format("{} = {}", targets.size() == 1 ? targets[0] + "," : joined(targets), all));
  }

  /// The names of what a loop carries, of its lists, and of its condition.
  struct LoopNames {
    std::vector<std::string> carried, lists;
    std::string keep;           // empty where there is no condition
    std::string counter = "_";  // the number of the iteration
  };

  /// The statements in front of a loop: what it carries is set, and its lists are empty.
  LoopNames begin_loop(const LoopParts& parts, BlockWriter& inner) {
    LoopNames names;
    for (size_t i = 0; i < parts.initial.size(); ++i) {
      names.carried.push_back(choose_name(*node_.output(i)));
      block_.add(fmt::format("{} = {}", names.carried[i], block_.text_of(initial_value(parts, i))));
      inner.variables().set(parts.body.inputs()[i + 1], names.carried[i]);
    }
    for (size_t i = 0; i < parts.scans; ++i) {
      names.lists.push_back(choose_word("steps"));
      block_.add(names.lists.back() + " = []");
      inner.variables().reserve(names.lists.back());
    }
    if (parts.keep_on != nullptr) {
      names.keep = choose_word("keep_on");
      inner.variables().reserve(names.keep);
      block_.add(fmt::format("{} = {}", names.keep, block_.text_of(parts.keep_on)));
    }
    if (!parts.body.inputs()[0]->uses.empty()) {
      names.counter = choose_name(*parts.body.inputs()[0]);
      inner.variables().set(parts.body.inputs()[0], names.counter);
      inner.variables().reserve(names.counter);
    }
    return names;
  }

  void write_loop(const LoopParts& parts) {
    BlockWriter inner(parts.body, block_, node_);
    const LoopNames names = begin_loop(parts, inner);
    const bool is_while = parts.count.empty() && names.counter == "_" && !names.keep.empty();
    block_.add(is_while              ? fmt::format("while {}:", names.keep)
               : parts.count.empty() ? fmt::format("for {} in itertools.count():", names.counter)
                                     : fmt::format("for {} in range({}):", names.counter, parts.count));
    const size_t before = block_.statement_count();
    if (!names.keep.empty() && !is_while) {
      block_.add(fmt::format("if not {}:", names.keep), 1);
      block_.add("break", 2);
    }
    inner.write_statements();
    write_next(parts, names, inner);
    if (block_.statement_count() == before) block_.add("pass", 1);
    for (size_t i = 0; i < parts.scans; ++i) {
      const Value* output = node_.output(parts.initial.size() + i);
      if (is_used(output)) block_.add(stacked(names.lists[i], *output, names.keep.empty() ? parts.count : ""));
    }
    std::vector<std::string> results = names.carried;
    results.insert(results.end(), names.lists.begin(), names.lists.end());
    for (size_t i = 0; i < node_.outputs().size(); ++i) block_.variables().set(node_.output(i), results[i]);
  }

  /// The end of an iteration: lists grow, and what is carried gets its next value.
  void write_next(const LoopParts& parts, const LoopNames& names, BlockWriter& inner) {
    const size_t first = (names.keep.empty() ? 0 : 1) + parts.initial.size();
    for (size_t i = 0; i < parts.scans; ++i)
      block_.add(fmt::format("{}.append({})", names.lists[i], inner.text_of(parts.body.outputs()[first + i])), 1);
    std::vector<std::string> targets = names.carried;
    if (!names.keep.empty()) targets.insert(targets.begin(), names.keep);
    inner.write_assignment(targets);
  }

  /// The list of scan outputs as one tensor; without iterations there is nothing to be stacked.
  std::string stacked(const std::string& name, const Value& output, const std::string& count) const {
    const bool runs = !count.empty() && count.find_first_not_of("0123456789") == std::string::npos && count != "0";
    if (runs) return fmt::format("{} = torch.stack({})", name, name);
    std::vector<std::string> arguments{"0"};
    for (size_t i = 1; output.type.shape && i < output.type.shape->size(); ++i)
      arguments.push_back(std::to_string((*output.type.shape)[i].constant().value_or(0)));
    if (output.type.dtype != DType::Undefined && output.type.dtype != DType::Float32)
      arguments.push_back("dtype=" + python_dtype(output.type.dtype));
    if (!block_.scope().device.empty()) arguments.push_back("device=" + block_.scope().device);
    return fmt::format("{} = torch.stack({}) if {} else torch.empty({})", name, name, name, joined(arguments));
  }

  BlockWriter& block_;
  const Node& node_;
  int position_;
  ChosenNames chosen_;
};

}  // namespace

void write_control_flow(BlockWriter& block, const Node& node) { ControlFlowWriter(block, node).write(); }

}  // namespace tonnx::python
