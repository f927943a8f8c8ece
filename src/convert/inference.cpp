// inference.cpp - visits the nodes of a graph, and calls the inference and the evaluation of their operators.
#include "convert/inference.h"

#include <algorithm>

#include "base/error.h"
#include "ir/clone.h"
#include "ops/frame/node_facts.h"
#include "ops/frame/node_view.h"
#include "ops/frame/op_def.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

std::string describe(const Node& node) {
  const std::string name = node.name.empty() && node.output(0) ? node.output(0)->name : node.name;
  const int version = node.domain.empty() ? schema_version(node.op.view(), node.version) : 0;
  return fmt::format("node '{}' ({}-{})", name, node.op.view(), version > 0 ? version : node.version);
}

namespace {

bool is_used_by(const Node& made, const Node& user) {
  return std::any_of(made.outputs().begin(), made.outputs().end(), [&](const Value* output) {
    return output &&
           std::any_of(output->uses.begin(), output->uses.end(), [&](const Use& use) { return use.user == &user; });
  });
}

/// Whether the newest form of the operator is another than the node's.
bool has_older_form(const Node& node, const OnnxOpEntry& entry) {
  return std::any_of(entry.op->history.begin(), entry.op->history.end(),
                     [&](const OpsetStep& step) { return step.to > node.version && step.up != nullptr; });
}

bool has_constant_inputs(const Node& node) {
  return std::all_of(node.inputs().begin(), node.inputs().end(),
                     [](const Value* value) { return value == nullptr || value->constant; });
}

bool has_constant_outputs(const Node& node) {
  return std::all_of(node.outputs().begin(), node.outputs().end(),
                     [](const Value* value) { return value == nullptr || value->constant; });
}

/// Whether the expansion gives the very outputs: that of ai.onnx.ml leaves out strings and maps, which PyTorch has not.
bool is_faithful(const Node& node) {
  static const Symbol kMl("ai.onnx.ml"), kZipMap("ZipMap");
  if (!(node.domain == kMl)) return true;
  return !(node.op == kZipMap) && std::none_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& a) {
    return a.value.get<std::vector<std::string>>() != nullptr;
  });
}

void avoid_names(FreshDims& fresh, const Type& type) {
  if (type.shape) {
    for (const Dim& dim : *type.shape) {
      if (dim.is_constant()) continue;
      if (const auto name = dim.symbol_name()) fresh.avoid(*name);
    }
  }
  for (const Type& element : type.elements) avoid_names(fresh, element);
}

}  // namespace

void OnnxInference::walk(Graph& graph) {
  name_unknown_dims(graph);
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    visit(*node);
    node = next;
  }
}

/// Sizes that the file does not say get a symbol each, so that they can be reasoned about.
void OnnxInference::name_unknown_dims(Graph& graph) {
  for (const Value* input : graph.inputs()) avoid_names(fresh_, input->type);
  for (const Node& node : graph) {
    for (const Value* output : node.outputs()) {
      if (output != nullptr) avoid_names(fresh_, output->type);
    }
  }
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

void OnnxInference::visit(Node& node) {
  if (options_.before && !options_.rewrites) options_.before(node);
  visit_node(node);
  if (options_.after && !options_.rewrites) options_.after(node);
}

void OnnxInference::visit_node(Node& node) {
  const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
  if (entry == nullptr || has_references(node) || (options_.leave_alone && options_.leave_alone(node))) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) walk(*subgraph);
    if (options_.infer_other) options_.infer_other(node);
    return;
  }
  if (options_.rewrites) {
    in_context([&] { return "bringing " + describe(node) + " to the newest opset"; },
               [&] { visit_at_newest(node, *entry); });
  } else {
    in_context([&] { return "inferring the types of " + describe(node); }, [&] { visit_as_is(node, *entry); });
  }
}

void OnnxInference::visit_at_newest(Node& node, const OnnxOpEntry& entry) {
  std::vector<Node*> behind;
  const OnnxOpEntry& now = upgrade(node, entry, behind);
  if (expand(node, now)) return;
  if (!visit_control(node, now)) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) walk(*subgraph);
    infer(node, now);
  }
  for (Node* made : behind) visit(*made);
}

/// Takes all steps of the operator's history. What they make in front of the node is visited, what is behind it is for
/// later. A step may turn the node into another operator, which is returned.
const OnnxOpEntry& OnnxInference::upgrade(Node& node, const OnnxOpEntry& entry, std::vector<Node*>& behind) {
  const OnnxOpEntry* now = &entry;
  while (const OpsetStep* step = next_step(*now, node.version)) {
    if (step->up != nullptr) {
      OnnxEdit edit(node, step->to, true);
      step->up(edit);
      for (Node* made : edit.created()) {
        if (is_used_by(*made, node))
          visit_chain(*made);
        else
          behind.push_back(made);
      }
    }
    node.version = step->to;
    now = find_onnx_op(node.domain.view(), node.op.view());
    ensure(now != nullptr, "an opset step leads to an operator that the tables do not have");
  }
  if (node.domain.empty()) node.version = kNewestOpset;
  return *now;
}

/// Writes the node in terms of others, where its operator can; the node is gone then.
bool OnnxInference::expand(Node& node, const OnnxOpEntry& entry) {
  if (entry.op->expand == nullptr) return false;
  check_against_signature(node, entry);
  OnnxEdit edit(node, kNewestOpset, true);
  if (!entry.op->expand(NodeView(node, entry), edit)) {
    ensure(edit.created().empty(), "an expansion that was not made has left nodes behind");
    return false;
  }
  ensure(edit.is_replaced(), "an expansion says that it was made, and was not");
  for (Node* made : std::vector(edit.created())) visit(*made);
  node.graph->erase(&node);
  return true;
}

/// A node that a step put in front of another, and those it needs that the same step made.
void OnnxInference::visit_chain(Node& node) {
  for (Value* input : node.inputs()) {
    if (input && input->producer && input->type.kind == Type::Kind::Unknown &&
        input->producer->version != kNewestOpset) {
      visit_chain(*input->producer);
    }
  }
  if (node.version != kNewestOpset) visit(node);
}

void OnnxInference::visit_as_is(Node& node, const OnnxOpEntry& entry) {
  if (visit_control(node, entry)) return;
  for (const GraphPtr& subgraph : subgraphs_of(node)) walk(*subgraph);
  if (has_older_form(node, entry)) return infer_from_copy(node);
  const bool can_expand = entry.op->expand != nullptr && is_faithful(node);
  if (entry.op->infer != nullptr || !can_expand) infer(node, entry);
  const bool is_worth_it = entry.op->infer == nullptr || (has_constant_inputs(node) && !has_constant_outputs(node));
  if (can_expand && is_worth_it) infer_from_copy(node);
}

/// A copy of the node is brought up in a graph of its own, and tells what is known of the outputs. The node is as it
/// was in the end.
void OnnxInference::infer_from_copy(Node& node) {
  Graph scratch;
  scratch.owner = &node;  // its nodes see what a graph inside the node sees
  const Bytes source = node.source;
  const std::vector<Value*> inputs = node.inputs();
  node.resize_inputs(0);  // so that each input has as many users as it had
  Node* copy = scratch.add_node(node.domain, node.op);
  copy->version = node.version;
  copy->name = node.name;
  for (const Attribute& attribute : node.attributes) {
    const auto* subgraph = attribute.value.get<GraphPtr>();
    copy->attributes.push_back(attribute);
    if (subgraph != nullptr) copy->attributes.back().value = clone_graph(**subgraph, *copy, {});
  }
  for (size_t i = 0; i < inputs.size(); ++i) copy->set_input(i, inputs[i]);
  Node* reader = scratch.add_node("tonnx", "Reader");
  for (Value* output : node.outputs()) {
    Value* made = scratch.add_output_to(copy, "", output ? output->type : Type{});
    reader->add_input(output ? made : nullptr);
  }
  const auto restore = [&] {
    scratch.release_uses();
    for (size_t i = 0; i < inputs.size(); ++i) node.set_input(i, inputs[i]);
    node.source = source;
  };
  options_.rewrites = true;
  bool is_known = true;
  try {
    visit(*copy);
  } catch (const Error& e) {
    is_known = false;  // a form that cannot be brought up: what the file declares is all that is known
    if (e.kind() != ErrorKind::Unsupported) {
      options_.rewrites = false;
      restore();
      throw;
    }
  }
  options_.rewrites = false;
  for (size_t i = 0; is_known && i < node.outputs().size(); ++i) {
    const Value* from = reader->input(i);
    Value* to = node.output(i);
    if (from == nullptr || to == nullptr) continue;
    to->type = from->type;
    to->known_ints = from->known_ints;
    to->constant = from->constant;
  }
  restore();
}

void OnnxInference::infer(Node& node, const OnnxOpEntry& entry) {
  check_against_signature(node, entry);
  std::vector<Type> declared;
  for (const Value* output : node.outputs()) declared.push_back(output ? output->type : Type{});
  if (entry.op->infer != nullptr) {
    InferNode view(node, entry, fresh_);
    entry.op->infer(view);
  }
  complete(node, declared);
  fold_node(node, entry, fresh_, options_.fold);
}

/// Takes what the file declares for outputs of which inference knows nothing.
void OnnxInference::complete(Node& node, const std::vector<Type>& declared) {
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

void upgrade_and_infer(Graph& graph, const std::function<bool(const Node&)>& leave_alone, const FoldLimits& fold,
                       const std::function<void(Node&)>& infer_other) {
  OnnxInference({.rewrites = true, .leave_alone = leave_alone, .fold = fold, .infer_other = infer_other}).walk(graph);
}

}  // namespace tonnx
