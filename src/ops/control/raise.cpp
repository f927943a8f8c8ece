// raise.cpp - PyTorch's operators that take graphs, torch.cond, while_loop, scan and map, as ONNX.
#include "ops/move/raise.h"

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

/// The condition is asked before the first turn, and after each.
Values raise_while_loop(const AtenNode& n, OnnxBuilder& onnx) {
  const GraphPtr cond = n.graph("cond_fn"), body = n.graph("body_fn");
  const std::vector<Value*> carried = n.operands("carried_inputs"), more = n.operands("additional_inputs");
  const auto goes_on = [&](const std::vector<Value*>& state) {
    const std::vector<Value*> results = onnx.inline_graph(*cond, joined(state, more));
    require(results.size() == 1, "the condition of a loop gives {} values", results.size());
    return decision(onnx, results[0]);
  };
  std::vector<Value*> inputs{nullptr, goes_on(carried)};
  Node* node = onnx.node("Loop", joined(inputs, carried));
  onnx.add_body(*node, "body", [&](Graph& graph) {
    graph.add_input(graph.unique_name("iteration"), Type::tensor(DType::Int64, Shape{}));
    graph.add_input(graph.unique_name("goes_on"), Type::tensor(DType::Bool, Shape{}));
    const std::vector<Value*> state = add_inputs(graph, *body, 0, carried.size());
    const std::vector<Value*> next = onnx.inline_graph(*body, joined(state, more));
    require(next.size() == carried.size(), "a loop carries {} values, and its body gives {}", carried.size(),
            next.size());
    return joined({goes_on(next)}, next);
  });
  return outputs_of(n, onnx, *node);
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
