// older.cpp - what operators of older files meant.
#include "formats/torchscript/operators/operators.h"
#include "formats/torchscript/run/item_facts.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

/// Of integers it was rounded.
std::optional<Item> older_div(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  if (call.version >= 4 || args.size() != 2 || !call.arguments.keywords.empty()) return std::nullopt;
  const auto is_whole = [](const Item& item) {
    return item.is(IKind::Tensor) ? item.number || !is_float(item.value->type.dtype) : !item.is(IKind::Float);
  };
  if (!args[0].is(IKind::Tensor) || !is_whole(args[0]) || !is_whole(args[1])) return std::nullopt;
  return ops.calls.call("aten", call.op, {args, {{"rounding_mode", Item::of_text("trunc")}}});
}

/// Of an integer it was a tensor of floats.
std::optional<Item> older_full(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  if (call.version >= 5 || args.size() < 2 || !args[1].is_number() || !args[1].is_constant()) return std::nullopt;
  const Item* dtype = find_argument(call.arguments, 2, "dtype");
  if (dtype != nullptr && !dtype->is(IKind::None)) return std::nullopt;
  Arguments given = call.arguments;
  given.positional[1] = Item::of_float(real_of(args[1]));
  return ops.calls.call("aten", call.op, given);
}

/// The number of steps could be left out.
template <int64_t Version>
std::optional<Item> older_space(Operators& ops, const OpCall& call) {
  if (call.version >= Version || call.args.size() < 3 || !call.args[2].is(IKind::None)) return std::nullopt;
  Arguments given = call.arguments;
  given.positional[2] = Item::of_int(100);
  return ops.calls.call("aten", call.op, given);
}

constexpr OpRow kOlderRows[] = {
    {"div", older_div},           {"div_", older_div},          {"full", older_full},
    {"linspace", older_space<8>}, {"logspace", older_space<9>},
};

}  // namespace

constinit const OpTable kOlderForms = kOlderRows;

}  // namespace tonnx::torchscript
