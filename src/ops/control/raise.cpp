// raise.cpp - PyTorch's operators that take graphs, torch.cond, while_loop, scan and map, as ONNX.
#include <algorithm>

#include "base/error.h"
#include "ir/clone.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

std::vector<Value*> joined(std::vector<Value*> a, const std::vector<Value*>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The type that a value of the aten graph has in ONNX.
Type onnx_type(const Value* aten) {
  switch (aten->type.kind) {
    case Type::Kind::Int: return Type::tensor(DType::Int64, Shape{1});
    case Type::Kind::Float: return Type::tensor(DType::Float32, Shape{});
    case Type::Kind::Bool: return Type::tensor(DType::Bool, Shape{});
    default: break;
  }
  require(aten->type.is_tensor() && aten->type.shape, "the type of '{}' is not known", aten->name);
  if (info(aten->type.dtype).kind == 'c') fail_unsupported("complex numbers in a graph inside a node");
  return aten->type;
}

/// The node's outputs, once its graphs are there.
Values outputs_of(const AtenNode& n, OnnxBuilder& onnx, Node& node) {
  Values results{};
  for (const Value* output : n.node().outputs())
    results.push_back(onnx.add_output_to(node, output ? output->name : "unused", output ? onnx_type(output) : Type{}));
  return results;
}

/// One number, whatever its shape was.
Value* decision(OnnxBuilder& onnx, Value* x) {
  x = onnx.cast(x, DType::Bool);
  return onnx.rank(x) == 0 ? x : onnx.reshape(x, Shape{});
}

Values raise_cond(const AtenNode& n, OnnxBuilder& onnx) {
  const std::vector<Value*> operands = n.operands("operands");
  Node* node = onnx.node("If", {decision(onnx, n.input("pred"))});
  const GraphPtr yes = n.graph("true_graph"), no = n.graph("false_graph");
  onnx.add_body(*node, "then_branch", [&](Graph&) { return onnx.inline_graph(*yes, operands); });
  onnx.add_body(*node, "else_branch", [&](Graph&) { return onnx.inline_graph(*no, operands); });
  Values results = outputs_of(n, onnx, *node);
  for (size_t i = 0; i < n.node().outputs().size(); ++i) {
    if (yes->outputs()[i]->type.rank() != no->outputs()[i]->type.rank()) results[i]->type.shape.reset();
  }
  return results;
}

/// Inputs of a graph inside a node, named and typed as those of the aten graph that it is made of.
std::vector<Value*> add_inputs(Graph& graph, const Graph& aten, size_t first, size_t count) {
  std::vector<Value*> made;
  require(first + count <= aten.inputs().size(), "a graph inside the node has {} inputs", aten.inputs().size());
  for (size_t i = first; i < first + count; ++i) {
    const Value* input = aten.inputs()[i];
    made.push_back(graph.add_input(graph.unique_name(input->name), onnx_type(input)));
  }
  return made;
}

/// Where a loop does nothing with a carried value but to append one row in each turn, and begins with none, the rows
/// are stacked by the Loop itself.
class Stacks {
 public:
  explicit Stacks(const AtenNode& n) : body_(std::make_shared<Graph>()) {
    const Graph& body = *n.graph("body_fn");
    ValueMap map;
    for (Value* input : body.inputs()) map[input] = body_->add_input(input->name, input->type);
    clone_nodes(body, *body_, nullptr, map);
    for (size_t k = 0; k < body.outputs().size(); ++k) {
      Value* result = copy_of(body.outputs()[k], map);
      Value* row = k < body_->inputs().size() && begins_empty(n, k) && is_unused(*n.graph("cond_fn"), k)
                       ? appended(result, *body_->inputs()[k])
                       : nullptr;
      if (row == nullptr && k < body_->inputs().size() && begins_empty(n, k)) require_rank(n, k, *body_->inputs()[k]);
      (row ? stacked_ : carried_).push_back(k);
      body_->add_output(row ? row : result);
    }
    if (!stacked_.empty()) remove_unused_nodes(*body_);
  }

  const Graph& body() const { return *body_; }
  const std::vector<size_t>& carried() const { return carried_; }
  const std::vector<size_t>& stacked() const { return stacked_; }
  /// First those that are carried, then those that are stacked.
  std::vector<size_t> order() const {
    std::vector<size_t> all = carried_;
    all.insert(all.end(), stacked_.begin(), stacked_.end());
    return all;
  }

 private:
  static const Node* made_by(const Value* value, std::string_view op) {
    const Node* node = value->producer;
    return node && node->domain == "aten" && node->op == Symbol(op) ? node : nullptr;
  }

  static const Type* initial_type(const AtenNode& n, size_t k) {
    const auto* list = n.node().find_attribute("carried_inputs")->value.get<AttrList>();
    const auto* operand = list && k < list->size() ? (*list)[k].get<Operand>() : nullptr;
    return operand ? &n.node().input(operand->index)->type : nullptr;
  }

  static bool begins_empty(const AtenNode& n, size_t k) {
    const Type* type = initial_type(n, k);
    return type && type->is_tensor() && type->shape && !type->shape->empty() && type->shape->front().is(0);
  }

  /// Only PyTorch joins an empty list with tensors of more dimensions; a runtime of ONNX may even die of it.
  static void require_rank(const AtenNode& n, size_t k, const Value& inside) {
    if (initial_type(n, k)->rank() != inside.type.rank())
      fail_unsupported("'{}' begins as an empty list and is {} in the loop, which ONNX cannot say", inside.name,
                       text_of(inside.type));
  }

  static bool is_unused(const Graph& graph, size_t k) {
    return k < graph.inputs().size() && graph.inputs()[k]->uses.empty();
  }

  /// `row` of cat([all, row.unsqueeze(0)]), where nobody else looks at `all`.
  static Value* appended(const Value* result, const Value& all) {
    if (const Node* copy = made_by(result, "clone")) result = copy->input(0);
    const Node* cat = made_by(result, "cat");
    const Attribute* dim = cat ? cat->find_attribute("dim") : nullptr;
    const auto* at = dim ? dim->value.get<int64_t>() : nullptr;
    if (cat == nullptr || (dim && (at == nullptr || *at != 0)) || all.uses.size() != 1) return nullptr;
    if (cat->inputs().size() != 2 || cat->input(0) != &all) return nullptr;
    const Node* rows = made_by(cat->input(1), "unsqueeze");
    const Attribute* axis = rows ? rows->find_attribute("dim") : nullptr;
    const auto* front = axis ? axis->value.get<int64_t>() : nullptr;
    return front && *front == 0 ? rows->input(0) : nullptr;
  }

  GraphPtr body_;
  std::vector<size_t> carried_, stacked_;
};

std::vector<Value*> chosen(const std::vector<Value*>& values, const std::vector<size_t>& which) {
  std::vector<Value*> result;
  for (const size_t k : which) result.push_back(values.at(k));
  return result;
}

/// The condition is asked before the first turn, and after each.
Values raise_while_loop(const AtenNode& n, OnnxBuilder& onnx) {
  const GraphPtr cond = n.graph("cond_fn");
  const std::vector<Value*> carried = n.operands("carried_inputs"), more = n.operands("additional_inputs");
  const size_t count = n.graph("body_fn")->outputs().size();
  require(count == carried.size(), "a loop carries {} values, and its body gives {}", carried.size(), count);
  const Stacks stacks(n);
  const auto goes_on = [&](const std::vector<Value*>& state) {
    const std::vector<Value*> results = onnx.inline_graph(*cond, joined(state, more));
    require(results.size() == 1, "the condition of a loop gives {} values", results.size());
    return decision(onnx, results[0]);
  };
  std::vector<Value*> inputs{nullptr, goes_on(carried)};
  Node* node = onnx.node("Loop", joined(inputs, chosen(carried, stacks.carried())));
  onnx.add_body(*node, "body", [&](Graph& graph) {
    graph.add_input(graph.unique_name("iteration"), Type::tensor(DType::Int64, Shape{}));
    graph.add_input(graph.unique_name("goes_on"), Type::tensor(DType::Bool, Shape{}));
    std::vector<Value*> state = carried;
    for (const size_t k : stacks.carried()) state[k] = add_inputs(graph, stacks.body(), k, 1).front();
    const std::vector<Value*> next = onnx.inline_graph(stacks.body(), joined(state, more));
    for (const size_t k : stacks.carried()) state[k] = next[k];
    return joined({goes_on(state)}, chosen(next, stacks.order()));
  });
  const std::vector<size_t> order = stacks.order();
  std::vector<Value*> results(order.size());
  for (const size_t k : order) {
    const Value* output = n.node().output(k);
    results[k] = onnx.add_output_to(*node, output ? output->name : "unused", output ? onnx_type(output) : Type{});
  }
  return Values(std::move(results));
}

/// `f` of what is carried, of one part of each tensor, and of the rest; what it gives beyond what it carries is
/// stacked.
Values scanned(const AtenNode& n, OnnxBuilder& onnx, const Graph& f, const std::vector<Value*>& carried,
               const std::vector<Value*>& parts, const std::vector<Value*>& more) {
  Node* node = onnx.node("Scan", joined(carried, parts));
  node->set_attribute("num_scan_inputs", static_cast<int64_t>(parts.size()));
  onnx.add_body(*node, "body", [&](Graph& graph) {
    const std::vector<Value*> arguments = add_inputs(graph, f, 0, carried.size() + parts.size());
    return onnx.inline_graph(f, joined(arguments, more));
  });
  return outputs_of(n, onnx, *node);
}

Values raise_scan(const AtenNode& n, OnnxBuilder& onnx) {
  return scanned(n, onnx, *n.graph("combine_fn"), n.operands("init"), n.operands("xs"),
                 n.operands("additional_inputs"));
}

Values raise_map(const AtenNode& n, OnnxBuilder& onnx) {
  return scanned(n, onnx, *n.graph("f"), {}, n.operands("mapped_args"), n.operands("operands"));
}

constexpr AtenOp kAtenControlFlowAten[] = {
    {.sig = "higher_order::cond(Tensor pred, Graph true_graph, Graph false_graph, Tensor[] operands=[]) -> Tensor[]",
     .python = "torch.cond",
     .raise = raise_cond},
    {.sig = "higher_order::while_loop(Graph cond_fn, Graph body_fn, Tensor[] carried_inputs, Tensor[] "
            "additional_inputs=[]) -> Tensor[]",
     .python = "torch.ops.higher_order.while_loop",
     .raise = raise_while_loop},
    {.sig = "higher_order::scan(Graph combine_fn, Tensor[] init, Tensor[] xs, Tensor[] additional_inputs=[]) -> "
            "Tensor[]",
     .python = "torch.ops.higher_order.scan",
     .raise = raise_scan},
    {.sig = "higher_order::map_impl(Graph f, Tensor[] mapped_args, Tensor[] operands=[]) -> Tensor[]",
     .python = "torch.ops.higher_order.map_impl",
     .raise = raise_map},
};

}  // namespace

extern const OpFamily kAtenControlFlowOps;
constinit const OpFamily kAtenControlFlowOps{"aten_control_flow", {}, kAtenControlFlowAten};

}  // namespace tonnx
