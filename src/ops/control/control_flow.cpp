// control_flow.cpp - If, Loop and Scan. Scan is written as a Loop; what the graphs inside give is inferred in
// convert/branches.cpp.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ir/clone.h"
#include "ops/control/script.h"
#include "ops/frame/emission.h"
#include "ops/frame/expansion.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/shape/rows.h"

namespace tonnx {
namespace {

/// A condition on sizes as a plain bool, which needs no tensor, and which torch.export can decide; null where it is
/// none.
Value* bool_of(const OnnxNode& n, AtenBuilder& aten, const Value* value, bool negated, int depth = 0) {
  struct Comparison {
    std::string_view op;
    const char *plain, *negated;
  };
  constexpr Comparison kComparisons[] = {
      {"Equal", "_operator::eq", "_operator::ne"},          {"Less", "_operator::lt", "_operator::ge"},
      {"LessOrEqual", "_operator::le", "_operator::gt"},    {"Greater", "_operator::gt", "_operator::le"},
      {"GreaterOrEqual", "_operator::ge", "_operator::lt"},
  };
  constexpr int kDepth = 16;
  const Node* node = value ? value->producer : nullptr;
  if (node == nullptr || !node->domain.empty() || depth > kDepth) return nullptr;
  const std::string_view op = node->op.view();
  const auto number = [&](size_t i) -> std::optional<Dim> {
    const auto dims = node->input(i) ? find_dims(*node->input(i)) : std::nullopt;
    return dims && dims->size() == 1 ? std::optional((*dims)[0]) : std::nullopt;
  };
  if (op == "Not") return bool_of(n, aten, node->input(0), !negated, depth + 1);
  const bool is_moved = op == "Squeeze" || op == "Unsqueeze" || op == "Reshape" || op == "Identity" || op == "Flatten";
  if (is_moved || (op == "Cast" && node->input(0) && node->input(0)->type.dtype == DType::Bool)) {
    return bool_of(n, aten, node->input(0), negated, depth + 1);
  }
  if (op == "Cast") {
    const auto size = number(0);
    return size ? aten(negated ? "_operator::eq" : "_operator::ne", n.int_arg(*size), 0) : nullptr;
  }
  if (op == "And" || op == "Or") {
    Value* a = bool_of(n, aten, node->input(0), negated, depth + 1);
    Value* b = a ? bool_of(n, aten, node->input(1), negated, depth + 1) : nullptr;
    return b ? aten((op == "And") != negated ? "tonnx::both" : "tonnx::either", a, b) : nullptr;
  }
  for (const Comparison& each : kComparisons) {
    if (op != each.op) continue;
    const auto a = number(0), b = number(1);
    return a && b ? aten(negated ? each.negated : each.plain, n.int_arg(*a), n.int_arg(*b)) : nullptr;
  }
  return nullptr;
}

/// The outputs of a node in their places, of those that were made.
Values in_place(const OnnxNode& n, const Values& made, const std::function<bool(size_t)>& is_made) {
  Values results({});
  for (size_t i = 0, at = 0; i < n.output_count(); ++i) results.push_back(is_made(i) ? made[at++] : nullptr);
  return results;
}

Values lower_if(const OnnxNode& n, AtenBuilder& aten) {
  Value* condition = bool_of(n, aten, n.value("cond"), false);
  Node* node = aten.node("tonnx::cond", condition ? condition : n.input("cond"));
  const auto is_wanted = [&](size_t i) { return n.wants_output(i); };
  for (const char* name : {"then_branch", "else_branch"}) {
    const GraphPtr branch = n.find_graph(name);
    AtenBuilder::Body body;
    for (size_t i = 0; i < n.output_count(); ++i) {
      if (is_wanted(i)) body.outputs.push_back(branch->outputs()[i]);
    }
    aten.add_body(*node, name, *branch, body);
  }
  return in_place(n, aten.add_outputs(*node, n.node(), is_wanted), is_wanted);
}

bool is_true(const Value* value) {
  if (value == nullptr) return true;
  const auto flag = value->constant ? ints_of(*value->constant) : std::nullopt;
  return flag && flag->size() == 1 && (*flag)[0] != 0;
}

Values lower_loop(const OnnxNode& n, AtenBuilder& aten) {
  constexpr int64_t kForever = int64_t{1} << 31;
  const GraphPtr body = n.find_graph("body");
  const auto& outputs = body->outputs();
  const std::vector<Value*> initial = n.inputs("v_initial");
  const bool stops = !is_true(outputs[0]);
  Arg count = nullptr;
  if (n.has("M") && (stops || is_true(n.value("cond")))) {
    const IntArg trips = n.int_arg("M");
    if (trips.value != nullptr || trips.number < kForever) count = trips;
  }
  Value* keep = n.has("cond") && !is_true(n.value("cond")) ? n.input("cond") : nullptr;
  if (keep != nullptr && !stops) {  // all iterations, or none
    if (!n.has("M")) fail_unsupported("a loop without an end");
    Value* plain = bool_of(n, aten, n.value("cond"), false);
    count = aten("tonnx::count_if", plain ? plain : keep, n.int_arg("M"));
    keep = nullptr;
  }
  if (stops && keep == nullptr) keep = aten.constant(make_scalar(DType::Bool, 1), "keep_on");
  // what the body hands on as it got it, and what nobody looks at, is not carried
  const auto is_carried = [&](size_t i) {
    if (i >= initial.size()) return n.wants_output(i);
    if (outputs[i + 1] == n.node().input(i + 2)) return false;
    // a counter is known from the number of the iteration
    if (body->inputs()[i + 2]->known_ints && (!n.wants_output(i) || n.node().output(i)->known_ints)) return false;
    return n.wants_output(i) || !body->inputs()[i + 2]->uses.empty();
  };
  std::vector<Value*> carried;
  int64_t scans = 0;
  AtenBuilder::Body inner{.counter = body->inputs()[0]};
  if (stops) inner.outputs.push_back(outputs[0]);
  for (size_t i = 0; i + 1 < outputs.size(); ++i) {
    if (!is_carried(i)) continue;
    inner.outputs.push_back(outputs[i + 1]);
    if (i >= initial.size()) {
      ++scans;
      continue;
    }
    carried.push_back(initial[i]);
    inner.inputs.push_back(body->inputs()[i + 2]);
  }
  Node* node = aten.node("tonnx::loop", count, Arg(keep), carried, scans);
  aten.add_body(*node, "body", *body, inner);
  Values results = in_place(n, aten.add_outputs(*node, n.node(), is_carried), is_carried);
  for (size_t i = 0; i < initial.size() && i < results.size(); ++i) {
    const Value* output = n.node().output(i);
    const bool is_known = output && output->known_ints;  // made from sizes where it is needed
    if (!is_carried(i)) results[i] = is_known ? nullptr : initial[i];
  }
  return results;
}

// Scan

int64_t item(const std::optional<std::vector<int64_t>>& list, size_t i) {
  return list && i < list->size() ? (*list)[i] : 0;
}

bool expand_scan(const NodeView& n, OnnxEdit& edit) {
  const GraphPtr scan = n.find_graph("body");
  const auto& inputs = n.node().inputs();
  const int64_t scan_count = n.i("num_scan_inputs");
  const auto input_count = static_cast<int64_t>(inputs.size());
  require(scan_count >= 1 && scan_count <= input_count, "num_scan_inputs is {}, of {} inputs", scan_count,
          inputs.size());
  require(static_cast<int64_t>(scan->inputs().size()) == input_count, "the body has {} inputs, and the node {}",
          scan->inputs().size(), inputs.size());
  const auto state_count = static_cast<size_t>(input_count - scan_count);
  require(scan->outputs().size() >= state_count && n.output_count() <= scan->outputs().size(),
          "the body has {} outputs, and the node {}", scan->outputs().size(), n.output_count());
  for (const Value* input : inputs) require(input != nullptr, "an input is missing");
  const auto axes = n.find_ints("scan_input_axes");
  const auto reversed = n.find_ints("scan_input_directions");

  Value* first = inputs[state_count];
  Value* sizes = edit.before("Shape", {first});
  Value* count = edit.before(
      "Gather", {sizes, edit.constant(make_scalar(DType::Int64, static_cast<double>(item(axes, 0))), "axis")},
      {{"axis", int64_t{0}}});
  Value* last = nullptr;
  if (reversed && std::any_of(reversed->begin(), reversed->end(), [](int64_t backwards) { return backwards != 0; })) {
    last = edit.before("Sub", {count, edit.constant(make_scalar(DType::Int64, 1), "one")});
  }
  std::vector<Value*> loop_inputs{count, nullptr};
  loop_inputs.insert(loop_inputs.end(), inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(state_count));
  Node* loop = edit.node_before("Loop", loop_inputs, {}, scan->outputs().size());
  const auto body = new_loop_body(*loop);
  Expansion inner(edit, *body);
  body->add_output(inner("Identity", {body->inputs()[1]}));
  ValueMap map;
  for (size_t i = 0; i < state_count; ++i) {
    map[scan->inputs()[i]] = add_input(*body, scan->inputs()[i]->name, inputs[i]->type);
  }
  for (size_t i = 0; i < static_cast<size_t>(scan_count); ++i) {
    Value* index = body->inputs()[0];
    if (item(reversed, i) != 0) index = inner("Sub", {last, index});
    map[scan->inputs()[state_count + i]] = inner("Gather", {inputs[state_count + i], index}, {{"axis", item(axes, i)}});
  }
  clone_nodes(*scan, *body, nullptr, map);
  for (Value* output : scan->outputs()) body->add_output(copy_of(output, map));
  loop->set_attribute("body", GraphPtr(body));

  const auto output_axes = n.find_ints("scan_output_axes");
  const auto output_reversed = n.find_ints("scan_output_directions");
  std::vector<Value*> results(loop->outputs().begin(), loop->outputs().end());
  for (size_t i = state_count; i < results.size(); ++i) {
    if (item(output_reversed, i - state_count) != 0) {
      results[i] = edit.before("Slice", {results[i], edit.ints({-1}), edit.ints({std::numeric_limits<int64_t>::min()}),
                                         edit.ints({0}), edit.ints({-1})});
    }
    const int64_t axis = item(output_axes, i - state_count);
    if (axis != 0) results[i] = edit.before("tonnx.MoveAxis", {results[i]}, {{"destination", axis}});
  }
  return edit.replace_with(results);
}

/// Opset 8 had a dimension for the batch in front of all, which the body does not see: a Loop over the batch.
void up_scan_9(OnnxEdit& edit) {
  Node& node = edit.node();
  require(node.inputs().size() > 1, "a Scan without inputs");
  if (node.input(0) != nullptr) edit.cannot("Scan of opset 8 with sequence_lens is not supported");
  const Attribute* given_body = node.find_attribute("body");
  require(given_body != nullptr && given_body->value.get<GraphPtr>() != nullptr,
          "attribute 'body' is missing, or no graph");
  const GraphPtr scan_body = *given_body->value.get<GraphPtr>();
  std::vector<Value*> inputs(node.inputs().begin() + 1, node.inputs().end());
  AttrValue directions = node.take_attribute("directions");
  require(directions.is_none() || directions.get<std::vector<int64_t>>() != nullptr,
          "attribute 'directions' is no list of integers");
  for (const Value* input : inputs) require(input != nullptr, "an input is missing");
  AttrValue count_of_inputs = node.take_attribute("num_scan_inputs");
  require(count_of_inputs.get<int64_t>() != nullptr, "attribute 'num_scan_inputs' is missing, or no integer");
  // nothing fails from here on: a graph that is not yet a node's must not go away
  Value* sizes = edit.before("Shape", {inputs[0]});
  Value* batch =
      edit.before("Gather", {sizes, edit.constant(make_scalar(DType::Int64, 0), "axis")}, {{"axis", int64_t{0}}});
  const auto body = new_loop_body(node);
  Expansion inner(edit, *body);
  body->add_output(inner("Identity", {body->inputs()[1]}));
  std::vector<Value*> elements;
  for (Value* input : inputs) elements.push_back(inner("Gather", {input, body->inputs()[0]}, {{"axis", int64_t{0}}}));
  Node* scan = append_node(*body, "Scan", elements, {}, 0);
  scan->set_attribute("num_scan_inputs", std::move(count_of_inputs));
  if (!directions.is_none()) scan->set_attribute("scan_input_directions", std::move(directions));
  const size_t count = scan_body->outputs().size();
  for (size_t i = 0; i < count; ++i) body->add_output(body->add_output_to(scan, body->unique_name("scan")));
  scan->set_attribute("body", clone_graph(*scan_body, *scan, {}));
  for (Node& made : *body) made.version = 9;
  scan_body->release_uses();
  node.attributes.clear();
  node.op = "Loop";
  node.resize_inputs(0);
  node.set_input(0, batch);
  node.set_attribute("body", GraphPtr(body));
}

// MoveAxis: the scan outputs of a Scan have their first dimension put elsewhere, which Transpose cannot do without the
// rank.

void infer_move_axis(InferNode& n) {
  const Shape* shape = n.find_shape("data");
  if (shape == nullptr || shape->empty()) return n.set(0, n.dtype("data"), std::nullopt);
  Shape result(shape->begin() + 1, shape->end());
  const int64_t axis = NodeView::normalized(n.i("destination"), static_cast<int64_t>(shape->size()));
  result.insert(result.begin() + axis, shape->front());
  n.set(0, n.dtype("data"), result);
}

Values lower_integer(const OnnxNode&, AtenBuilder&) { fail_unsupported("an integer that is not known"); }

Values lower_move_axis(const OnnxNode& n, AtenBuilder& aten) {
  return aten("movedim.int", n.input("data"), 0, n.i("destination"));
}

constexpr OpsetStep kBranchHistory[] = {
    {.to = 11},
    {.to = 13, .down = down_without_sequences},
    {.to = 16, .down = down_without_optionals, .adds = kBFloat16},
    {.to = 19, .adds = kFloat8},
    {.to = 21, .adds = kInt4},
    {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};
void down_scan_8(OnnxEdit& edit) { edit.cannot("Scan of opset 8 has another form"); }
constexpr OpsetStep kScanHistory[] = {
    {.to = 9, .up = up_scan_9, .down = down_scan_8},
    {.to = 11},
    {.to = 16, .adds = kBFloat16},
    {.to = 19, .adds = kFloat8},
    {.to = 21, .adds = kInt4},
    {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},
    {.to = 25, .adds = kInt2},
};

std::string emit_both(const Emission& e) {
  return fmt::format("({} and {})", e.text("a", precedence::kAnd), e.text("b", precedence::kAnd));
}

std::string emit_either(const Emission& e) {
  return fmt::format("({} or {})", e.text("a", precedence::kOr), e.text("b", precedence::kOr));
}

std::string emit_count_if(const Emission& e) {
  return fmt::format("({} if {} else 0)", e.text("count", precedence::kTernary),
                     e.text("condition", precedence::kTernary + 1));
}

constexpr OnnxOp kControlFlowOnnx[] = {
    {.sig = "If(B cond, *, graph else_branch, graph then_branch) -> V... outputs",
     .since = 1,
     .history = kBranchHistory,
     .lower = lower_if,
     .note = "torch.cond where both branches give tensors of one type and rank, else `if`"},
    {.sig = "Loop(I? M, B? cond, V... v_initial, *, graph body) -> V... v_final_and_scan_outputs",
     .since = 1,
     .history = kBranchHistory,
     .lower = lower_loop,
     .note = "a `for` loop; torch.while_loop where only the run tells when it ends, and its rules allow"},
    {.sig = "Scan(V... initial_state_and_scan_inputs, *, graph body, int num_scan_inputs, ints? scan_input_axes, "
            "ints? scan_input_directions, ints? scan_output_axes, ints? scan_output_directions) -> V... "
            "final_state_and_scan_outputs",
     .since = 8,
     .history = kScanHistory,
     .note = "opset 8 without sequence_lens",
     .expand = expand_scan},
    // an integer that is known from sizes
    {.sig = "tonnx::Integer() -> I value", .since = 1, .lower = lower_integer},
    {.sig = "tonnx::MoveAxis(T data, *, int destination) -> T moved",
     .since = 1,
     .infer = infer_move_axis,
     .lower = lower_move_axis},
};

constexpr AtenOp kControlFlowAten[] = {
    // the graphs then_branch and else_branch have no inputs, and one output for each of the node's
    {.sig = "tonnx::cond(Tensor pred) -> Tensor[]", .python = "torch.cond"},
    // The graph body takes the number of the iteration and what is carried, and gives whether to go on (only where
    // `keep_on`
    // is given), what is carried, and `scans` tensors that are stacked.
    {.sig = "tonnx::loop(SymInt? count, Tensor? keep_on, Tensor[] initial, int scans) -> Tensor[]", .python = "for"},
    {.sig = "_operator::eq(SymInt a, SymInt b) -> bool", .python = "==", .raise = raise_relation<"Equal">},
    {.sig = "_operator::ne(SymInt a, SymInt b) -> bool", .python = "!=", .raise = raise_relation<"NotEqual">},
    {.sig = "_operator::lt(SymInt a, SymInt b) -> bool", .python = "<", .raise = raise_relation<"Less">},
    {.sig = "_operator::le(SymInt a, SymInt b) -> bool", .python = "<=", .raise = raise_relation<"LessOrEqual">},
    {.sig = "_operator::gt(SymInt a, SymInt b) -> bool", .python = ">", .raise = raise_relation<"Greater">},
    {.sig = "_operator::ge(SymInt a, SymInt b) -> bool", .python = ">=", .raise = raise_relation<"GreaterOrEqual">},
    {.sig = "tonnx::both(bool a, bool b) -> bool", .emit = emit_both, .script = script_both},
    {.sig = "tonnx::either(bool a, bool b) -> bool", .emit = emit_either, .script = script_either},
    {.sig = "tonnx::count_if(Tensor condition, SymInt count) -> SymInt",
     .emit = emit_count_if,
     .script = script_count_if},
    {.sig = "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
     .types = types_movedim,
     .view = ViewRule::Movedim,
     .python = "torch.movedim",
     .raise = raise_movedim},
};

}  // namespace

extern const OpFamily kControlFlowOps;
constinit const OpFamily kControlFlowOps{"control_flow", kControlFlowOnnx, kControlFlowAten};

}  // namespace tonnx
