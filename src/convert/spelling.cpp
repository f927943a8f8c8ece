// spelling.cpp - arguments as a person would give them.
#include "convert/spelling.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "convert/spelling_control.h"
#include "ops/op_def.h"

namespace tonnx {
namespace {

std::string target_of(const Node& node) {
  return fmt::format("{}::{}{}{}", node.domain.view(), node.op.view(), node.overload.empty() ? "" : ".",
                     node.overload.view());
}

bool is_placement(const Param& param) {
  return param.type == "Device" || param.type == "Layout" || param.type == "MemoryFormat" || param.name == "pin_memory";
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

void visit(Graph& graph, std::map<std::string, size_t>& missing) {
  for (Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) visit(*subgraph, missing);
    const AtenOpEntry* entry = find_aten_op(target_of(node));
    if (entry == nullptr || (entry->op->python.empty() && entry->op->emit == nullptr)) {
      ++missing[target_of(node)];
    } else {
      leave_out_defaults(node, entry->signature);
    }
  }
}

}  // namespace

void require_spelled(Graph& graph) {
  open_graphs(graph);
  std::map<std::string, size_t> missing;
  visit(graph, missing);
  if (missing.empty()) return;
  std::string text = "these operators cannot be written as Python:";
  for (const auto& [target, count] : missing)
    text += fmt::format("\n  {}, {} time{}", shown(target), count, count == 1 ? "" : "s");
  throw Error(ErrorKind::Unsupported, text);
}

}  // namespace tonnx
