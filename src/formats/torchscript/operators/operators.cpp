// operators.cpp - finds what computes an operator: tables of functions, then the rows of src/ops.
#include "formats/torchscript/operators/operators.h"

#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/run/item_facts.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

std::optional<Item> no(Operators&, const OpCall&) { return Item::of_bool(false); }

// prim

std::optional<Item> raised(Operators& ops, const OpCall& call) {
  if (ops.branches == 0)
    fail_invalid("the model raises an exception for such inputs: {}",
                 call.args.empty() ? std::string() : call.args[0].text);
  Item raised = Item::of(IKind::Unset);
  raised.text = "raised";
  return raised;
}

std::optional<Item> number_as_tensor(Operators&, const OpCall& call) {
  Item tensor = Item::tensor(nullptr);
  tensor.number = std::make_shared<Item>(call.args[0]);
  return tensor;
}

std::optional<Item> as_aten(Operators& ops, const OpCall& call) { return ops.operate("aten", call.op, call.arguments); }

std::optional<Item> type_of_device(Operators&, const OpCall&) { return Item::of_text("cpu"); }

constexpr OpRow kPrim[] = {
    {"ListUnpack", itself},
    {"NumToTensor", number_as_tensor},
    {"TupleUnpack", itself},
    {"abs", as_aten},
    {"data", itself},
    {"max", as_aten},
    {"min", as_aten},
    {"type", type_of_device},
    {"unchecked_unwrap_optional", itself},
};

std::optional<Item> number_of_dtype(Operators&, const OpCall& call) {
  const Value* value = call.args[0].value;
  return Item::of_int(number_of(value ? value->type.dtype : DType::Int64));
}

std::optional<Item> device_of_tensor(Operators&, const OpCall&) { return cpu(); }

std::optional<Item> strided_layout(Operators&, const OpCall&) { return Item::of_int(0); }

std::optional<Item> is_trained(Operators&, const OpCall& call) {
  const Value* value = call.args[0].value;
  return Item::of_bool(value != nullptr && value->trainable);
}

std::optional<Item> transposed(Operators& ops, const OpCall& call) {
  return ops.operate("aten", call.op == "T" ? "numpy_T" : call.op, call.arguments);
}

std::optional<Item> shape_of_aten(Operators& ops, const OpCall& call) {
  return ops.operate("aten", "size", call.arguments);
}

std::optional<Item> rank_of_aten(Operators& ops, const OpCall& call) {
  return ops.operate("aten", "dim", call.arguments);
}

constexpr OpRow kPrimOfTensors[] = {
    {"H", transposed},
    {"T", transposed},
    {"device", device_of_tensor},
    {"dtype", number_of_dtype},
    {"is_cuda", no},
    {"is_meta", no},
    {"is_mkldnn", no},
    {"is_mps", no},
    {"is_nested", no},
    {"is_quantized", no},
    {"is_sparse", no},
    {"is_vulkan", no},
    {"is_xla", no},
    {"layout", strided_layout},
    {"mH", transposed},
    {"mT", transposed},
    {"ndim", rank_of_aten},
    {"requires_grad", is_trained},
    {"shape", shape_of_aten},
};

/// Whether the tables here have it, or a special case.
bool is_computed(std::string_view library, std::string_view op) {
  if (library == "prim") return true;
  if (library != "aten") return false;
  if (op.starts_with("is_") || op == "copy_" || op == "RaiseException") return true;
  const OpTable tables[] = {kPrim, kPrimOfTensors, kOlderForms, kOfAnything, kOfTensors};
  const auto has_row = [&](OpTable table) { return find_named(table, op) != nullptr; };
  return std::any_of(std::begin(tables), std::end(tables), has_row) || is_of_numbers(op) || is_of_containers(op);
}

/// A list that a loop has stacked along a first dimension.
std::optional<Item> joined_stack(Operators& ops, std::string_view op, const Arguments& arguments) {
  const Item all = Item::tensor(arguments.positional[0].value);
  const Item* dim = find_argument(arguments, 1, "dim");
  const bool is_first = dim == nullptr || (dim->is(IKind::Int) && dim->integer == 0);
  const auto flattened = [&](const Item& tensor, const Item& from, int64_t to) {
    return ops.calls.call("aten", "flatten", {{tensor, from, Item::of_int(to)}, {}});
  };
  if (op == "stack" && is_first) return all;
  if (op == "cat" && is_first) return flattened(all, Item::of_int(0), 1);
  if (op != "stack" && op != "cat") return std::nullopt;
  const Item moved = ops.calls.call("aten", "movedim", {{all, Item::of_int(0), *dim}, {}});
  if (op == "stack") return moved;
  require(dim->integer >= 0, "tensors of a loop are joined along dimension {}", dim->integer);
  return flattened(moved, *dim, dim->integer + 1);
}

}  // namespace

std::optional<Item> itself(Operators&, const OpCall& call) { return call.args[0]; }

std::optional<Item> nothing(Operators&, const OpCall&) { return Item::none(); }

Item cpu() {
  Item device = Item::of(IKind::Device);
  device.text = "cpu";
  return device;
}

std::optional<Item> from_table(OpTable table, Operators& ops, const OpCall& call) {
  const Compute compute = find_named(table, call.op);
  return compute ? compute(ops, call) : std::nullopt;
}

bool Operators::is_refused(const Item& item) {
  if (item.is(IKind::Refused)) {
    if (!item.text.empty() && file != nullptr) refusals.add(item.text, *file, line);
    return true;
  }
  if (refusals.empty() || !item.items) return false;
  budget().take(Resource::Steps, static_cast<int64_t>(item.items->size()));
  return std::any_of(item.items->begin(), item.items->end(), [&](const Item& each) { return is_refused(each); });
}

bool Operators::is_refused(const Arguments& arguments) {
  bool found = false;
  for (const Item& item : arguments.positional) found = is_refused(item) || found;
  for (const auto& [name, item] : arguments.keywords) found = is_refused(item) || found;
  return found;
}

std::optional<Item> Operators::of_prim(std::string_view op, const Arguments& arguments) {
  const OpCall call{op, arguments, version_};
  if (op == "RaiseException") return raised(*this, call);
  if (call.args.empty()) return std::nullopt;
  if (auto made = from_table(kPrim, *this, call)) return made;
  return call.args[0].is(IKind::Tensor) ? from_table(kPrimOfTensors, *this, call) : std::nullopt;
}

std::optional<Item> Operators::of_aten(std::string_view op, const Arguments& arguments) {
  const OpCall call{op, arguments, version_};
  if (auto made = from_table(kOlderForms, *this, call)) return made;
  if (auto made = from_table(kOfAnything, *this, call)) return made;
  if (!call.args.empty() && call.args[0].is(IKind::Tensor)) {
    if (auto made = from_table(kOfTensors, *this, call)) return made;
    const bool is_dropout = op.find("dropout") != std::string_view::npos && call.args.size() == 3;
    const Item* is_training = is_dropout && call.args[2].is(IKind::Bool) ? &call.args[2] : nullptr;
    if (is_training && is_training->is_constant() && is_training->integer == 0) return call.args[0];
  }
  if (auto made = of_literals(*this, call)) return made;
  if (auto made = of_numbers(*this, call)) return made;
  return of_containers(*this, call);
}

Item Operators::operate(std::string_view library, std::string_view op, const Arguments& arguments) {
  if (is_refused(arguments)) {
    if (!is_computed(library, op) && !ScriptCalls::is_known(library, op) && file != nullptr)
      refusals.add(no_operator(library, op), *file, line);
    // a list or a dict that something is put into is not known any more
    const bool fills = is_one_of(op, {"append", "extend", "insert", "_set_item", "pop", "update"});
    if (fills && !arguments.positional.empty() && arguments.positional[0].items)
      arguments.positional[0].items->push_back(Item::refused());
    return Item::refused();
  }
  if (library == "prim") {
    if (auto made = of_prim(op, arguments)) return *made;
    throw Error(ErrorKind::Unsupported, no_operator("prim", op));
  }
  if (library == "aten") {
    if (auto made = of_aten(op, arguments)) return *made;
  }
  if (!arguments.positional.empty() && arguments.positional[0].is(IKind::List) && !arguments.positional[0].items) {
    if (auto made = joined_stack(*this, op, arguments)) return *made;
  }
  return calls.call(library, op, arguments);
}

}  // namespace tonnx::torchscript
