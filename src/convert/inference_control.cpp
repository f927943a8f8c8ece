// inference_control.cpp - inference through If and Loop, whose graphs are walked like the main one.
#include <limits>

#include "base/error.h"
#include "convert/inference.h"
#include "convert/trip_count.h"
#include "ir/clone.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

GraphPtr graph_of(const Node& node, std::string_view name) { return *node.find_attribute(name)->value.get<GraphPtr>(); }

/// What the model says of a value, or of the copy of it that it gives as an output.
const Type& declared_type(const Value& value) {
  const Node* copy = value.uses.size() == 1 ? value.uses[0].user : nullptr;
  const bool is_copy = copy && copy->domain.empty() && copy->op == "Identity" && copy->output(0);
  return is_copy && !value.type.shape ? copy->output(0)->type : value.type;
}

/// What a body hands on as it got it, or as it was outside, is the value from outside, in every iteration.
void see_through_invariants(const Node& node, Graph& body) {
  for (size_t i = 2; i < node.inputs().size(); ++i) {
    const Value* output = body.outputs()[i - 1];
    while (output && output->producer && output->producer->graph == &body && output->producer->op == "Identity" &&
           output->producer->domain.empty()) {
      output = output->producer->input(0);
    }
    Value* input = body.inputs()[i];
    if ((output != input && output != node.input(i)) || node.input(i) == nullptr) continue;
    body.set_output(i - 1, node.input(i));
    body.replace_uses(input, node.input(i));
  }
}

}  // namespace

/// False where the node is neither an If nor a Loop.
bool OnnxInference::visit_control(Node& node, const OnnxOpEntry& entry) {
  static const Symbol kIf("If"), kLoop("Loop");
  if (!node.domain.empty() || (!(node.op == kIf) && !(node.op == kLoop))) return false;
  check_against_signature(node, entry);
  if (node.op == kLoop)
    visit_loop(node);
  else if (!options_.rewrites || !inline_branch(node))
    visit_if(node);
  return true;
}

/// An If whose condition is known is the nodes of its branch.
bool OnnxInference::inline_branch(Node& node) {
  Node* const before = node.previous;
  if (!put_branch_before(node)) return false;
  for (Node* made = before ? before->next : node.graph->first(); made != &node;) {
    Node* next = made->next;
    visit(*made);
    made = next;
  }
  node.graph->erase(&node);
  return true;
}

void OnnxInference::visit_if(Node& node) {
  const int mark = fresh_.mark();
  std::vector<Type> declared, found;
  for (const Value* output : node.outputs()) declared.push_back(output ? declared_type(*output) : Type{});
  for (const char* name : {"then_branch", "else_branch"}) {
    const GraphPtr branch = graph_of(node, name);
    require(branch->inputs().empty() && branch->outputs().size() >= node.outputs().size(),
            "{} has {} inputs and {} outputs, and the node {} outputs", name, branch->inputs().size(),
            branch->outputs().size(), node.outputs().size());
    walk(*branch);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const Type& type = branch->outputs()[i]->type;
      if (found.size() <= i)
        found.push_back(type);
      else
        found[i] = merged(found[i], type, std::numeric_limits<int>::max());
    }
  }
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    if (Value* output = node.output(i)) output->type = outside(found[i], mark);
  }
  complete(node, declared);
}

/// The type of a value that is of the one or the other. A size of the first that is newer than `mark` stands for any.
Type OnnxInference::merged(const Type& a, const Type& b, int mark) {
  if (a == b) return a;
  if (a.kind != b.kind || a.elements.size() != b.elements.size()) return {};
  Type result = a;
  if (a.dtype != b.dtype) return {};
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) {
    result.shape.reset();
  } else {
    for (size_t i = 0; i < a.shape->size(); ++i) {
      if (!((*a.shape)[i] == (*b.shape)[i]) && !FreshDims::is_newer((*a.shape)[i], mark))
        (*result.shape)[i] = fresh_.next();
    }
  }
  for (size_t i = 0; i < a.elements.size(); ++i) result.elements[i] = merged(a.elements[i], b.elements[i], mark);
  return result;
}

/// The type as it is seen outside a graph: sizes that only the graph knows get a name of their own.
Type OnnxInference::outside(Type type, int mark) {
  if (type.shape) {
    for (Dim& dim : *type.shape) {
      if (FreshDims::is_newer(dim, mark)) dim = fresh_.next();
    }
  }
  for (Type& element : type.elements) element = outside(element, mark);
  return type;
}

void OnnxInference::visit_loop(Node& node) {
  constexpr int kRounds = 4;
  constexpr int kDepth = 3;  // of loops inside loops whose bodies are tried, before nothing is taken for granted
  const GraphPtr body = graph_of(node, "body");
  const size_t carried = node.inputs().size() > 2 ? node.inputs().size() - 2 : 0;
  require(body->inputs().size() == carried + 2 && body->outputs().size() >= carried + 1 &&
              node.outputs().size() <= body->outputs().size() - 1,
          "the body has {} inputs and {} outputs, and the node {} and {}", body->inputs().size(),
          body->outputs().size(), node.inputs().size(), node.outputs().size());
  if (options_.rewrites) {
    node.resize_outputs(body->outputs().size() - 1);  // the last ones may be left out
    see_through_invariants(node, *body);
  }
  const int mark = fresh_.mark();
  std::vector<Type> declared, types;
  for (const Value* output : node.outputs()) declared.push_back(output ? output->type : Type{});
  for (size_t i = 0; i < carried; ++i) {
    require(node.input(i + 2) != nullptr, "an input is missing");
    types.push_back(node.input(i + 2)->type);
  }
  const std::vector<std::optional<Dim>> counters = find_counters(node, *body);
  // what is carried may change its sizes from one iteration to the next: tried on a copy until nothing changes any
  // more
  for (int round = 0; round < kRounds && carried > 0; ++round) {
    if (round == kRounds - 1 || loop_depth_ >= kDepth) {
      for (Type& type : types) type = without_shapes(type);
      break;
    }
    const std::vector<Type> before = types;
    const GraphPtr trial = clone_graph(*body, node, {});
    try {
      walk_body(*trial, types, counters);
      for (size_t i = 0; i < carried; ++i)
        types[i] = merged(types[i], outside(trial->outputs()[i + 1]->type, mark), mark);
    } catch (const Error& e) {  // the first iteration's sizes do not fit the second: the walk below says what is wrong
      if (e.kind() == ErrorKind::Internal) throw;
      for (Type& type : types) type = without_shapes(type);
      round = kRounds;
    }
    trial->release_uses();
    if (types == before) break;
  }
  walk_body(*body, types, counters);
  if (options_.rewrites) count_iterations(node, *body, body->inputs()[0]->known_ints->at(0), mark);
  const Dim turns = trip_count(node, *body);
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    Value* output = node.output(i);
    if (output == nullptr) continue;
    if (i < carried) {
      output->type = outside(types[i], mark);
      if (counters[i] && !FreshDims::is_newer(turns, mark)) output->known_ints = {*counters[i] + turns};
      continue;
    }
    output->type = outside(body->outputs()[i + 1]->type, mark);
    if (output->type.shape) output->type.shape->insert(output->type.shape->begin(), turns);
  }
  complete(node, declared);
}

Dim OnnxInference::trip_count(const Node& node, const Graph& body) {
  const auto is_true = [](const Value* value) {
    const auto flag = value && value->constant ? ints_of(*value->constant) : std::nullopt;
    return value == nullptr || (flag && flag->size() == 1 && (*flag)[0] != 0);
  };
  const auto count = node.input(0) ? find_dims(*node.input(0)) : std::nullopt;
  const bool runs_through = is_true(node.input(1)) && is_true(body.outputs()[0]);
  if (!count || count->size() != 1 || !runs_through) return fresh_.next();
  return max((*count)[0], Dim(0));
}

void OnnxInference::walk_body(Graph& body, const std::vector<Type>& carried,
                              const std::vector<std::optional<Dim>>& counters) {
  body.inputs()[0]->type = Type::tensor(DType::Int64, Shape{});
  body.inputs()[0]->known_ints = {fresh_.next()};
  body.inputs()[1]->constant = make_scalar(DType::Bool, 1);  // the body only runs while it is true
  body.inputs()[1]->type = Type::tensor(DType::Bool, Shape{});
  for (size_t i = 0; i < carried.size(); ++i) {
    body.inputs()[i + 2]->type = carried[i];
    if (counters[i]) body.inputs()[i + 2]->known_ints = {*counters[i] + body.inputs()[0]->known_ints->at(0)};
  }
  const int depth = loop_depth_++;
  walk(body);
  loop_depth_ = depth;
}

}  // namespace tonnx
