// opset.cpp - applies the steps of the opset history.
#include "convert/opset.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "convert/inference.h"
#include "ir/clone.h"
#include "ops/frame/infer.h"
#include "ops/frame/node_view.h"
#include "ops/frame/op_def.h"
#include "ops/frame/opset_step.h"

namespace tonnx {
namespace {

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
  if (entry.op->in_older == nullptr) return false;
  try {
    OnnxEdit edit(node, kNewestOpset, true);
    if (!entry.op->in_older(NodeView(node, entry), edit)) return false;
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
  if (!node.domain.empty() || node.version == target) return;
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

/// A line of an error, which names a node that a step may have made, as what is to be said of the node in the file.
struct Obstacle : OpsetObstacle {
  std::string line;
};

std::string without_node(const std::string& line) {
  const size_t end = line.starts_with("node '") ? line.find("): ") : std::string::npos;
  return end == std::string::npos ? line : line.substr(end + 3);
}

void change(Graph& graph, int64_t target, std::vector<Obstacle>& obstacles) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) change(*subgraph, target, obstacles);
    if (!node->domain.empty() || unchanged_between(node->op.view(), node->version, target)) {
      std::vector<std::string> none;
      change_node(*node, target, none);
    } else {
      const Symbol op = node->op;
      const int schema = schema_version(op.view(), node->version);
      const int64_t version = schema > 0 ? schema : node->version;
      const Value* output = node->outputs().empty() ? nullptr : node->output(0);
      const std::string name = node->name.empty() && output != nullptr ? output->name : node->name;
      std::vector<std::string> lines;
      change_node(*node, target, lines);
      for (const std::string& line : lines)
        obstacles.push_back({{std::string(op.view()), version, name, without_node(line)}, line});
    }
    node = next;
  }
}

/// The file says that the value has another rank than the one that is computed. A checker that knows the operator only
/// at the other opset notices that there.
bool has_other_rank(const Type& declared, const Type& found) {
  return declared.is_tensor() && found.is_tensor() && declared.shape && found.shape &&
         declared.shape->size() != found.shape->size();
}

void forget_declaration(Graph& graph, const Value* value) {
  for (size_t i = 0; i < graph.outputs().size() && i < graph.output_declarations.size(); ++i) {
    if (graph.outputs()[i] == value) graph.output_declarations[i] = {};
  }
  std::erase_if(graph.value_declarations, [&](const auto& declared) { return declared.first == value; });
}

/// What follows for the types of values that the file says nothing of, or what cannot be. Inference that brings nodes
/// to the newest opset works on a copy.
void infer_unknown_types(Model& model) {
  if (model.file_size == 0) return;  // made here, where types are known
  const Model copy = clone(model);
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
      const auto at = output != nullptr ? types.find(output->name) : types.end();
      if (at == types.end() || at->second->kind == Type::Kind::Unknown) continue;
      const Type& found = *at->second;
      const bool is_wrong = has_other_rank(output->type, found);
      if (is_wrong) forget_declaration(*model.graph, output);
      const bool is_known =
          output->type.kind != Type::Kind::Unknown && (!output->type.is_tensor() || output->type.shape);
      if (is_wrong || !is_known) output->type = found;
    }
  }
}

}  // namespace

namespace {

void change_graph(Model& model, int64_t target) {
  std::vector<Obstacle> obstacles;
  change(*model.graph, target, obstacles);
  if (obstacles.empty()) return;
  std::string text = fmt::format("the model cannot be brought from opset {} to {}:", model.opset(""), target);
  for (const Obstacle& each : obstacles) text += "\n  " + each.line;
  throw Error(ErrorKind::Unsupported, text);
}

/// Whether there is anything to do.
bool begin_change(Model& model, int64_t target) {
  if (target < 1 || target > kNewestOpset) {
    fail_unsupported("opset {} is not known: tonnx knows 1 to {}", target, kNewestOpset);
  }
  if (model.opset("") == target) return false;
  if (model.opset("") > kNewestOpset) {
    fail_unsupported("the model follows opset {}, and tonnx knows opsets up to {}", model.opset(""), kNewestOpset);
  }
  infer_unknown_types(model);
  return true;
}

}  // namespace

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

void align_opset(Model& model) { change_graph(model, model.opset("")); }

bool bring_down(Node& node, int64_t target) {
  std::vector<std::string> obstacles;
  change_node(node, target, obstacles);
  return obstacles.empty();
}

std::vector<OpsetObstacle> find_opset_obstacles(Model& model, int64_t target) {
  if (!begin_change(model, target)) return {};
  std::vector<Obstacle> obstacles;
  change(*model.graph, target, obstacles);
  return {obstacles.begin(), obstacles.end()};
}

void change_opset(Model& model, int64_t target) {
  if (!begin_change(model, target)) return;
  change_graph(model, target);
  for (auto& [domain, version] : model.opsets) {
    if (domain.empty()) version = target;
  }
  model.ir_version = std::max(model.ir_version, least_ir_version(target));
}

}  // namespace tonnx
