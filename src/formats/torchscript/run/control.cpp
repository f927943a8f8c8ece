// control.cpp - branches and loops: decided and run where what they ask is known, else nodes with graphs inside.
#include <algorithm>
#include <functional>
#include <set>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/run/effects.h"
#include "formats/torchscript/run/interpreter.h"
#include "formats/torchscript/run/merge.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr int64_t kMostUnrolled = 512;  // iterations of a loop that runs a known number of times

/// The branches of a node, and what comes out of both.
class Branches {
 public:
  Branches(Node& node, ScriptCalls& calls, GraphPtr yes, GraphPtr no)
      : node_(node), calls_(calls), outer_(calls.place.graph), graphs_{std::move(yes), std::move(no)} {}

  Item merge(const Item& a, const Item& b) {
    if (a.is(IKind::Tensor) && b.is(IKind::Tensor) && a.value != nullptr && a.value == b.value) return a;
    if (a.is(IKind::Refused) || b.is(IKind::Refused)) return Item::refused();
    if (a.is(IKind::Unset) || b.is(IKind::Unset)) return merge_unset(a, b);
    if (a.kind != b.kind) return Item::of(IKind::Unset);
    switch (a.kind) {
      case IKind::Tensor: return Item::tensor(output(tensor(a, 0), tensor(b, 1)));
      case IKind::Int:
      case IKind::Float:
      case IKind::Bool:
        if (a.is_constant() && b.is_constant() && a.integer == b.integer && a.real == b.real) return a;
        if (!a.is_constant() && a.value == b.value) return a;
        return Item::of_value(a.kind, output(number(a, 0), number(b, 1)));
      case IKind::List:
      case IKind::Tuple:
      case IKind::Dict: {
        if (!a.items || !b.items || a.items->size() != b.items->size()) return Item::of(IKind::Unset);
        Item::Items items;
        budget().take(Resource::Memory, static_cast<int64_t>(sizeof(Item) * a.items->size()));
        for (size_t i = 0; i < a.items->size(); ++i) items.push_back(merge((*a.items)[i], (*b.items)[i]));
        Item made = Item::of_items(a.kind, std::move(items));
        made.may_be_fewer = a.may_be_fewer || b.may_be_fewer;
        made.object = a.object;
        return made;
      }
      case IKind::Object: return a.object == b.object ? a : Item::of(IKind::Unset);
      case IKind::Text:
      case IKind::Device:
      case IKind::Callable: return a.text == b.text ? a : Item::of(IKind::Unset);
      case IKind::None:
      case IKind::Refused:
      case IKind::Unset: return a;
    }
    return a;
  }

  /// What both have.
  Variables merge(const Variables& a, const Variables& b) {
    Variables both;
    for (const auto& [name, item] : a) {
      const auto other = b.find(name);
      if (other != b.end()) both[name] = merge(item, other->second);
    }
    return both;
  }

  /// A tensor of the graph around that a branch writes to.
  Value* written(Value* in_yes, Value* in_no) { return output(in_yes, in_no); }

 private:
  Item merge_unset(const Item& a, const Item& b) {
    const bool is_first = !a.is(IKind::Unset);
    const Item& known = is_first ? a : b;
    if (!known.is(IKind::Tensor) && !known.is_number())
      return known.is(IKind::Unset) || known.items ? Item::of(IKind::Unset) : known;
    const size_t mine = is_first ? 0 : 1;
    Value* own = known.is(IKind::Tensor) ? tensor(known, mine) : number(known, mine);
    calls_.place.graph = graphs_[1 - mine].get();
    Value* other = filler(own->type, calls_);
    calls_.place.graph = outer_;
    Value* made = is_first ? output(own, other) : output(other, own);
    return known.is(IKind::Tensor) ? Item::tensor(made) : Item::of_value(known.kind, made);
  }

  Value* tensor(const Item& item, size_t branch) { return item.value ? item.value : number(*item.number, branch); }
  Value* number(const Item& item, size_t branch) {
    calls_.place.graph = graphs_[branch].get();
    Value* made = calls_.as_tensor(item);
    calls_.place.graph = outer_;
    return made;
  }

  Value* output(Value* a, Value* b) {
    const Type type = joint_type(a->type, b->type, calls_);
    graphs_[0]->add_output(a);
    graphs_[1]->add_output(b);
    return outer_->add_output_to(&node_, outer_->unique_name("branch"), type);
  }

  Node& node_;
  ScriptCalls& calls_;
  Graph* outer_;
  GraphPtr graphs_[2];
};

/// A node that the run decides in, without its graphs.
Node& add_branch(const Place& place, const Item& condition) {
  Node& node = *place.graph->add_node("tonnx", "cond");
  node.name = place.path;
  if (!place.stack.empty()) node.metadata.emplace_back("nn_module_stack", place.stack);
  node.add_input(condition.value);
  node.set_attribute("pred", Operand{0});
  return node;
}

/// A list that neither way changed stays the one that others have.
void keep_lists(Variables& variables, const Variables& before_them) {
  for (auto& [name, item] : variables) {
    const auto before = before_them.find(name);
    if (before != before_them.end() && before->second.items && item.items &&
        before->second.items->size() == item.items->size()) {
      *before->second.items = *item.items;
      item.items = before->second.items;
    }
  }
}

}  // namespace

Interpreter::Flow Interpreter::run_if(const Stmt& stmt, Frame& frame) {
  Item condition = eval(*stmt.value, frame);
  if (condition.is(IKind::Tensor)) condition = ops_.converted(condition, IKind::Bool);
  if (ops_.is_refused(condition)) return run_refused(stmt, frame);
  require(condition.is_number(), "a branch asks {}", name_of(condition.kind));
  if (condition.is_constant())
    return run(condition.integer != 0 || condition.real != 0 ? stmt.body : stmt.otherwise, frame);
  return run_branch(
      condition, [&](Frame& inner) { return run(stmt.body, inner); },
      [&](Frame& inner) { return run(stmt.otherwise, inner); }, frame);
}

Interpreter::Flow Interpreter::run_branch(const Item& condition, const Way& yes, const Way& no, Frame& frame) {
  Graph& outer = *ops_.calls.place.graph;
  Node& node = add_branch(ops_.calls.place, condition);
  const size_t objects = state_of_objects();
  const Around around(*this);
  size_t marks[2];
  Frame frames[2];
  Flow flows[2];
  GraphPtr graphs[2];
  for (size_t i = 0; i < 2; ++i) {
    graphs[i] = std::make_shared<Graph>();
    graphs[i]->owner = &node;
    node.set_attribute(i == 0 ? "then_branch" : "else_branch", graphs[i]);
    frames[i].function = frame.function;
    frames[i].locals = frame.locals;
    frames[i].variables = Copier().copy(frame.variables);
    ops_.calls.place.graph = graphs[i].get();
    ++ops_.branches;
    marks[i] = ops_.refusals.mark();
    flows[i] = (i == 0 ? yes : no)(frames[i]);
    --ops_.branches;
    ops_.calls.place.graph = &outer;
  }
  const auto take = [&](const Way& way) {
    for (const GraphPtr& graph : graphs) graph->release_uses();
    outer.erase(&node);
    return way(frame);
  };
  if (flows[0] == Flow::Raise || flows[1] == Flow::Raise) {  // that way is not taken
    // what is refused there is never run
    if (flows[1] == Flow::Raise) ops_.refusals.forget_since(marks[1]);
    if (flows[0] == Flow::Raise && flows[1] == Flow::Raise) ops_.refusals.forget_since(marks[0]);
    if (flows[0] == flows[1]) return take([](Frame&) { return Flow::Raise; });
    return take(flows[0] == Flow::Raise ? no : yes);
  }
  require_same_objects(objects);
  if (flows[0] != flows[1]) fail_unsupported("one way returns, and the other goes on");
  Branches merged(node, ops_.calls, graphs[0], graphs[1]);
  std::map<const Value*, Value*> now;
  std::set<Value*> written;
  for (const GraphPtr& graph : graphs) find_written(*graph, *graph, written);
  Variables variables;
  try {
    variables = merged.merge(frames[0].variables, frames[1].variables);
    if (flows[0] == Flow::Return) frame.result = merged.merge(frames[0].result, frames[1].result);
  } catch (const Error& e) {
    // a way of its own for what is empty, in another form: nothing is
    if (e.kind() != ErrorKind::Unsupported || !condition.unless_empty) throw;
    return take(*condition.unless_empty ? yes : no);
  }
  check_written(written);
  for (Value* root : written) {
    now[root] = merged.written(latest(*graphs[0], root), latest(*graphs[1], root));
    versions_[{&outer, root}] = now[root];
  }
  keep_lists(variables, frame.variables);
  frame.variables = std::move(variables);
  rebind(frame.variables, now);
  return flows[0];
}

Interpreter::Flow Interpreter::run_for(const Stmt& stmt, Frame& frame) {
  const Expr& over = *stmt.value;
  const bool is_range = over.kind == Expr::Kind::Call && over.items[0]->is_name("range");
  if (!is_range) {
    const Item list = eval(over, frame);
    if (list.is(IKind::Refused)) return run_refused(stmt, frame);
    require(list.items != nullptr, "a loop walks over {}", name_of(list.kind));
    const Item::Items items = *list.items;
    for (const Item& item : items) {
      assign(*stmt.targets[0], item, frame);
      const Flow flow = run(stmt.body, frame);
      if (flow != Flow::Next) return flow;
    }
    return Flow::Next;
  }
  const Arguments range = eval_arguments(over, frame);
  require(!range.positional.empty(), "a loop has no count");
  Item begin = Item::of_int(0), end = range.positional[0];
  if (range.positional.size() > 1) begin = range.positional[0], end = range.positional[1];
  const Item step = range.positional.size() > 2 ? range.positional[2] : Item::of_int(1);
  if (ops_.is_refused(range)) return run_refused(stmt, frame);
  const bool is_known = begin.is_constant() && end.is_constant() && step.is_constant();
  if (is_known) {
    require(step.integer != 0, "a loop goes on by steps of 0");
    const int64_t span = step.integer > 0 ? end.integer - begin.integer : begin.integer - end.integer;
    const int64_t each = std::abs(step.integer);
    const int64_t count = std::max<int64_t>((span + each - 1) / each, 0);
    if (count <= kMostUnrolled) {
      for (int64_t i = 0; i < count; ++i) {
        assign(*stmt.targets[0], Item::of_int(begin.integer + i * step.integer), frame);
        const Flow flow = run(stmt.body, frame);
        if (flow != Flow::Next) return flow;
      }
      return Flow::Next;
    }
  }
  if (!begin.is_constant() || begin.integer != 0 || !step.is_constant() || step.integer != 1) {
    ops_.refusals.add("a loop that only the run tells the length of begins at 0, and goes on by 1",
                      frame.function->file, stmt.line);
    return run_refused(stmt, frame);
  }
  run_loop(stmt, end, std::nullopt, frame);
  return Flow::Next;
}

Interpreter::Flow Interpreter::run_while(const Stmt& stmt, Frame& frame) {
  Graph& graph = *ops_.calls.place.graph;
  Node* const mark = graph.last();
  const Variables before = Copier().copy(frame.variables);
  const size_t objects = state_of_objects();
  for (int64_t round = 0;; ++round) {
    Item condition = eval(*stmt.value, frame);
    if (condition.is(IKind::Tensor)) condition = ops_.converted(condition, IKind::Bool);
    if (condition.is(IKind::Refused)) return run_refused(stmt, frame);
    if (condition.is_constant() && condition.integer == 0) return Flow::Next;
    if (!condition.is_constant() || round >= kMostUnrolled) break;
    const Flow flow = run(stmt.body, frame);
    if (flow != Flow::Next) return flow;
  }
  // how often it runs is not known: what was tried is taken back
  require_same_objects(objects);
  while (graph.last() != mark) graph.erase(graph.last());
  frame.variables = before;
  run_loop(stmt, std::nullopt, eval(*stmt.value, frame), frame);
  return Flow::Next;
}

void Interpreter::check_written(const std::set<Value*>& written) const {
  for (const Value* root : written) {
    if (root->constant && root->producer == nullptr)
      fail_unsupported("a branch or a loop that only the run decides writes to '{}'", root->name);
    for (size_t i = 0; i + 1 < frames_.size(); ++i) {
      for (const auto& [name, item] : frames_[i]->variables) {
        if (item.is(IKind::Tensor) && item.value != nullptr && root_of(item.value) == root)
          fail_unsupported("a branch or a loop that only the run decides writes to '{}' of its caller", name);
      }
    }
  }
}

Value* Interpreter::latest(const Graph& graph, Value* root) const {
  const auto at = versions_.find({&graph, root});
  return at == versions_.end() ? root : at->second;
}

size_t Interpreter::state_of_objects() const {
  size_t state = 0;
  const auto add = [&](size_t part) { state = state * 31 + part; };
  for (const auto& [from, item] : objects_) {
    for (const auto& [name, attribute] : item.object->attributes) {
      if (!attribute.items) continue;
      add(attribute.items->size());
      for (const Item& each : *attribute.items)
        add(std::hash<const void*>()(each.value) + static_cast<size_t>(each.integer));
    }
  }
  return state;
}

void Interpreter::require_same_objects(size_t before) const {
  if (state_of_objects() != before)
    fail_unsupported("a branch or a loop that only the run decides changes a list or a dict of a module");
}

}  // namespace tonnx::torchscript
