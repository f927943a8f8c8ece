// target.cpp - takes targets apart, and refuses what is no name.
#include "formats/pt2/target.h"

#include <algorithm>

#include "base/error.h"
#include "base/identifier.h"
#include "ops/frame/op_def.h"

namespace tonnx::pt2 {

namespace {

/// Libraries of operators that only tonnx makes, on its way to code or out of the user's own functions.
bool is_ours(std::string_view library) { return library == "tonnx" || library == "tonnx_function"; }

/// Operators of aten that are called as Python's methods are, the only ones with two underscores in a row.
bool is_method_of_python(std::string_view name) {
  constexpr std::string_view kNames[] = {"__and__",  "__or__",  "__xor__",  "__lshift__",  "__rshift__",
                                         "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// What PyTorch calls the arguments of operators that take graphs; the file leaves the names out. Switches of autograd
/// and autocast have no rows, as nothing is left of them but their graphs.
std::string name_of_graph_argument(const Node& node, size_t i) {
  struct Switch {
    std::string_view op;
    std::string_view names[4];
  };
  constexpr Switch kSwitches[] = {
      {"wrap_with_set_grad_enabled", {"enabled", "graph", "operands", ""}},
      {"wrap_with_autocast", {"device", "dtype", "enabled", "cache_enabled"}},
  };
  const AtenOpEntry* entry = find_aten_op(node);
  if (entry && i < entry->signature.inputs.size()) return entry->signature.inputs[i].name;
  for (const Switch& each : kSwitches) {
    if (each.op == node.op.view() && i < std::size(each.names) && !each.names[i].empty())
      return std::string(each.names[i]);
  }
  return fmt::format("arg{}", i);
}

}  // namespace

void set_target(Node& node, std::string_view target, Origin origin) {
  constexpr std::string_view kOps = "torch.ops.";
  std::string_view rest = target;
  const bool is_op = rest.starts_with(kOps);
  if (is_op) rest.remove_prefix(kOps.size());
  const size_t dot = rest.find('.');
  require(dot != std::string_view::npos && dot > 0, "the target '{}' has no namespace", target);
  const std::string_view library = rest.substr(0, dot);
  std::string_view name = rest.substr(dot + 1), overload;
  if (const size_t last = name.rfind('.'); is_op && last != std::string_view::npos) {
    overload = name.substr(last + 1);
    name = name.substr(0, last);
  }
  if (is_op) {
    const bool is_allowed = !is_ours(library) || (origin == Origin::Package && library == "tonnx_function");
    require(is_allowed, "'{}' is no operator of PyTorch", target);
  } else if (origin == Origin::File) {
    // numbers are computed with by functions of Python
    const bool is_arithmetic = library == "_operator" || library == "math" ||
                               (library == "torch" && (name.starts_with("sym_") || name.starts_with("_sym_")));
    if (!is_arithmetic) fail_unsupported("'{}' is no function that a program can call", target);
  }
  node.domain = library;
  node.op = name;
  node.overload = overload == "default" ? std::string_view() : overload;
  if (find_aten_op(node) != nullptr) return;
  if (library == "aten" && is_method_of_python(name) && (overload.empty() || is_plain_name(overload))) return;
  const auto is_name = origin == Origin::File ? is_plain_name : is_identifier;
  require(is_name(library) && is_name(name) && (overload.empty() || is_name(overload)),
          "'{}' is no name of an operator", target);
}

std::string argument_name(const Node& node, std::string_view given, size_t position) {
  if (node.domain == "higher_order") return name_of_graph_argument(node, position);
  if (const AtenOpEntry* entry = find_aten_op(node)) {
    const ParsedSignature& signature = entry->signature;
    if (signature.find_input(given) >= 0) return std::string(given);
    // functions of Python may have their arguments under any names
    const bool is_by_place = (given.empty() || node.domain != "aten") && position < signature.inputs.size();
    require(is_by_place, "{}::{} has no argument '{}'", node.domain.view(), node.op.view(), given);
    return signature.inputs[position].name;
  }
  if (given.empty()) return fmt::format("arg{}", position);
  // a keyword too: aten::random has an argument `from`
  require(is_identifier(given) && given.find("__") == std::string_view::npos, "'{}' is no name of an argument", given);
  return std::string(given);
}

}  // namespace tonnx::pt2
