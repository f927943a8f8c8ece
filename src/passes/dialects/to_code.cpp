// to_code.cpp - arguments as a person would give them.
#include "passes/dialects/to_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/identifier.h"
#include "ops/frame/node_view.h"
#include "ops/frame/op_def.h"
#include "passes/dialects/to_code_steps.h"
#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

bool is_placement(const Param& param) {
  return param.type == "Device" || param.type == "Layout" || param.type == "MemoryFormat" || param.name == "pin_memory";
}

/// What the writer relies on: an argument without a default is given, and the first tensor is one, or a number in its
/// place.
void check_arguments(const Node& node, const ParsedSignature& signature) {
  if (node.domain != "aten") return;
  for (const Param& param : signature.inputs) {
    const Attribute* given = node.find_attribute(param.name);
    require(given != nullptr || param.has_default, "argument '{}' is missing", param.name);
    if (const auto* dim = given ? given->value.get<int64_t>() : nullptr;
        dim && param.name.find("dim") != param.name.npos)
      require(*dim >= -kMaxRank && *dim < kMaxRank, "argument '{}' is {}", param.name, *dim);
    const bool is_first = &param == &signature.inputs.front() && param.type == "Tensor" && !param.is_list;
    if (given == nullptr || !is_first || param.optional) continue;
    const bool is_number = given->value.get<int64_t>() || given->value.get<double>() || given->value.get<bool>();
    require(given->value.get<Operand>() || (is_number && param.name != "input"), "argument '{}' is not a tensor",
            param.name);
  }
}

/// torch.export calls a sum with a number add.Tensor; what looks for numbers knows it as add.Scalar.
void name_scalar_overload(Node& node) {
  if (node.domain != "aten" || node.overload != "Tensor" || operand(node, "self") == nullptr ||
      !number_of(node, "other"))
    return;
  node.overload = "Scalar";
  if (find_aten_op(node) == nullptr) node.overload = "Tensor";
}

/// Whether it lets everything be seen.
bool is_open_mask(const Value* mask) {
  if (mask == nullptr || !mask->constant || mask->sparse || mask->constant->dtype != DType::Bool) return false;
  const Tensor& tensor = *mask->constant;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (element_as_int(tensor, i) == 0) return false;
  }
  return true;
}

/// The scale that attention has anyway, and a mask that hides nothing.
void simplify_attention(Node& node) {
  if (!is_aten(node, "scaled_dot_product_attention")) return;
  if (is_open_mask(operand(node, "attn_mask"))) {
    node.set_input(node.find_attribute("attn_mask")->value.get<Operand>()->index, nullptr);
    node.take_attribute("attn_mask");
  }
  const Value* query = operand(node, "query");
  const auto scale = number_of(node, "scale");
  if (!scale || query == nullptr || query->type.rank().value_or(0) < 1) return;
  const auto size = query->type.shape->back().constant();
  if (size && *size > 0 && std::abs(*scale * std::sqrt(static_cast<double>(*size)) - 1) < 1e-12)
    node.take_attribute("scale");
}

void leave_out_defaults(Node& node, const ParsedSignature& signature) {
  std::erase_if(node.attributes, [&](const Attribute& attribute) {
    const int at = signature.find_input(attribute.name);
    if (at < 0) return false;
    const Param& param = signature.inputs[static_cast<size_t>(at)];
    if (!param.has_default) return false;
    return is_placement(param) || equals_default(attribute.value, param.default_value, param.is_list);
  });
}

/// Whether PyTorch can be called with the node's arguments, by their names, though the tables do not have its operator.
bool can_be_called(const Node& node) {
  if (does_more_than_compute(node.domain.view(), node.op.view())) return false;
  return !node.outputs().empty() && std::all_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& a) {
    return is_plain_name(a.name) && a.value.get<GraphPtr>() == nullptr && a.value.get<TensorPtr>() == nullptr &&
           a.value.get<Type>() == nullptr && a.value.get<SparseTensorPtr>() == nullptr &&
           a.value.get<std::vector<std::string>>() == nullptr;
  });
}

void make_call(Node& node) {
  std::erase_if(node.attributes, [](const Attribute& attribute) {
    return attribute.name == "device" || attribute.name == "layout" || attribute.name == "memory_format" ||
           attribute.name == "pin_memory";
  });
  const std::string target = fmt::format("{}.{}.{}", node.domain.view(), node.op.view(),
                                         node.overload.empty() ? "default" : node.overload.view());
  node.domain = "tonnx";
  node.op = "call_operator";
  node.overload = "";
  node.set_attribute("tonnx_target", target);
}

void check_nodes(Graph& graph, const AllowedOps& allowed, std::map<std::string, UnwrittenOp>& missing) {
  for (Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) check_nodes(*subgraph, allowed, missing);
    name_scalar_overload(node);
    simplify_attention(node);
    const AtenOpEntry* entry = find_aten_op(node);
    if (entry != nullptr) {
      in_context([&] { return "checking " + full_name(node); }, [&] { check_arguments(node, entry->signature); });
      leave_out_defaults(node, entry->signature);
    }
    // an argument that is a graph has no text
    const bool has_graphs = node.domain == "higher_order";
    if (entry != nullptr && !has_graphs && (!entry->op->python.empty() || entry->op->emit != nullptr)) continue;
    const bool can_call = can_be_called(node);
    if (can_call && allowed.contains(node)) {
      make_call(node);
    } else {
      UnwrittenOp& op = missing[full_name(node)];
      op.places.push_back(node.name);
      op.can_be_allowed = can_call;
    }
  }
}

}  // namespace

std::vector<UnwrittenOp> find_unwritten(Graph& graph, const AllowedOps& allowed) {
  drop_copies(graph);
  make_literals(graph);
  open_graphs(graph);
  std::map<std::string, UnwrittenOp> missing;
  check_nodes(graph, allowed, missing);
  std::vector<UnwrittenOp> result;
  for (auto& [target, op] : missing) {
    op.target = target;
    result.push_back(std::move(op));
  }
  return result;
}

void to_code(Graph& graph, const AllowedOps& allowed) {
  const std::vector<UnwrittenOp> missing = find_unwritten(graph, allowed);
  if (missing.empty()) return;
  std::string text = "these operators cannot be written as Python:";
  for (const UnwrittenOp& op : missing) {
    const std::string target = shown(op.target);
    text += fmt::format("\n  {}, {} time{}", target, op.places.size(), op.places.size() == 1 ? "" : "s");
    if (op.can_be_allowed)
      text += fmt::format(" (not known; --allow-op {}, or allow_ops, has the code call it)", target);
  }
  throw Error(ErrorKind::Unsupported, text);
}

}  // namespace tonnx
