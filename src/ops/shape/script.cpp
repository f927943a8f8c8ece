// script.cpp - sizes, and tensors that are made of numbers, in TorchScript's code.
#include "ops/shape/script.h"

#include <fmt/format.h>

namespace tonnx {
namespace {

constexpr std::string_view kCopiedZeros = R"(def copied_zeros(sizes: List[int],
    x: Tensor) -> List[int]:
  own = torch.size(x)
  result = annotate(List[int], [])
  for i in range(len(sizes)):
    n = sizes[i]
    if i < len(own) and n == 0:
      n = own[i]
    else:
      pass
    torch.append(result, n)
  return result
)";
constexpr std::string_view kBroadcastShapes = R"(def broadcast_shapes(x: Tensor,
    sizes: List[int]) -> List[int]:
  own = torch.size(x)
  rank = ops.prim.max(len(own), len(sizes))
  result = annotate(List[int], [])
  for i in range(rank):
    n = 1
    at = i - rank + len(own)
    if at >= 0:
      n = own[at]
    else:
      pass
    at = i - rank + len(sizes)
    if at >= 0 and n == 1:
      n = sizes[at]
    else:
      pass
    torch.append(result, n)
  return result
)";
constexpr std::string_view kAxes = R"(def axes(x: Tensor,
    start: int) -> List[int]:
  result = annotate(List[int], [])
  for i in range(torch.dim(x) - start):
    torch.append(result, start + i)
  return result
)";
constexpr std::string_view kReversedAxes = R"(def reversed_axes(x: Tensor) -> List[int]:
  rank = torch.dim(x)
  result = annotate(List[int], [])
  for i in range(rank):
    torch.append(result, rank - i - 1)
  return result
)";

}  // namespace

std::string script_item(ScriptNode& n) {
  const Type::Kind kind = n.args().node().output(0)->type.kind;
  const char* type = kind == Type::Kind::Float ? "float" : kind == Type::Kind::Bool ? "bool" : "int";
  return fmt::format("{}({})", type, n.text("self"));
}

std::string script_int_tensor(ScriptNode& n) { return n.tensor_of(n.list("values")); }
std::string script_int_scalar(ScriptNode& n) { return n.tensor_of(n.text("value")); }

std::string script_tolist(ScriptNode& n) {
  const bool is_wide = n.args().value("self")->type.dtype == DType::Int64;
  const std::string self = n.text("self");
  return fmt::format("annotate(List[int], ({}).tolist())",
                     is_wide ? self : fmt::format("torch.to({}, {})", self, n.dtype(DType::Int64)));
}

std::string script_list_item(ScriptNode& n) { return fmt::format("{}[{}]", n.text("list"), n.text("index")); }

std::string script_shape(ScriptNode& n) {
  const auto bound = [&](const char* name) { return n.args().has(name) ? n.text(name) : std::string(); };
  return n.tensor_of(fmt::format("torch.size({})[{}:{}]", n.text("self"), bound("start"), bound("end")));
}

std::string script_copied_zeros(ScriptNode& n) {
  return n.call_own("copied_zeros", kCopiedZeros, {n.list("list"), n.text("self")});
}

std::string script_axes(ScriptNode& n) {
  return n.call_own("axes", kAxes, {n.text("self"), n.args().has("start") ? n.text("start") : "0"});
}

std::string script_reversed_axes(ScriptNode& n) { return n.call_own("reversed_axes", kReversedAxes, {n.text("self")}); }

std::string script_broadcast_shapes(ScriptNode& n) {
  return n.call_own("broadcast_shapes", kBroadcastShapes, {n.text("self"), n.list("shape")});
}

/// A power of integers is a float, or an integer, as its exponent is; only the type of the result knows.
std::string script_power(ScriptNode& n) {
  const std::string power = fmt::format("{} ** {}", n.operand("a"), n.operand("b"));
  return n.args().node().output(0)->type.kind == Type::Kind::Int ? "int(" + power + ")" : power;
}

std::string script_same_number(ScriptNode& n) { return n.operand("a"); }
std::string script_not(ScriptNode& n) { return "not " + n.operand("a"); }

std::string script_choice(ScriptNode& n) {
  return fmt::format("{} if {} else {}", n.operand("t"), n.operand("b"), n.operand("f"));
}

}  // namespace tonnx
