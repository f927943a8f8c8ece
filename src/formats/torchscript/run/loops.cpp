// loops.cpp - loops that only the run tells the length of: one body, traced until the types of what it carries
// stay.
#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "formats/torchscript/run/effects.h"
#include "formats/torchscript/run/merge.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr int kMostRounds = 6;

}  // namespace

class Interpreter::LoopTrace {
 public:
  LoopTrace(Interpreter& interpreter, const Stmt& stmt, Frame& frame, bool has_condition)
      : in_(interpreter),
        calls_(interpreter.ops_.calls),
        stmt_(stmt),
        frame_(frame),
        outer_(*interpreter.ops_.calls.place.graph),
        has_condition_(has_condition) {
    const LoopNames names = loop_names(stmt);
    for (const std::string& name : names.assigned) {
      if (frame.variables.contains(name)) carried_.push_back(name);
    }
    for (const std::string& name : names.appended) {
      const auto at = frame.variables.find(name);
      if (at == frame.variables.end() || !at->second.is(IKind::List)) continue;
      if (names.read.contains(name))
        fail_unsupported("a loop that only the run tells the length of reads the list '{}' that it makes", name);
      lists_.push_back(name);
    }
  }

  /// A body that was given up is kept, as what it made may have gone into lists of objects.
  ~LoopTrace() {
    if (!body_ || body_->owner != nullptr) return;
    body_->release_uses();
    in_.left_.push_back(body_);
  }
  LoopTrace(const LoopTrace&) = delete;
  LoopTrace& operator=(const LoopTrace&) = delete;

  /// Traces the body as often as it takes.
  void trace() {
    for (int round = 0; !trace_once(); ++round) {
      if (round == kMostRounds) fail_unsupported("the types of what a loop carries change from iteration to iteration");
    }
  }

  /// Appends the node, and gives the variables the values that they have behind it.
  void write(const std::optional<Item>& count, Value* goes_on) {
    Node& node = *outer_.add_node("tonnx", "loop");
    node.name = calls_.place.path;
    if (!calls_.place.stack.empty()) node.metadata.emplace_back("nn_module_stack", calls_.place.stack);
    body_->owner = &node;
    const auto operand = [&](Value* value) {
      node.add_input(value);
      return Operand{static_cast<uint32_t>(node.inputs().size() - 1)};
    };
    if (count) {
      node.set_attribute("count", count->is_constant() ? AttrValue(count->integer) : AttrValue(operand(count->value)));
    }
    if (goes_on != nullptr) node.set_attribute("keep_on", operand(goes_on));
    AttrList list;
    for (Value* value : initial_) list.emplace_back(operand(value));
    node.set_attribute("initial", std::move(list));
    node.set_attribute("scans", static_cast<int64_t>(steps_.size()));
    node.set_attribute("body", body_);
    std::vector<Value*> outputs;
    for (const Type& type : types_) outputs.push_back(outer_.add_output_to(&node, outer_.unique_name("loop"), type));
    std::vector<Value*> stacked;
    for (const Item& step : steps_)
      stacked.push_back(outer_.add_output_to(&node, outer_.unique_name("steps"), type_of(step)));
    for (size_t i = 0; i < lists_.size(); ++i) finish_list(lists_[i], stacked[i]);
    finish_variables(outputs);
  }

 private:
  /// One more leaf: its first value, or none yet, and what it is inside of the body.
  Value* carry(Value* value, Item::Kind kind) {
    const size_t at = initial_.size();
    if (types_.size() <= at) {
      types_.emplace_back();
      kinds_.push_back(kind);
    }
    if (value == nullptr && types_[at].is_tensor()) value = filler(types_[at], calls_);
    initial_.push_back(value);
    if (value == nullptr) return nullptr;
    if (!types_[at].is_tensor()) types_[at] = value->type;
    return body_->add_input(body_->unique_name(value->name), types_[at]);
  }

  void begin_body() {
    initial_.clear();
    body_ = std::make_shared<Graph>();
    Value* counter = body_->add_input("i", Type::number(Type::Kind::Int));
    counter->known_ints = {calls_.fresh_size()};
    inner_ = Frame();
    inner_.function = frame_.function;
    inner_.locals = frame_.locals;
    inner_.variables = Copier().copy(frame_.variables);
    for (const std::string& name : carried_) {
      for_each_leaf(inner_.variables[name], [&](Item& leaf) {
        const size_t at = initial_.size();
        Value* const inside = carry(tensor_in(leaf, calls_), leaf.kind);
        if (inside == nullptr) return;
        leaf = kinds_[at] == IKind::Tensor ? Item::tensor(inside) : Item::of_value(kinds_[at], inside);
      });
    }
    std::map<const Value*, Value*> now;
    for (Value* root : memory_) now[root] = carry(root, IKind::Tensor);
    rebind(inner_.variables, now);
    for (const std::string& name : lists_) inner_.variables[name] = Item::of_items(IKind::List, {});
    calls_.place.graph = body_.get();
    if (stmt_.kind == Stmt::Kind::For) in_.assign(*stmt_.targets[0], Item::of_value(IKind::Int, counter), inner_);
  }

  [[noreturn]] static void fail_length() {
    fail_unsupported("a list or an optional value that a loop carries changes its length in it");
  }

  /// What a carried variable is behind an iteration.
  Value* leaf_behind(const Item& leaf, size_t at) {
    if (at >= kinds_.size()) fail_length();
    if (Value* value = tensor_in(leaf, calls_)) {
      if (kinds_[at] == IKind::Unset) kinds_[at] = leaf.kind;
      return value;
    }
    if (!types_[at].is_tensor()) fail_unsupported("a variable that a loop carries has a value in no iteration");
    return filler(types_[at], calls_);
  }

  void collect_results() {
    results_.clear();
    for (const std::string& name : carried_) {
      Item after = inner_.variables[name];
      for_each_leaf(after, [&](Item& leaf) { results_.push_back(leaf_behind(leaf, results_.size())); });
    }
    if (results_.size() + memory_.size() != initial_.size()) fail_length();
    const size_t first = 1 + initial_.size() - memory_.size();
    const size_t absent = static_cast<size_t>(std::count(initial_.begin(), initial_.end(), nullptr));
    for (size_t i = 0; i < memory_.size(); ++i)
      results_.push_back(in_.latest(*body_, body_->inputs()[first - absent + i]));
    require(results_.size() == initial_.size(), "a loop carries {} values in, and {} out", initial_.size(),
            results_.size());
    steps_.clear();
    for (const std::string& name : lists_) {
      const Item& list = inner_.variables[name];
      if (!list.items || list.items->size() != 1 || !(*list.items)[0].is(IKind::Tensor))
        fail_unsupported("a loop that only the run tells the length of appends one tensor to '{}' in each iteration",
                         name);
      steps_.push_back(Item::tensor(calls_.tensor((*list.items)[0])));
    }
  }

  /// Whether what comes out of the body is of the types that went in, and all that it writes to is carried.
  bool trace_once() {
    begin_body();
    const size_t objects = in_.state_of_objects();
    ++in_.ops_.branches;
    const Flow flow = in_.run(stmt_.body, inner_);
    --in_.ops_.branches;
    in_.require_same_objects(objects);
    if (flow != Flow::Next) fail_unsupported("a loop that only the run tells the length of returns or raises");
    if (has_condition_) {
      Item condition = in_.eval(*stmt_.value, inner_);
      if (condition.is(IKind::Tensor)) condition = in_.ops_.converted(condition, IKind::Bool);
      body_->add_output(calls_.as_tensor(condition));
    }
    collect_results();
    calls_.place.graph = &outer_;
    bool is_settled = true;
    for (size_t i = 0; i < results_.size(); ++i) {
      const Type& type = results_[i]->type;
      Type joint = types_[i].is_tensor() ? joint_type(types_[i], type, calls_) : type;
      keep_open_sizes(types_[i], joint);
      is_settled &= joint == types_[i] && initial_[i] != nullptr;
      types_[i] = joint;
    }
    std::set<Value*> written;
    find_written(*body_, *body_, written);
    in_.check_written(written);
    for (Value* root : written) {
      if (std::find(memory_.begin(), memory_.end(), root) != memory_.end()) continue;
      memory_.push_back(root);
      is_settled = false;
    }
    if (!is_settled) {
      body_->release_uses();
      return false;
    }
    for (Value* result : results_) body_->add_output(result);
    for (const Item& step : steps_) body_->add_output(step.value);
    return true;
  }

  /// A size that was found to change before is any size, and keeps its name.
  void keep_open_sizes(const Type& before, Type& joint) {
    if (!before.shape || !joint.shape || before.shape->size() != joint.shape->size()) return;
    for (size_t d = 0; d < joint.shape->size(); ++d) {
      const Dim& own = (*before.shape)[d];
      Dim& size = (*joint.shape)[d];
      if (size == own) continue;
      if (open_.contains(own.text())) {
        size = own;
      } else {
        open_.insert(size.text());
      }
    }
  }

  /// What an iteration appends, stacked.
  Type type_of(const Item& step) {
    Type type = step.value->type;
    Shape shape{calls_.fresh_size()};
    for (const Dim& dim : *type.shape) shape.push_back(dim.is_constant() ? dim : calls_.fresh_size());
    type.shape = shape;
    return type;
  }

  void finish_list(const std::string& name, Value* stacked) {
    const Item before = frame_.variables[name];
    Item all = Item::tensor(stacked);
    require(before.items != nullptr, "two loops append to '{}'", name);
    if (!before.items->empty()) {
      const Item first = calls_.call("aten", "stack", {{before}, {}});
      all = calls_.call("aten", "cat", {{Item::of_items(IKind::List, {first, all})}, {}});
    }
    frame_.variables[name] = Item::of_value(IKind::List, all.value);
  }

  void finish_variables(const std::vector<Value*>& outputs) {
    size_t at = 0;
    for (const std::string& name : carried_) {
      Item after = inner_.variables[name];
      for_each_leaf(after, [&](Item& leaf) {
        leaf = kinds_[at] == IKind::Tensor ? Item::tensor(outputs[at]) : Item::of_value(kinds_[at], outputs[at]);
        ++at;
      });
      frame_.variables[name] = after;
    }
    std::map<const Value*, Value*> now;
    for (Value* root : memory_) in_.versions_[{&outer_, root}] = now[root] = outputs[at++];
    rebind(frame_.variables, now);
  }

  Interpreter& in_;
  ScriptCalls& calls_;
  const Stmt& stmt_;
  Frame& frame_;
  Graph& outer_;
  bool has_condition_;
  std::vector<std::string> carried_, lists_;  // variables
  std::vector<Value*> memory_;                // tensors around that the body writes to
  // of each leaf of what is carried, and then of each tensor that is written to
  std::vector<Type> types_;        // unknown where only the body tells
  std::set<std::string> open_;     // the sizes among them that change from iteration to iteration
  std::vector<Item::Kind> kinds_;  // the same
  std::vector<Value*> initial_;    // null: the variable has no value before the loop
  std::vector<Value*> results_;    // behind an iteration
  std::vector<Item> steps_;        // what an iteration appends to each list
  GraphPtr body_;
  Frame inner_;
};

void Interpreter::run_loop(const Stmt& stmt, const std::optional<Item>& count, std::optional<Item> goes_on,
                           Frame& frame) {
  if (goes_on && goes_on->is(IKind::Tensor)) goes_on = ops_.converted(*goes_on, IKind::Bool);
  const Around around(*this);
  LoopTrace loop(*this, stmt, frame, goes_on.has_value());
  loop.trace();
  const std::optional<Item> times = count ? std::optional(ops_.calls.plain(*count)) : std::nullopt;
  loop.write(times, goes_on ? ops_.calls.as_tensor(*goes_on) : nullptr);
}

}  // namespace tonnx::torchscript
