// to_exported_control.cpp - aten: branches and loops as torch.ops.higher_order.cond and while_loop, or as the nodes
// that run.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "ir/clone.h"
#include "ops/frame/op_def.h"
#include "passes/dialects/to_exported.h"
#include "passes/frame/aten_match.h"
#include "passes/frame/aten_writer.h"

namespace tonnx {
namespace {

bool is_own(const Node& node, std::string_view op) { return node.domain == "tonnx" && node.op == Symbol(op); }

GraphPtr branch_graph(const Node& node, std::string_view name) {
  return *node.find_attribute(name)->value.get<GraphPtr>();
}

Type scalar_type(DType dtype) { return Type::tensor(dtype, Shape()); }

size_t size_of(const Graph& graph) {
  size_t count = graph.node_count();
  for (const Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) count += size_of(*inner);
  }
  return count;
}

/// A loop, taken apart.
struct Loop {
  std::optional<int64_t> count;  // where it is a number
  Value* count_value = nullptr;
  Value* keep_on = nullptr;
  std::vector<Value*> initial;
  size_t scans = 0;
  GraphPtr body;

  explicit Loop(const Node& node) : body(branch_graph(node, "body")) {
    if (const Attribute* given = node.find_attribute("count")) {
      if (const auto* number = given->value.get<int64_t>()) count = *number;
      count_value = operand(node, "count");
    }
    keep_on = operand(node, "keep_on");
    if (const auto* list = node.find_attribute("initial")->value.get<AttrList>()) {
      for (const AttrValue& item : *list) initial.push_back(node.input(item.get<Operand>()->index));
    }
    scans = static_cast<size_t>(*node.find_attribute("scans")->value.get<int64_t>());
  }
};

AttrList operands(AtenCall& call, const std::vector<Value*>& values) {
  AttrList list;
  for (Value* value : values) {
    list.emplace_back(Operand{static_cast<uint32_t>(call.inputs.size())});
    call.inputs.push_back(value);
  }
  return list;
}

/// What is stacked of no iterations. Where its sizes are not known it has one dimension: that can be joined with any
/// other tensor.
Value* no_scans(AtenWriter& writer, const Type& stacked, const Node* like) {
  std::vector<int64_t> sizes{0};
  const bool is_known =
      stacked.shape && std::all_of(stacked.shape->begin() + !stacked.shape->empty(), stacked.shape->end(),
                                   [](const Dim& d) { return d.is_constant(); });
  for (size_t i = 1; is_known && i < stacked.shape->size(); ++i) sizes.push_back(*(*stacked.shape)[i].constant());
  const DType dtype = stacked.dtype == DType::Undefined ? DType::Float32 : stacked.dtype;
  AtenCall call("zeros", "", like);
  call.with("size", AttrValue(sizes)).with("dtype", AttrValue(dtype));
  return writer.add(call, Type::tensor(dtype, Shape(sizes.begin(), sizes.end())), "steps");
}

/// 1. A loop that runs a known number of times becomes its iterations.
void unroll(Graph& graph, Node& node, const Loop& loop) {
  AtenWriter writer(graph);
  writer.write_before(&node);
  std::vector<Value*> carried = loop.initial;
  std::vector<std::vector<Value*>> steps(loop.scans);
  for (int64_t i = 0; i < *loop.count; ++i) {
    ValueMap map;
    if (!loop.body->inputs()[0]->uses.empty()) {
      AtenCall number("add", "", &node);
      number.with("a", IntArg(i)).with("b", IntArg(0));
      Value* counter = writer.add(number, Type::number(Type::Kind::Int), "i", "_operator");
      counter->known_ints = {Dim(i)};
      map[loop.body->inputs()[0]] = counter;
    }
    for (size_t k = 0; k < carried.size(); ++k) map[loop.body->inputs()[k + 1]] = carried[k];
    clone_nodes(*loop.body, graph, &node, map);
    for (size_t k = 0; k < carried.size(); ++k) carried[k] = copy_of(loop.body->outputs()[k], map);
    for (size_t k = 0; k < loop.scans; ++k) steps[k].push_back(copy_of(loop.body->outputs()[carried.size() + k], map));
  }
  for (size_t k = 0; k < carried.size(); ++k) graph.replace_uses(node.output(k), carried[k]);
  for (size_t k = 0; k < loop.scans; ++k) {
    Value* output = node.output(carried.size() + k);
    Value* all = nullptr;
    if (steps[k].empty()) {
      all = no_scans(writer, output->type, &node);
    } else {
      AtenCall stack("stack", "", &node);
      AttrList list = operands(stack, steps[k]);
      stack.with("tensors", AttrValue(std::move(list)));
      all = writer.add(stack, Type::tensor(output->type.dtype), "steps");
    }
    graph.replace_uses(output, all);
  }
  graph.erase(&node);
}

/// The condition of a branch, where it is a comparison of numbers.
std::optional<bool> decided(const Node& node) {
  const Value* condition = node.input(0);
  const Node* test = condition && condition->type.kind == Type::Kind::Bool ? condition->producer : nullptr;
  if (test == nullptr || test->domain != "_operator") return std::nullopt;
  const auto number = [&](const char* name) -> const int64_t* {
    const Attribute* given = test->find_attribute(name);
    return given ? given->value.get<int64_t>() : nullptr;
  };
  const int64_t *a = number("a"), *b = number("b");
  if (a == nullptr || b == nullptr) return std::nullopt;
  const std::string_view op = test->op.view();
  if (op == "eq") return *a == *b;
  if (op == "ne") return *a != *b;
  if (op == "lt") return *a < *b;
  if (op == "le") return *a <= *b;
  if (op == "gt") return *a > *b;
  return op == "ge" ? std::optional(*a >= *b) : std::nullopt;
}

/// 2. A branch that is decided becomes the nodes of that branch.
void inline_branch(Graph& graph, Node& node, bool condition) {
  const GraphPtr branch = branch_graph(node, condition ? "then_branch" : "else_branch");
  ValueMap map;
  clone_nodes(*branch, graph, &node, map);
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    if (node.output(i) != nullptr) graph.replace_uses(node.output(i), copy_of(branch->outputs()[i], map));
  }
  graph.erase(&node);
}

}  // namespace

bool unroll_loops(Graph& graph, int64_t& budget) {
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* before = node->previous;
    bool is_gone = false;
    if (is_own(*node, "loop")) {
      const Loop loop(*node);
      const auto nodes = static_cast<int64_t>(size_of(*loop.body)) + 1;
      if (loop.count && loop.keep_on == nullptr && std::max<int64_t>(*loop.count, 0) <= budget / nodes) {
        budget -= std::max<int64_t>(*loop.count, 0) * nodes;
        unroll(graph, *node, loop);
        is_gone = true;
      }
    } else if (is_own(*node, "cond")) {
      if (const auto condition = decided(*node)) {
        inline_branch(graph, *node, *condition);
        is_gone = true;
      }
    }
    if (is_gone) {
      is_changed = true;
      node = before ? before->next : graph.first();
      continue;
    }
    for (const GraphPtr& inner : subgraphs_of(*node)) is_changed = unroll_loops(*inner, budget) || is_changed;
    node = node->next;
  }
  return is_changed;
}

namespace {

/// Makes the graphs of a node see nothing but their inputs.
class Closure {
 public:
  Closure(Graph& outer, Node& node) : outer_(outer), node_(node) {}

  /// The values that the graphs use, which are inputs of each of them now, behind those that it has.
  std::vector<Value*> close(const std::vector<GraphPtr>& graphs) {
    for (const GraphPtr& graph : graphs) import_numbers(*graph);
    std::vector<Value*> captured;
    std::unordered_set<const Value*> seen;
    for (const GraphPtr& graph : graphs) {
      for_each_use(*graph, [&](Value* value) {
        if (seen.insert(value).second) captured.push_back(value);
      });
    }
    for (const GraphPtr& graph : graphs) {
      for (Value* value : captured) {
        Value* input = graph->add_input(graph->unique_name(value->name), value->type);
        replace_inside(*graph, value, input);
      }
    }
    return captured;
  }

 private:
  template <class Visit>
  static void for_each_use(Graph& graph, Visit&& visit) {
    for (Node& node : graph) {
      const std::vector<Value*> inputs = node.inputs();
      for (Value* input : inputs) {
        if (input != nullptr && input->graph != &graph) visit(input);
      }
    }
    const std::vector<Value*> outputs = graph.outputs();
    for (Value* output : outputs) {
      if (output->graph != &graph) visit(output);
    }
  }

  static void replace_inside(Graph& graph, Value* old_value, Value* by) {
    const std::vector<Use> uses = old_value->uses;
    for (const Use& use : uses) {
      if (use.user != nullptr) {
        if (use.user->graph == &graph) use.user->set_input(use.index, by);
      } else if (use.output_of == &graph) {
        graph.set_output(use.index, by);
      }
    }
  }

  /// Numbers cannot be handed over: they are made again from the tensors that they come from.
  void import_numbers(Graph& graph) {
    Node* front = graph.first();
    std::map<Value*, Value*> made;
    std::vector<Value*> wanted;
    for_each_use(graph, [&](Value* value) {
      if (!value->type.is_tensor()) wanted.push_back(value);
    });
    for (Value* value : wanted) {
      if (!made.contains(value)) replace_inside(graph, value, imported(graph, front, value, made));
    }
  }

  Value* imported(Graph& graph, Node* front, Value* value, std::map<Value*, Value*>& made) {
    if (const auto known = made.find(value); known != made.end()) return known->second;
    if (value->type.kind != Type::Kind::Int && value->type.kind != Type::Kind::Float &&
        value->type.kind != Type::Kind::Bool)
      fail_unsupported("a sequence goes into a branch or a loop, which a .pt2 file cannot say");
    AtenWriter inside(graph);
    inside.write_before(front);
    const Node* from = value->producer;
    const bool is_arithmetic =
        from && (from->domain == "_operator" || from->domain == "torch" || from->domain == "math");
    const bool is_size = from && (is_aten(*from, "sym_size", "int") || is_aten(*from, "sym_numel"));
    AtenCall call(from ? from->op : Symbol("item"), from ? from->overload : Symbol(), from ? from : &node_);
    Value* result = nullptr;
    if (is_arithmetic || is_size) {
      call.attributes = from->attributes;
      for (Value* input : from->inputs())
        call.inputs.push_back(input && is_arithmetic ? imported(graph, front, input, made) : input);
      result = inside.add(call, value->type, value->name, from->domain);
    } else {
      if (value->type.kind == Type::Kind::Bool) fail_unsupported("a condition goes into a branch or a loop");
      AtenWriter outside(outer_);
      outside.write_before(&node_);
      const DType dtype = value->type.kind == Type::Kind::Int ? DType::Int64 : DType::Float64;
      AtenCall scalar("scalar_tensor", "", &node_);
      scalar.with("s", value).with("dtype", AttrValue(dtype));
      AtenCall item("item", "", &node_);
      item.with("self", outside.add(scalar, scalar_type(dtype), "number"));
      result = inside.add(item, value->type, value->name);
    }
    result->known_ints = value->known_ints;
    return made[value] = result;
  }

  Graph& outer_;
  Node& node_;
};

/// Whether a value may be a part of another tensor.
bool is_view(const Value& value) {
  const Node* from = value.producer;
  if (from == nullptr) return true;
  return from->domain == "aten" && get_aten_op(*from).op->sig.text().find("Tensor(a") != std::string_view::npos;
}

/// What comes out of a branch or an iteration may not be a part of what went in.
void copy_outputs(Graph& graph, const Node& like) {
  AtenWriter writer(graph);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    Value* output = graph.outputs()[i];
    const bool is_twice = std::count(graph.outputs().begin(), graph.outputs().end(), output) > 1;
    if (!is_twice && !is_view(*output)) continue;
    AtenCall clone("clone", "", &like);
    clone.with("self", output).with("memory_format", AttrValue(std::string("contiguous_format")));
    graph.set_output(i, writer.add(clone, output->type, output->name));
  }
}

Value* as_scalar(AtenWriter& writer, Value* value, const Node* like) {
  if (!value->type.is_tensor() || value->type.rank() == 0) return value;
  AtenCall call("reshape", "", like);
  call.with("self", value).with("shape", AttrValue(std::vector<int64_t>()));
  return writer.add(call, scalar_type(value->type.dtype), value->name);
}

void set_operands(Node& node, std::string_view name, const std::vector<Value*>& values) {
  AttrList list;
  for (Value* value : values) {
    list.emplace_back(Operand{static_cast<uint32_t>(node.inputs().size())});
    node.add_input(value);
  }
  node.set_attribute(name, std::move(list));
}

void require_tensors(const std::vector<Value*>& values) {
  for (const Value* value : values) {
    const bool is_tensor = value->type.is_tensor() || value->type.kind == Type::Kind::Unknown;
    if (!is_tensor) fail_unsupported("a branch or a loop gives a sequence, which a .pt2 file cannot say");
  }
}

void make_cond(Graph& graph, Node& node) {
  AtenWriter writer(graph);
  writer.write_before(&node);
  Value* condition = as_scalar(writer, node.input(0), &node);
  const GraphPtr yes = branch_graph(node, "then_branch"), no = branch_graph(node, "else_branch");
  for (const GraphPtr& each : {yes, no}) {
    require_tensors(each->outputs());
  }
  const std::vector<Value*> captured = Closure(graph, node).close({yes, no});
  for (const GraphPtr& each : {yes, no}) copy_outputs(*each, node);
  node.domain = "higher_order";
  node.op = "cond";
  node.attributes.clear();
  node.resize_inputs(0);
  add_operand(node, "pred", condition);
  node.set_attribute("true_graph", yes);
  node.set_attribute("false_graph", no);
  set_operands(node, "operands", captured);
}

/// A loop that counts in a tensor, and ends when the count is reached or a flag is false.
class WhileLoop {
 public:
  WhileLoop(Graph& graph, Node& node)
      : graph_(graph),
        node_(node),
        loop_(node),
        outer_(graph),
        test_(std::make_shared<Graph>()),
        body_(std::make_shared<Graph>()) {
    outer_.write_before(&node);
  }

  void make() {
    require_tensors(loop_.initial);
    Node* hop = graph_.add_node("higher_order", "while_loop", &node_);
    hop->name = node_.name;
    hop->metadata = node_.metadata;
    outer_.write_before(hop);
    test_->owner = body_->owner = hop;
    std::vector<Value*> carried = first_values();
    for (const GraphPtr& each : {test_, body_}) {
      for (size_t i = 0; i < carried.size(); ++i)
        each->add_input(each->unique_name(carried[i]->name), type_inside(i, *carried[i]));
    }
    write_test();
    write_body();
    hop->set_attribute("cond_fn", test_);
    hop->set_attribute("body_fn", body_);
    const std::vector<Value*> captured = Closure(graph_, *hop).close({test_, body_});
    copy_outputs(*body_, node_);
    copy_outputs(*test_, node_);
    set_operands(*hop, "carried_inputs", carried);
    set_operands(*hop, "additional_inputs", captured);
    graph_.add_output_to(hop, graph_.unique_name("i"), scalar_type(DType::Int64));
    if (loop_.keep_on != nullptr) graph_.add_output_to(hop, graph_.unique_name("keep_on"), scalar_type(DType::Bool));
    const std::vector<Value*> outputs = node_.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) graph_.move_output(outputs[i], hop, first_ + i);
    node_.resize_outputs(0);
    graph_.erase(&node_);
  }

 private:
  Value* copied(Value* value) {
    AtenCall clone("clone", "", &node_);
    clone.with("self", value).with("memory_format", AttrValue(std::string("contiguous_format")));
    return outer_.add(clone, value->type, value->name);
  }

  std::vector<Value*> first_values() {
    AtenCall zero("scalar_tensor", "", &node_);
    zero.with("s", IntArg(0)).with("dtype", AttrValue(DType::Int64));
    std::vector<Value*> values{outer_.add(zero, scalar_type(DType::Int64), "i")};
    if (loop_.keep_on != nullptr) values.push_back(copied(as_scalar(outer_, loop_.keep_on, &node_)));
    first_ = values.size();
    for (Value* value : loop_.initial) {
      const bool is_twice = std::count(values.begin(), values.end(), value) > 0;
      values.push_back(is_twice || is_view(*value) ? copied(value) : value);
    }
    for (size_t i = 0; i < loop_.scans; ++i)
      values.push_back(no_scans(outer_, node_.output(loop_.initial.size() + i)->type, &node_));
    return values;
  }

  /// What a carried value is in any iteration.
  Type type_inside(size_t i, const Value& initial) const {
    const size_t carried = loop_.initial.size();
    if (i < first_) return initial.type;
    if (i < first_ + carried) {
      const Type& type = loop_.body->inputs()[i - first_ + 1]->type;
      return type.is_tensor() && type.shape ? type : initial.type;
    }
    Type type = node_.output(i - first_)->type;
    if (!type.is_tensor() || !type.shape) return initial.type;
    for (size_t d = 0; d < type.shape->size(); ++d) {
      Dim& size = (*type.shape)[d];
      if (d == 0 || !size.is_constant()) size = Dim::symbol(fmt::format("data of {} {}", initial.name, d));
    }
    return type;
  }

  void write_test() {
    AtenWriter writer(*test_);
    Value* result = nullptr;
    Value* i = test_->inputs()[0];
    if (loop_.count || loop_.count_value != nullptr) {
      AtenCall below("lt", loop_.count ? "Scalar" : "Tensor", &node_);
      below.with("self", i);
      if (loop_.count) {
        below.with("other", IntArg(*loop_.count));
      } else {
        AtenCall limit("scalar_tensor", "", &node_);
        limit.with("s", loop_.count_value).with("dtype", AttrValue(DType::Int64));
        below.with("other", outer_.add(limit, scalar_type(DType::Int64), "count"));
      }
      result = writer.add(below, scalar_type(DType::Bool), "goes_on");
    }
    if (loop_.keep_on != nullptr) {
      Value* keep = test_->inputs()[1];
      if (result != nullptr) {
        AtenCall both("logical_and", "", &node_);
        both.with("self", result).with("other", keep);
        keep = writer.add(both, scalar_type(DType::Bool), "goes_on");
      }
      result = keep;
    }
    if (result == nullptr) fail_unsupported("a loop without an end");
    test_->add_output(result);
  }

  void write_body() {
    const Graph& source = *loop_.body;
    ValueMap map;
    AtenWriter writer(*body_);
    Value* i = body_->inputs()[0];
    if (!source.inputs()[0]->uses.empty()) {
      AtenCall item("item", "", &node_);
      item.with("self", i);
      map[source.inputs()[0]] = writer.add(item, Type::number(Type::Kind::Int), "number");
    }
    const size_t carried = loop_.initial.size();
    for (size_t k = 0; k < carried; ++k) map[source.inputs()[k + 1]] = body_->inputs()[first_ + k];
    clone_nodes(source, *body_, nullptr, map);
    AtenCall next("add", "Scalar", &node_);
    next.with("self", i).with("other", IntArg(1));
    body_->add_output(writer.add(next, scalar_type(DType::Int64), "next"));
    const size_t offset = loop_.keep_on != nullptr ? 1 : 0;
    if (offset != 0) body_->add_output(as_scalar(writer, copy_of(source.outputs()[0], map), &node_));
    for (size_t k = 0; k < carried; ++k) body_->add_output(copy_of(source.outputs()[offset + k], map));
    for (size_t k = 0; k < loop_.scans; ++k) {
      Value* step = copy_of(source.outputs()[offset + carried + k], map);
      AtenCall row("unsqueeze", "", &node_);
      row.with("self", step).with("dim", IntArg(0));
      Value* steps = body_->inputs()[first_ + carried + k];
      Type row_type = Type::tensor(step->type.dtype);
      if (step->type.shape) {
        row_type.shape = Shape{1};
        row_type.shape->insert(row_type.shape->end(), step->type.shape->begin(), step->type.shape->end());
      }
      AtenCall longer("cat", "", &node_);
      AttrList list = operands(longer, {steps, writer.add(row, row_type, "step")});
      longer.with("tensors", AttrValue(std::move(list)));
      const bool has_shape = steps->type.shape && row_type.shape && steps->type.shape->size() == row_type.shape->size();
      body_->add_output(writer.add(longer, has_shape ? steps->type : Type::tensor(step->type.dtype), "steps"));
    }
  }

  Graph& graph_;
  Node& node_;
  Loop loop_;
  AtenWriter outer_;
  GraphPtr test_, body_;
  size_t first_ = 0;  // the first value that the loop of the model carries
};

}  // namespace

void make_higher_order(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& inner : subgraphs_of(*node)) make_higher_order(*inner);
    if (is_own(*node, "cond")) make_cond(graph, *node);
    if (is_own(*node, "loop")) WhileLoop(graph, *node).make();
    node = next;
  }
}

}  // namespace tonnx
