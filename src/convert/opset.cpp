// opset.cpp - applies the steps of the opset history.
#include "convert/opset.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "convert/fold.h"
#include "convert/trip_count.h"
#include "formats/onnx/onnx.h"
#include "ir/clone.h"
#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/op_def.h"
#include "ops/opset_step.h"

namespace tonnx {
namespace {

std::string describe(const Node& node, int64_t opset) {
  const std::string name = node.name.empty() && node.output(0) ? node.output(0)->name : node.name;
  const int version = node.domain.empty() ? schema_version(node.op.view(), opset) : 0;
  return fmt::format("node '{}' ({}-{})", name, node.op.view(), version > 0 ? version : opset);
}

/// The first step behind a version; null where there is none.
const OpsetStep* next_step(const OnnxOpEntry& entry, int64_t version) {
  const auto& history = entry.op->history;
  const auto at =
      std::find_if(history.begin(), history.end(), [&](const OpsetStep& step) { return step.to > version; });
  return at == history.end() ? nullptr : &*at;
}

class Upgrade {
 public:
  explicit Upgrade(const std::function<bool(const Node&)>& leave_alone) : leave_alone_(leave_alone) {}

  void walk(Graph& graph) {
    name_unknown_dims(graph);
    for (Node* node = graph.first(); node != nullptr;) {
      Node* next = node->next;
      visit(*node);
      node = next;
    }
  }

 private:
  /// Sizes that the file does not say get a symbol each, so that they can be reasoned about.
  void name_unknown_dims(Graph& graph) {
    for (Value* input : graph.inputs()) {
      if (input->constant) {  // what the file gives counts more than what it declares
        const std::vector<int64_t>& dims = input->constant->dims;
        input->type = Type::tensor(input->constant->dtype, Shape(dims.begin(), dims.end()));
      }
      if (!input->type.shape) continue;
      for (size_t i = 0; i < input->type.shape->size(); ++i) {
        Dim& dim = (*input->type.shape)[i];
        if (dim == Dim::symbol("")) dim = Dim::symbol(fmt::format("{}_dim{}", input->name, i));
      }
    }
  }

  void visit(Node& node) {
    const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
    if (entry == nullptr || (leave_alone_ && leave_alone_(node))) {
      for (const GraphPtr& subgraph : subgraphs_of(node)) walk(*subgraph);
      return;
    }
    in_context([&] { return "bringing " + describe(node, node.version) + " to the newest opset"; },
               [&] {
                 std::vector<Node*> behind;
                 const OnnxOpEntry* now = entry;
                 while (const OpsetStep* step = next_step(*now, node.version)) {
                   if (step->up != nullptr) {
                     OnnxEdit edit(node, step->to, true);
                     step->up(edit);
                     for (Node* made : edit.created()) {
                       const bool is_before =
                           std::any_of(made->outputs().begin(), made->outputs().end(), [&](const Value* output) {
                             return output && std::any_of(output->uses.begin(), output->uses.end(),
                                                          [&](const Use& use) { return use.user == &node; });
                           });
                       if (is_before)
                         visit_chain(*made);
                       else
                         behind.push_back(made);
                     }
                   }
                   node.version = step->to;
                   now = find_onnx_op(node.domain.view(),
                                      node.op.view());  // a step may have turned it into another operator
                   ensure(now != nullptr, "an opset step leads to an operator that the tables do not have");
                 }
                 if (node.domain.empty()) node.version = kNewestOpset;
                 if (now->op->expand != nullptr) {
                   check_against_signature(node, *now);
                   OnnxEdit edit(node, kNewestOpset, true);
                   if (now->op->expand(NodeView(node, *now), edit)) {
                     ensure(edit.is_replaced(), "an expansion says that it was made, and was not");
                     for (Node* made : std::vector(edit.created())) visit(*made);
                     node.graph->erase(&node);
                     return;
                   }
                   ensure(edit.created().empty(), "an expansion that was not made has left nodes behind");
                 }
                 if (node.domain.empty() && node.op == Symbol("If")) {
                   check_against_signature(node, *now);
                   if (inline_branch(node)) return;
                   visit_if(node);
                 } else if (node.domain.empty() && node.op == Symbol("Loop")) {
                   check_against_signature(node, *now);
                   visit_loop(node);
                 } else {
                   for (const GraphPtr& subgraph : subgraphs_of(node)) walk(*subgraph);
                   infer(node, *now);
                 }
                 for (Node* made : behind) visit(*made);
               });
  }

  /// A node that a step put in front of another, and those it needs that the same step made.
  void visit_chain(Node& node) {
    for (Value* input : node.inputs()) {
      if (input && input->producer && input->type.kind == Type::Kind::Unknown &&
          input->producer->version != kNewestOpset) {
        visit_chain(*input->producer);
      }
    }
    if (node.version != kNewestOpset) visit(node);
  }

  void infer(Node& node, const OnnxOpEntry& entry) {
    check_against_signature(node, entry);
    std::vector<Type> declared;
    for (const Value* output : node.outputs()) declared.push_back(output ? output->type : Type{});
    if (entry.op->infer != nullptr) {
      InferNode view(node, entry, fresh_);
      entry.op->infer(view);
    }
    complete(node, declared);
    fold_node(node, entry, fresh_);
  }

  /// Takes what the file declares for outputs of which inference knows nothing.
  void complete(Node& node, const std::vector<Type>& declared) {
    for (size_t i = 0; i < declared.size(); ++i) {
      Value* output = node.output(i);
      if (output == nullptr) continue;
      Type& found = output->type;
      if (found.kind == Type::Kind::Unknown ||
          (found.is_tensor() && !found.shape && declared[i].is_tensor() && declared[i].shape)) {
        const DType dtype = found.dtype;
        found = declared[i];
        if (dtype != DType::Undefined) found.dtype = dtype;
      }
      if (!found.shape) continue;
      for (Dim& dim : *found.shape) {
        if (dim == Dim::symbol("")) dim = fresh_.next();
      }
    }
  }

  static GraphPtr graph_of(const Node& node, std::string_view name) {
    return *node.find_attribute(name)->value.get<GraphPtr>();
  }

  /// An If whose condition is known is the nodes of its branch.
  bool inline_branch(Node& node) {
    const Value* condition = node.input(0);
    require(condition != nullptr, "the condition is missing");
    const auto flag = condition->constant ? ints_of(*condition->constant) : std::nullopt;
    if (!flag || flag->size() != 1) return false;
    const GraphPtr branch = graph_of(node, (*flag)[0] != 0 ? "then_branch" : "else_branch");
    require(branch->inputs().empty() && node.outputs().size() <= branch->outputs().size(),
            "the branch has {} inputs and {} outputs, and the node {} outputs", branch->inputs().size(),
            branch->outputs().size(), node.outputs().size());
    Graph& graph = *node.graph;
    ValueMap map;
    Node* before = node.previous;
    clone_nodes(*branch, graph, &node, map);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      Value* output = node.output(i);
      if (output == nullptr) continue;
      Node* identity = graph.add_node("", "Identity", &node);
      identity->version = kNewestOpset;
      identity->set_input(0, copy_of(branch->outputs()[i], map));
      graph.move_output(output, identity, 0);
    }
    for (Node* made = before ? before->next : graph.first(); made != &node;) {
      Node* next = made->next;
      visit(*made);
      made = next;
    }
    graph.erase(&node);
    return true;
  }

  /// What the model says of a value, or of the copy of it that it gives as an output.
  static const Type& declared_type(const Value& value) {
    const Node* copy = value.uses.size() == 1 ? value.uses[0].user : nullptr;
    const bool is_copy = copy && copy->domain.empty() && copy->op == Symbol("Identity") && copy->output(0);
    return is_copy && !value.type.shape ? copy->output(0)->type : value.type;
  }

  void visit_if(Node& node) {
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
          found[i] = merged(found[i], type);
      }
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (Value* output = node.output(i)) output->type = outside(found[i], mark);
    }
    complete(node, declared);
  }

  /// The type of a value that is of the one or the other. A size of the first that is newer than `mark` stands for any.
  Type merged(const Type& a, const Type& b, int mark = std::numeric_limits<int>::max()) {
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
  Type outside(Type type, int mark) {
    if (type.shape) {
      for (Dim& dim : *type.shape) {
        if (FreshDims::is_newer(dim, mark)) dim = fresh_.next();
      }
    }
    for (Type& element : type.elements) element = outside(element, mark);
    return type;
  }

  void visit_loop(Node& node) {
    constexpr int kRounds = 4;
    constexpr int kDepth = 3;  // of loops inside loops whose bodies are tried, before nothing is taken for granted
    const GraphPtr body = graph_of(node, "body");
    const size_t carried = node.inputs().size() > 2 ? node.inputs().size() - 2 : 0;
    require(body->inputs().size() == carried + 2 && body->outputs().size() >= carried + 1 &&
                node.outputs().size() <= body->outputs().size() - 1,
            "the body has {} inputs and {} outputs, and the node {} and {}", body->inputs().size(),
            body->outputs().size(), node.inputs().size(), node.outputs().size());
    node.resize_outputs(body->outputs().size() - 1);  // the last ones may be left out
    see_through_invariants(node, *body);
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
        for (Type& type : types) type = without_sizes(type);
        break;
      }
      const std::vector<Type> before = types;
      const GraphPtr trial = clone_graph(*body, node, {});
      try {
        walk_body(*trial, types, counters);
        for (size_t i = 0; i < carried; ++i)
          types[i] = merged(types[i], outside(trial->outputs()[i + 1]->type, mark), mark);
      } catch (
          const Error& e) {  // the first iteration's sizes do not fit the second: the walk below says what is wrong
        if (e.kind() == ErrorKind::Internal) throw;
        for (Type& type : types) type = without_sizes(type);
        round = kRounds;
      }
      trial->release_uses();
      if (types == before) break;
    }
    walk_body(*body, types, counters);
    count_iterations(node, *body, body->inputs()[0]->known_ints->at(0), mark);
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

  /// What a body hands on as it got it, or as it was outside, is the value from outside, in every iteration.
  static void see_through_invariants(const Node& node, Graph& body) {
    for (size_t i = 2; i < node.inputs().size(); ++i) {
      const Value* output = body.outputs()[i - 1];
      while (output && output->producer && output->producer->graph == &body &&
             output->producer->op == Symbol("Identity") && output->producer->domain.empty()) {
        output = output->producer->input(0);
      }
      Value* input = body.inputs()[i];
      if ((output != input && output != node.input(i)) || node.input(i) == nullptr) continue;
      body.set_output(i - 1, node.input(i));
      body.replace_uses(input, node.input(i));
    }
  }

  static Type without_sizes(Type type) {
    type.shape.reset();
    for (Type& element : type.elements) element = without_sizes(element);
    return type;
  }

  Dim trip_count(const Node& node, const Graph& body) {
    const auto is_true = [](const Value* value) {
      const auto flag = value && value->constant ? ints_of(*value->constant) : std::nullopt;
      return value == nullptr || (flag && flag->size() == 1 && (*flag)[0] != 0);
    };
    const auto count = node.input(0) ? find_dims(*node.input(0)) : std::nullopt;
    const bool runs_through = is_true(node.input(1)) && is_true(body.outputs()[0]);
    if (!count || count->size() != 1 || !runs_through) return fresh_.next();
    return max((*count)[0], Dim(0));
  }

  void walk_body(Graph& body, const std::vector<Type>& carried, const std::vector<std::optional<Dim>>& counters) {
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

  const std::function<bool(const Node&)>& leave_alone_;
  FreshDims fresh_;
  int loop_depth_ = 0;
};

/// Refuses values of types that the step added, but for those that the signature gives one type (an axis, an index).
void refuse_types(const Node& node, const std::vector<Value*>& values, const std::vector<Param>& params,
                  const OpsetStep& step) {
  for (size_t i = 0; i < values.size() && !params.empty(); ++i) {
    const std::string& type = params[std::min(i, params.size() - 1)].type;
    const bool is_index = type.starts_with("tensor(") || type == "I" || type == "Tind";
    if (values[i] && !is_index && contains(step.adds, values[i]->type.dtype)) {
      fail_step(node, fmt::format("opset {} does not take {}", step.to - 1, name_of(values[i]->type.dtype)));
    }
  }
}

/// The step that cannot be taken down, as one line; empty where all went well.
std::string step_down(Node& node, const OnnxOpEntry& entry, int64_t target) {
  const auto& history = entry.op->history;
  for (auto step = history.rbegin(); step != history.rend(); ++step) {
    if (step->to > node.version || step->to <= target) continue;
    try {
      if (step->adds != 0) {
        refuse_types(node, node.inputs(), entry.signature.inputs, *step);
        refuse_types(node, node.outputs(), entry.signature.outputs, *step);
      }
      if (step->down != nullptr) {
        OnnxEdit edit(node, step->to, false);
        step->down(edit);
        for (Node* made : edit.created()) {
          const OnnxOpEntry* other = find_onnx_op("", made->op.view());
          const std::string why = other ? step_down(*made, *other, target) : "";
          if (!why.empty()) return why;
        }
      }
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Unsupported) throw;
      return e.text();
    }
    node.version = step->to - 1;
  }
  return "";
}

/// Whether the operator means the same at both opsets, by the standard's own list of versions.
bool unchanged_between(std::string_view op, int64_t a, int64_t b) {
  const int version = schema_version(op, a);
  return version != 0 && version == schema_version(op, b);
}

/// Brings one node up, with the nodes that its steps make.
void step_up(Node& node, int64_t target, std::vector<std::string>& obstacles) {
  std::vector<Node*> todo{&node};
  while (!todo.empty()) {
    Node* current = todo.back();
    todo.pop_back();
    while (const OnnxOpEntry* of = find_onnx_op("", current->op.view())) {
      const OpsetStep* step = next_step(*of, current->version);
      if (step == nullptr || step->to > target) break;
      if (step->up != nullptr) {
        OnnxEdit edit(*current, step->to, true);
        try {
          step->up(edit);
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::Unsupported) throw;
          obstacles.push_back(e.text());
        }
        todo.insert(todo.end(), edit.created().begin(), edit.created().end());
      }
      current->version = step->to;
    }
  }
}

void infer_made(const std::vector<Node*>& made) {
  FreshDims fresh;
  for (Node* node : made) {
    const OnnxOpEntry* entry = find_onnx_op(node->domain.view(), node->op.view());
    if (entry == nullptr || entry->op->infer == nullptr) continue;
    InferNode view(*node, *entry, fresh);
    entry->op->infer(view);
  }
}

void change_node(Node& node, int64_t target, std::vector<std::string>& obstacles);

/// Writes a node whose operator is younger than the target in terms of older ones; says whether it did.
bool substitute(Node& node, const OnnxOpEntry& entry, int64_t target, std::vector<std::string>& obstacles) {
  if (entry.op->before_since == nullptr) return false;
  try {
    OnnxEdit edit(node, kNewestOpset, true);
    if (!entry.op->before_since(NodeView(node, entry), edit)) return false;
    const std::vector<Node*> made = edit.created();
    infer_made(made);
    node.graph->erase(&node);
    for (Node* each : made) change_node(*each, target, obstacles);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Unsupported) throw;
    obstacles.push_back(e.text());
  }
  return true;
}

void change_node(Node& node, int64_t target, std::vector<std::string>& obstacles) {
  if (!node.domain.empty()) return;
  if (!unchanged_between(node.op.view(), node.version, target)) {
    const OnnxOpEntry* entry = find_onnx_op("", node.op.view());
    const bool is_newest = entry != nullptr && next_step(*entry, node.version) == nullptr;
    if (is_newest && target < node.version) check_against_signature(node, *entry);
    if (schema_version(node.op.view(), target) == 0) {
      if (is_newest && substitute(node, *entry, target, obstacles)) return;
      obstacles.push_back(
          error_text("node '{}' ({}): opset {} does not have the operator", node.name, node.op.view(), target));
    } else if (entry == nullptr) {
      obstacles.push_back(
          error_text("node '{}' ({}): the history of the operator is not known to tonnx", node.name, node.op.view()));
    } else if (target < node.version) {
      const std::string why = step_down(node, *entry, target);
      if (!why.empty()) obstacles.push_back(why);
    } else {
      step_up(node, target, obstacles);
    }
  }
  node.version = target;
}

void change(Graph& graph, int64_t target, std::vector<std::string>& obstacles) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) change(*subgraph, target, obstacles);
    change_node(*node, target, obstacles);
    node = next;
  }
}

/// What follows for the types of values that the file says nothing of. Inference knows the newest opset only, so it
/// works on a second reading of the file; weights are mapped, and cost nothing.
void learn_types(Model& model) {
  if (model.bytes.empty()) return;
  Model copy = read_onnx(model.bytes, model.folder);
  for (size_t i = 0; i < model.graph->inputs().size(); ++i)
    copy.graph->inputs()[i]->type = model.graph->inputs()[i]->type;
  try {
    upgrade_and_infer(*copy.graph);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return;  // a step that needs to know more says so itself
  }
  std::unordered_map<std::string_view, const Type*> types;
  for (const Node& node : *copy.graph) {
    for (const Value* output : node.outputs()) {
      if (output != nullptr) types.emplace(output->name, &output->type);
    }
  }
  for (const Node& node : *model.graph) {
    for (Value* output : node.outputs()) {
      if (output == nullptr ||
          (output->type.kind != Type::Kind::Unknown && (!output->type.is_tensor() || output->type.shape)))
        continue;
      const auto at = types.find(output->name);
      if (at != types.end() && at->second->kind != Type::Kind::Unknown) output->type = *at->second;
    }
  }
}

/// The IR version that brought each opset, so that a runtime of that time takes the file.
int64_t least_ir_version(int64_t opset) {
  struct Row {
    int64_t opset, ir;
  };
  constexpr Row kRows[] = {{28, 14}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9},
                           {15, 8},  {12, 7},  {11, 6},  {10, 5},  {9, 4},   {1, 3}};
  for (const Row& row : kRows) {
    if (opset >= row.opset) return row.ir;
  }
  return 3;
}

}  // namespace

void upgrade_and_infer(Graph& graph, const std::function<bool(const Node&)>& leave_alone) {
  Upgrade(leave_alone).walk(graph);
}

void change_opset(Model& model, int64_t target) {
  if (target < 1 || target > kNewestOpset) {
    fail_unsupported("opset {} is not known: tonnx knows 1 to {}", target, kNewestOpset);
  }
  if (model.opset("") == target) return;
  if (model.opset("") > kNewestOpset) {
    fail_unsupported("the model follows opset {}, and tonnx knows opsets up to {}", model.opset(""), kNewestOpset);
  }
  learn_types(model);
  std::vector<std::string> obstacles;
  change(*model.graph, target, obstacles);
  if (!obstacles.empty()) {
    std::string text = fmt::format("the model cannot be brought from opset {} to {}:", model.opset(""), target);
    for (const std::string& line : obstacles) text += "\n  " + line;
    throw Error(ErrorKind::Unsupported, text);
  }
  for (auto& [domain, version] : model.opsets) {
    if (domain.empty()) version = target;
  }
  model.ir_version = std::max(model.ir_version, least_ir_version(target));
}

}  // namespace tonnx
