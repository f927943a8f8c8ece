// opset.cpp - applies the steps of the opset history.
#include "convert/opset.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "formats/onnx/onnx.h"
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
  const auto at = std::find_if(history.begin(), history.end(), [&](const OpsetStep& step) { return step.to > version; });
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
    in_context([&] { return "bringing " + describe(node, node.version) + " to the newest opset"; }, [&] {
      std::vector<Node*> behind;
      const OnnxOpEntry* now = entry;
      while (const OpsetStep* step = next_step(*now, node.version)) {
        if (step->up != nullptr) {
          OnnxEdit edit(node, step->to, true);
          step->up(edit);
          for (Node* made : edit.created()) {
            const bool is_before = std::any_of(made->outputs().begin(), made->outputs().end(), [&](const Value* output) {
              return output && std::any_of(output->uses.begin(), output->uses.end(), [&](const Use& use) { return use.user == &node; });
            });
            if (is_before) visit_chain(*made); else behind.push_back(made);
          }
        }
        node.version = step->to;
        now = find_onnx_op(node.domain.view(), node.op.view());  // a step may have turned it into another operator
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
      for (const GraphPtr& subgraph : subgraphs_of(node)) walk(*subgraph);
      infer(node, *now);
      for (Node* made : behind) visit(*made);
    });
  }

  /// A node that a step put in front of another, and those it needs that the same step made.
  void visit_chain(Node& node) {
    for (Value* input : node.inputs()) {
      if (input && input->producer && input->type.kind == Type::Kind::Unknown && input->producer->version != kNewestOpset) {
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
    for (size_t i = 0; i < declared.size(); ++i) {
      Value* output = node.output(i);
      if (output == nullptr) continue;
      Type& found = output->type;
      if (found.kind == Type::Kind::Unknown || (found.is_tensor() && !found.shape && declared[i].is_tensor() && declared[i].shape)) {
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

  const std::function<bool(const Node&)>& leave_alone_;
  FreshDims fresh_;
};

/// Refuses values of types that the step added, but for those that the signature gives one type (an axis, an index).
void refuse_types(const Node& node, const std::vector<Value*>& values, const std::vector<Param>& params, const OpsetStep& step) {
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

void change(Graph& graph, int64_t target, std::vector<std::string>& obstacles) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) change(*subgraph, target, obstacles);
    if (node->domain.empty() && !unchanged_between(node->op.view(), node->version, target)) {
      const OnnxOpEntry* entry = find_onnx_op("", node->op.view());
      if (schema_version(node->op.view(), target) == 0) {
        obstacles.push_back(error_text("node '{}' ({}): opset {} does not have the operator", node->name, node->op.view(), target));
      } else if (entry == nullptr) {
        obstacles.push_back(error_text("node '{}' ({}): the history of the operator is not known to tonnx", node->name, node->op.view()));
      } else if (target < node->version) {
        const std::string why = step_down(*node, *entry, target);
        if (!why.empty()) obstacles.push_back(why);
      } else {
        std::vector<Node*> todo{node};
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
    }
    node->version = node->domain.empty() ? target : node->version;
    node = next;
  }
}

/// What follows for the types of values that the file says nothing of. Inference knows the newest opset only, so it works
/// on a second reading of the file; weights are mapped, and cost nothing.
void learn_types(Model& model) {
  if (model.bytes.empty() || model.opset("") > kNewestOpset) return;
  Model copy = read_onnx(model.bytes, model.folder);
  for (size_t i = 0; i < model.graph->inputs().size(); ++i) copy.graph->inputs()[i]->type = model.graph->inputs()[i]->type;
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
      if (output == nullptr || (output->type.kind != Type::Kind::Unknown && (!output->type.is_tensor() || output->type.shape))) continue;
      const auto at = types.find(output->name);
      if (at != types.end() && at->second->kind != Type::Kind::Unknown) output->type = *at->second;
    }
  }
}

/// The IR version that brought each opset, so that a runtime of that time takes the file.
int64_t least_ir_version(int64_t opset) {
  struct Row { int64_t opset, ir; };
  constexpr Row kRows[] = {{28, 14}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}, {12, 7}, {11, 6}, {10, 5}, {9, 4}, {1, 3}};
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
