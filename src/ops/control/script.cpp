// script.cpp - lists of tensors, what may be absent, and conditions in TorchScript's code.
#include "ops/control/script.h"

#include <fmt/format.h>

namespace tonnx {
namespace {

constexpr std::string_view kListInsert = R"(def list_insert(items: List[Tensor],
    value: Tensor,
    index: int) -> List[Tensor]:
  return items[:index] + [value] + items[index:]
)";
constexpr std::string_view kListErase = R"(def list_erase(items: List[Tensor],
    index: int) -> List[Tensor]:
  rest = items[index:]
  return items[:index] + rest[1:]
)";

}  // namespace

std::string script_both(ScriptNode& n) { return fmt::format("{} and {}", n.text("a"), n.text("b")); }
std::string script_either(ScriptNode& n) { return fmt::format("{} or {}", n.text("a"), n.text("b")); }

std::string script_count_if(ScriptNode& n) {
  return fmt::format("{} if {} else 0", n.text("count"), n.condition("condition"));
}

std::string script_list(ScriptNode& n) { return n.list("items"); }
std::string script_list_at(ScriptNode& n) { return fmt::format("{}[{}]", n.text("self"), n.text("index")); }
std::string script_list_length(ScriptNode& n) { return fmt::format("len({})", n.text("self")); }

std::string script_list_insert(ScriptNode& n) {
  if (!n.args().has("index")) return fmt::format("{} + [{}]", n.text("self"), n.text("value"));
  return n.call_own("list_insert", kListInsert, {n.text("self"), n.text("value"), n.text("index")});
}

std::string script_list_erase(ScriptNode& n) {
  return n.call_own("list_erase", kListErase, {n.text("self"), n.args().has("index") ? n.text("index") : "-1"});
}

std::string script_unbind_list(ScriptNode& n) {
  return fmt::format("torch.unbind({}, {})", n.text("self"), n.text("dim"));
}

std::string script_split_list(ScriptNode& n) {
  const Value* value = n.args().value("sizes");
  const bool is_one =
      value ? value->type.kind == Type::Kind::Int : n.args().constant("sizes")->get<int64_t>() != nullptr;
  const std::string self = n.text("self"), dim = n.text("dim");
  if (!is_one) return fmt::format("torch.split_with_sizes({}, {}, {})", self, n.list("sizes"), dim);
  std::string pieces = fmt::format("torch.split({}, {}, {})", self, n.text("sizes"), dim);
  if (n.args().flag("may_be_empty")) pieces += fmt::format("[:torch.size({}, {})]", self, dim);
  return pieces;
}

std::string script_none(ScriptNode& n) { return fmt::format("annotate({}, None)", n.result_type()); }

std::string script_is_given(ScriptNode& n) {
  return fmt::format("torch.tensor({} is not None{})", n.variable("self"), n.device());
}

}  // namespace tonnx
