// script_control.cpp - branches and loops: decided and run where what they ask is known, else nodes with graphs inside.
#include <algorithm>
#include <functional>
#include <set>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/interpreter.h"
#include "formats/torchscript/script_effects.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr int64_t kMostUnrolled = 512;  // iterations of a loop that runs a known number of times
constexpr int kMostRounds = 6;          // in which what a loop carries finds its types

/// Lists and dicts of their own, so that what is done to them on one way is not seen on another.
class Copier {
 public:
  Item copy(const Item& item) {
    Item made = item;
    if (!item.items) return made;
    auto [at, is_new] = known_.try_emplace(item.items.get(), nullptr);
    if (is_new) {
      at->second = std::make_shared<Item::Items>();
      const auto copied = at->second;
      for (const Item& each : *item.items) copied->push_back(copy(each));
      made.items = copied;
    } else {
      made.items = at->second;
    }
    return made;
  }
  Variables copy(const Variables& variables) {
    Variables made;
    for (const auto& [name, item] : variables) made.emplace(name, copy(item));
    return made;
  }

 private:
  std::map<const Item::Items*, std::shared_ptr<Item::Items>> known_;
};

/// Shapes that both have; sizes that differ are new ones.
Type joint_type(const Type& a, const Type& b, ScriptCalls& calls) {
  require(a.dtype == b.dtype, "a variable is {} on one way, and {} on another", text_of(a), text_of(b));
  if (a.shape->size() != b.shape->size())
    fail_unsupported("a variable has {} dimensions on one way, and {} on another", a.shape->size(), b.shape->size());
  Type joint = a;
  for (size_t i = 0; i < a.shape->size(); ++i) {
    if ((*a.shape)[i] != (*b.shape)[i]) (*joint.shape)[i] = calls.fresh_size();
  }
  return joint;
}

/// A tensor that nobody looks at, of the type that another way gives.
Value* filler(const Type& type, ScriptCalls& calls) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : *type.shape) sizes.push_back(dim.constant().value_or(1));
  constexpr int64_t kMostElements = 1 << 20;
  int64_t count = 1;
  for (int64_t& size : sizes) {
    if (size > 0 && count > kMostElements / size) size = 1;
    count *= std::max<int64_t>(size, 1);
  }
  Item::Items items;
  for (const int64_t size : sizes) items.push_back(Item::of_int(size));
  const Item dtype = Item::of_int(number_of(type.dtype));
  return calls.call("aten", "zeros", {{Item::of_items(IKind::List, items)}, {{"dtype", dtype}}}).value;
}

/// The branches of a node, and what comes out of both.
class Branches {
 public:
  Branches(Node& node, ScriptCalls& calls, GraphPtr yes, GraphPtr no)
      : node_(node), calls_(calls), outer_(calls.place.graph), graphs_{std::move(yes), std::move(no)} {}

  Item merge(const Item& a, const Item& b) {
    if (a.is(IKind::Tensor) && b.is(IKind::Tensor) && a.value != nullptr && a.value == b.value) return a;
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
        for (size_t i = 0; i < a.items->size(); ++i) items.push_back(merge((*a.items)[i], (*b.items)[i]));
        Item made = Item::of_items(a.kind, std::move(items));
        made.object = a.object;
        return made;
      }
      case IKind::Object: return a.object == b.object ? a : Item::of(IKind::Unset);
      case IKind::Text:
      case IKind::Device:
      case IKind::Callable: return a.text == b.text ? a : Item::of(IKind::Unset);
      case IKind::None:
      case IKind::Unset: return a;
    }
    return a;
  }

  /// A tensor of the graph around that a branch writes to.
  Value* written(Value* root) { return output(root, root); }

 private:
  Item merge_unset(const Item& a, const Item& b) {
    const bool is_first = !a.is(IKind::Unset);
    const Item& known = is_first ? a : b;
    if (!known.is(IKind::Tensor) && !known.is_number()) return known.is(IKind::Unset) || known.items ? Item::of(IKind::Unset) : known;
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

void rebind(Item& item, const std::map<const Value*, Value*>& now, std::set<const Item::Items*>& seen) {
  if (const auto at = now.find(item.value); item.value != nullptr && at != now.end()) item.value = at->second;
  if (!item.items || !seen.insert(item.items.get()).second) return;
  for (Item& each : *item.items) rebind(each, now, seen);
}

void rebind(Variables& variables, const std::map<const Value*, Value*>& now) {
  std::set<const Item::Items*> seen;
  for (auto& [name, item] : variables) rebind(item, now, seen);
}

}  // namespace

Interpreter::Flow Interpreter::run_if(const Stmt& stmt, Frame& frame) {
  Item condition = eval(*stmt.value, frame);
  if (condition.is(IKind::Tensor)) condition = converted(condition, IKind::Bool);
  require(condition.is_number(), "a branch asks {}", name_of(condition.kind));
  if (condition.is_constant())
    return run(condition.integer != 0 || condition.real != 0 ? stmt.body : stmt.otherwise, frame);
  return run_branch(
      condition, [&](Frame& inner) { return run(stmt.body, inner); },
      [&](Frame& inner) { return run(stmt.otherwise, inner); }, frame);
}

Interpreter::Flow Interpreter::run_branch(const Item& condition, const Way& yes, const Way& no, Frame& frame) {
  Graph& outer = *calls_.place.graph;
  Node& node = *outer.add_node("tonnx", "cond");
  node.name = calls_.place.path;
  if (!calls_.place.stack.empty()) node.metadata.emplace_back("nn_module_stack", calls_.place.stack);
  node.add_input(condition.value);
  node.set_attribute("pred", Operand{0});
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
    calls_.place.graph = graphs[i].get();
    ++branches_;
    flows[i] = (i == 0 ? yes : no)(frames[i]);
    --branches_;
    calls_.place.graph = &outer;
  }
  if (flows[0] == Flow::Raise || flows[1] == Flow::Raise) {  // that way is not taken
    for (const GraphPtr& graph : graphs) graph->release_uses();
    outer.erase(&node);
    if (flows[0] == flows[1]) return Flow::Raise;
    return (flows[0] == Flow::Raise ? no : yes)(frame);
  }
  if (flows[0] != flows[1]) fail_unsupported("one way returns, and the other goes on");
  Branches merged(node, calls_, graphs[0], graphs[1]);
  std::map<const Value*, Value*> now;
  std::set<Value*> written;
  for (const GraphPtr& graph : graphs) find_written(*graph, *graph, written);
  Variables variables;
  for (const auto& [name, item] : frames[0].variables) {
    const auto other = frames[1].variables.find(name);
    if (other != frames[1].variables.end()) variables[name] = merged.merge(item, other->second);
  }
  if (flows[0] == Flow::Return) frame.result = merged.merge(frames[0].result, frames[1].result);
  for (Value* root : written) now[root] = merged.written(root);
  // a list that neither way changed stays the one that others have
  for (auto& [name, item] : variables) {
    const auto before = frame.variables.find(name);
    if (before != frame.variables.end() && before->second.items && item.items &&
        before->second.items->size() == item.items->size()) {
      *before->second.items = *item.items;
      item.items = before->second.items;
    }
  }
  frame.variables = std::move(variables);
  rebind(frame.variables, now);
  return flows[0];
}

namespace {

/// The leaves of what a variable holds, each of which a loop can carry: tensors and numbers.
void for_each_leaf(Item& item, const std::function<void(Item&)>& visit) {
  if (item.is(IKind::Tensor) || item.is_number() || item.is(IKind::Unset)) return visit(item);
  if (!item.items || item.is(IKind::Dict)) return;
  item.items = std::make_shared<Item::Items>(*item.items);
  for (Item& each : *item.items) for_each_leaf(each, visit);
}

/// The tensor that carries a leaf; null for a variable that has no value yet.
Value* tensor_in(const Item& leaf, ScriptCalls& calls) {
  if (leaf.is(IKind::Unset)) return nullptr;
  if (leaf.is(IKind::Tensor) && leaf.value != nullptr) return leaf.value;
  return calls.as_tensor(leaf.is(IKind::Tensor) ? *leaf.number : leaf);
}

}  // namespace

Interpreter::Flow Interpreter::run_for(const Stmt& stmt, Frame& frame) {
  const Expr& over = *stmt.value;
  const bool is_range = over.kind == Expr::Kind::Call && over.items[0]->is_name("range");
  if (!is_range) {
    const Item list = eval(over, frame);
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
  if (!begin.is_constant() || begin.integer != 0 || !step.is_constant() || step.integer != 1)
    fail_unsupported("a loop that only the run tells the length of begins at 0, and goes on by 1");
  run_loop(stmt, end, std::nullopt, frame);
  return Flow::Next;
}

Interpreter::Flow Interpreter::run_while(const Stmt& stmt, Frame& frame) {
  Graph& graph = *calls_.place.graph;
  Node* const mark = graph.last();
  const Variables before = Copier().copy(frame.variables);
  for (int64_t round = 0;; ++round) {
    Item condition = eval(*stmt.value, frame);
    if (condition.is(IKind::Tensor)) condition = converted(condition, IKind::Bool);
    if (condition.is_constant() && condition.integer == 0) return Flow::Next;
    if (!condition.is_constant() || round >= kMostUnrolled) break;
    const Flow flow = run(stmt.body, frame);
    if (flow != Flow::Next) return flow;
  }
  // how often it runs is not known: what was tried is taken back
  while (graph.last() != mark) graph.erase(graph.last());
  frame.variables = before;
  run_loop(stmt, std::nullopt, eval(*stmt.value, frame), frame);
  return Flow::Next;
}

/// One loop, whose body is traced until the types of what it carries stay.
void Interpreter::run_loop(const Stmt& stmt, const std::optional<Item>& count, std::optional<Item> goes_on, Frame& frame) {
  Graph& outer = *calls_.place.graph;
  const LoopNames names = loop_names(stmt);
  std::vector<std::string> carried;
  std::vector<std::string> lists;
  for (const std::string& name : names.assigned) {
    if (frame.variables.contains(name)) carried.push_back(name);
  }
  for (const std::string& name : names.appended) {
    const auto at = frame.variables.find(name);
    if (at == frame.variables.end() || !at->second.is(IKind::List)) continue;
    if (names.read.contains(name)) fail_unsupported("a loop that only the run tells the length of reads the list '{}' that it makes", name);
    lists.push_back(name);
  }
  if (goes_on && goes_on->is(IKind::Tensor)) goes_on = converted(*goes_on, IKind::Bool);
  std::vector<Value*> memory;         // tensors around that the body writes to
  std::vector<Type> types;            // of all that is carried; unknown where only the body tells
  std::vector<Value*> initial;
  std::vector<Item::Kind> kinds;
  GraphPtr body;
  Frame inner;
  std::vector<Item> steps;
  for (int round = 0;; ++round) {
    if (round == kMostRounds) fail_unsupported("the types of what a loop carries change from iteration to iteration");
    initial.clear();
    body = std::make_shared<Graph>();
    Value* counter = body->add_input("i", Type::number(Type::Kind::Int));
    counter->known_ints = {calls_.fresh_size()};
    inner = Frame();
    inner.function = frame.function;
    inner.locals = frame.locals;
    inner.variables = Copier().copy(frame.variables);
    const auto carry = [&](Value* value, Item::Kind kind) -> Value* {
      const size_t at = initial.size();
      if (types.size() <= at) {
        types.emplace_back();
        kinds.push_back(kind);
      }
      if (value == nullptr && types[at].is_tensor()) value = filler(types[at], calls_);
      initial.push_back(value);
      if (value == nullptr) return nullptr;
      if (!types[at].is_tensor()) types[at] = value->type;
      return body->add_input(body->unique_name(value->name), types[at]);
    };
    for (const std::string& name : carried) {
      for_each_leaf(inner.variables[name], [&](Item& leaf) {
        const size_t at = initial.size();
        Value* const inside = carry(tensor_in(leaf, calls_), leaf.kind);
        if (inside == nullptr) return;
        leaf = kinds[at] == IKind::Tensor ? Item::tensor(inside) : Item::of_value(kinds[at], inside);
      });
    }
    std::map<const Value*, Value*> now;
    for (Value* root : memory) now[root] = carry(root, IKind::Tensor);
    rebind(inner.variables, now);
    for (const std::string& name : lists) inner.variables[name] = Item::of_items(IKind::List, {});
    calls_.place.graph = body.get();
    if (stmt.kind == Stmt::Kind::For) assign(*stmt.targets[0], Item::of_value(IKind::Int, counter), inner);
    ++branches_;
    const Flow flow = run(stmt.body, inner);
    --branches_;
    if (flow != Flow::Next) fail_unsupported("a loop that only the run tells the length of returns or raises");
    Value* keep = nullptr;
    if (goes_on) {
      Item condition = eval(*stmt.value, inner);
      if (condition.is(IKind::Tensor)) condition = converted(condition, IKind::Bool);
      keep = calls_.as_tensor(condition);
      body->add_output(keep);
    }
    // what comes out, held against what went in
    bool is_settled = true;
    size_t at = 0;
    std::vector<Value*> results;
    std::vector<Type> next_types;
    const auto settle = [&](Value* value) {
      require(at < types.size(), "a loop carries other values out than in");
      const Type joint = types[at].is_tensor() ? joint_type(types[at], value->type, calls_) : value->type;
      is_settled &= joint == types[at];
      next_types.push_back(joint);
      results.push_back(value);
      ++at;
    };
    for (const std::string& name : carried) {
      Item after = inner.variables[name];
      for_each_leaf(after, [&](Item& leaf) {
        Value* value = tensor_in(leaf, calls_);
        if (value == nullptr) {
          if (!types.at(at).is_tensor()) fail_unsupported("a variable that a loop carries has a value in no iteration");
          value = filler(types[at], calls_);
        } else if (kinds.at(at) == IKind::Unset) {
          kinds[at] = leaf.kind;
        }
        settle(value);
      });
    }
    for (size_t i = 0; i < memory.size(); ++i) settle(body->inputs()[1 + initial.size() - memory.size() + i]);
    steps.clear();
    for (const std::string& name : lists) {
      const Item& list = inner.variables[name];
      if (!list.items || list.items->size() != 1 || !(*list.items)[0].is(IKind::Tensor))
        fail_unsupported("a loop that only the run tells the length of appends one tensor to '{}' in each iteration", name);
      steps.push_back((*list.items)[0]);
    }
    calls_.place.graph = &outer;
    std::set<Value*> written;
    find_written(*body, *body, written);
    const bool has_new = std::any_of(written.begin(), written.end(), [&](Value* root) {
      return std::find(memory.begin(), memory.end(), root) == memory.end();
    });
    if (is_settled && !has_new) {
      require(results.size() == initial.size(), "a loop carries {} values in, and {} out", initial.size(), results.size());
      for (Value* result : results) body->add_output(result);
      for (const Item& step : steps) body->add_output(step.value);
      break;
    }
    types = std::move(next_types);
    for (Value* root : written) {
      if (std::find(memory.begin(), memory.end(), root) == memory.end()) memory.push_back(root);
    }
    body->release_uses();
  }
  const std::optional<Item> times = count ? std::optional(calls_.plain(*count)) : std::nullopt;
  Value* const keeps_on = goes_on ? calls_.as_tensor(*goes_on) : nullptr;
  Node& node = *outer.add_node("tonnx", "loop");
  node.name = calls_.place.path;
  if (!calls_.place.stack.empty()) node.metadata.emplace_back("nn_module_stack", calls_.place.stack);
  body->owner = &node;
  const auto operand = [&](Value* value) {
    node.add_input(value);
    return Operand{static_cast<uint32_t>(node.inputs().size() - 1)};
  };
  if (times) node.set_attribute("count", times->is_constant() ? AttrValue(times->integer) : AttrValue(operand(times->value)));
  if (keeps_on != nullptr) node.set_attribute("keep_on", operand(keeps_on));
  AttrList list;
  for (Value* value : initial) list.emplace_back(operand(value));
  node.set_attribute("initial", std::move(list));
  node.set_attribute("scans", static_cast<int64_t>(steps.size()));
  node.set_attribute("body", body);
  std::vector<Value*> outputs;
  for (size_t i = 0; i < initial.size(); ++i)
    outputs.push_back(outer.add_output_to(&node, outer.unique_name("loop"), types[i]));
  for (size_t i = 0; i < lists.size(); ++i) {
    Type stacked = steps[i].value->type;
    Shape shape{calls_.fresh_size()};
    for (const Dim& dim : *stacked.shape) shape.push_back(dim.is_constant() ? dim : calls_.fresh_size());
    stacked.shape = shape;
    Item all = Item::tensor(outer.add_output_to(&node, outer.unique_name("steps"), stacked));
    const Item& before = frame.variables[lists[i]];
    require(before.items != nullptr, "two loops append to '{}'", lists[i]);
    if (!before.items->empty()) {
      const Item first = calls_.call("aten", "stack", {{before}, {}});
      all = calls_.call("aten", "cat", {{Item::of_items(IKind::List, {first, all})}, {}});
    }
    Item made = Item::of(IKind::List);
    made.value = all.value;
    frame.variables[lists[i]] = made;
  }
  size_t at = 0;
  for (const std::string& name : carried) {
    Item after = inner.variables[name];
    for_each_leaf(after, [&](Item& leaf) {
      leaf = kinds[at] == IKind::Tensor ? Item::tensor(outputs[at]) : Item::of_value(kinds[at], outputs[at]);
      ++at;
    });
    frame.variables[name] = after;
  }
  std::map<const Value*, Value*> now;
  for (Value* root : memory) now[root] = outputs[at++];
  rebind(frame.variables, now);
}

}  // namespace tonnx::torchscript
