// aten_call.cpp - operators that have no row of their own, in code: torch.ops.library.name(...).
#include <fmt/format.h>

#include "ops/frame/emission.h"
#include "ops/frame/op_def.h"
#include "ops/frame/script_node.h"

namespace tonnx {
namespace {

/// The first tensor by its place, everything else by its name.
std::string emit_call(const Emission& e) {
  std::vector<std::string> arguments;
  for (const Attribute& attribute : e.node().attributes) {
    if (attribute.name == "tonnx_target") continue;
    const bool by_place = arguments.empty() && attribute.value.get<Operand>() != nullptr;
    const std::string text = e.text(attribute.name);
    arguments.push_back(by_place ? text : fmt::format("{}={}", attribute.name, text));
  }
  return fmt::format("torch.ops.{}({})", e.string("tonnx_target"), joined(arguments));
}

/// The same in TorchScript, which finds the overload by itself.
std::string script_call(ScriptNode& n) {
  std::string target = n.args().string("tonnx_target");  // library.name.overload
  const size_t overload = target.find('.', target.find('.') + 1);
  if (overload != std::string::npos) target.erase(overload);
  std::vector<std::string> arguments;
  for (const Attribute& attribute : n.args().node().attributes) {
    if (attribute.name == "tonnx_target") continue;
    const bool by_place = arguments.empty() && attribute.value.get<Operand>() != nullptr;
    const std::string text = n.plain(attribute.value);
    arguments.push_back(by_place ? text : fmt::format("{}={}", attribute.name, text));
  }
  return fmt::format("ops.{}({})", target, joined(arguments));
}

constexpr AtenOp kAtenCallAten[] = {
    {.sig = "tonnx::call_operator(str tonnx_target) -> Tensor", .emit = emit_call, .script = script_call},
};

}  // namespace

extern const OpFamily kAtenCallOps;
constinit const OpFamily kAtenCallOps{"aten_call", {}, kAtenCallAten};

}  // namespace tonnx
