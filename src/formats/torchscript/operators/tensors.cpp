// tensors.cpp - operators of tensors that are computed while reading: sizes, types, numbers, and what changes nothing.
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/operators/operators.h"
#include "formats/torchscript/run/item_facts.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr int64_t kMostListed = 1024;  // elements of a tensor that becomes a list

Shape shape_of(const Item& self) { return self.number && self.value == nullptr ? Shape() : *self.value->type.shape; }

DType dtype_of_tensor(const Item& self) { return self.value ? self.value->type.dtype : DType::Int64; }

IKind kind_of(DType dtype) { return dtype == DType::Bool ? IKind::Bool : is_float(dtype) ? IKind::Float : IKind::Int; }

/// The places, dimension by dimension.
std::optional<Item> true_places(Operators& ops, const OpCall& call) {
  const Item& self = call.args[0];
  const Item places = ops.calls.call("aten", "nonzero", {{self}, {}});
  Item::Items list;
  for (int64_t i = 0; i < self.value->type.rank(); ++i)
    list.push_back(ops.calls.call("aten", "select", {{places, Item::of_int(1), Item::of_int(i)}, {}}));
  return Item::of_items(IKind::List, std::move(list));
}

std::optional<Item> places_where(Operators& ops, const OpCall& call) {
  return call.args.size() == 1 ? true_places(ops, call) : std::nullopt;
}

std::optional<Item> view_copy(Operators& ops, const OpCall& call) {
  const Item* const dtype = find_argument(call.arguments, 1, "dtype");
  if (dtype == nullptr || !dtype->is(IKind::Int)) return std::nullopt;
  return ops.calls.call_row("aten::view.dtype", {{"self", call.args[0]}, {"dtype", *dtype}});
}

/// The numbers that the arguments were made of, or are constants of; fewer where one is neither.
Arguments numbers_of(const OpCall& call) {
  Arguments numbers;
  for (const Item& each : call.args) {
    if (!each.is(IKind::Tensor) || each.number) {
      numbers.positional.push_back(each.number ? *each.number : each);
      continue;
    }
    const Tensor* constant = each.value->producer == nullptr ? each.value->constant.get() : nullptr;
    if (constant == nullptr || constant->count() != 1 || !constant->dims.empty()) break;
    numbers.positional.push_back(is_float(constant->dtype) ? Item::of_float(element_as_double(*constant, 0))
                                                           : Item::of_int(element_as_int(*constant, 0)));
  }
  return numbers;
}

/// Traces compute with sizes as tensors.
std::optional<Item> of_sizes(Operators& ops, const OpCall& call) {
  if (!call.args[0].number) return std::nullopt;
  const std::string_view op = call.op;
  Arguments numbers = numbers_of(call);
  const Item* rounding = find_argument(call.arguments, 3, "rounding_mode");
  const bool is_whole = op != "div" || (rounding != nullptr && rounding->is(IKind::Text));
  const bool has_alpha = (op == "add" || op == "sub" || op == "rsub") && numbers.positional.size() > 2;
  if (numbers.positional.size() != call.args.size() || !is_whole) return std::nullopt;
  if (has_alpha) {
    if (!numbers.positional[2].is_constant() || real_of(numbers.positional[2]) != 1) return std::nullopt;
    numbers.positional.resize(2);
  }
  std::string_view name = op == "floor_divide" || op == "div" ? "floordiv" : op;
  if (op == "rsub") {
    std::swap(numbers.positional[0], numbers.positional[1]);
    name = "sub";
  }
  auto made = of_numbers(ops, {name, numbers, call.version});
  if (!made) return std::nullopt;
  Item tensor = Item::tensor(nullptr);
  tensor.number = std::make_shared<Item>(std::move(*made));
  return tensor;
}

std::optional<Item> itself_if_size(Operators&, const OpCall& call) {
  return call.args[0].number ? std::optional(call.args[0]) : std::nullopt;
}

/// All is on one device, and sizes are integers already.
std::optional<Item> moved_to(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  const Item& self = args[0];
  if (args.size() >= 2 && args[1].is(IKind::Device)) {
    const Item* dtype = find_argument(call.arguments, 2, "dtype");
    if (dtype == nullptr || !dtype->is(IKind::Int)) return self;
    return ops.operate("aten", "to", {{self, *dtype}, {}});
  }
  const bool is_size = self.number && args.size() > 1 && args[1].is(IKind::Int) && self.number->is(IKind::Int);
  return is_size && dtype_of(args[1].integer) == DType::Int64 ? std::optional(self) : std::nullopt;
}

template <IKind Kind>
std::optional<Item> converted_to(Operators& ops, const OpCall& call) {
  return ops.converted(call.args[0], Kind);
}

std::optional<Item> as_number(Operators& ops, const OpCall& call) {
  const Item& self = call.args[0];
  if (self.number) return *self.number;
  return ops.converted(self, kind_of(self.value->type.dtype));
}

std::optional<Item> rank_of(Operators&, const OpCall& call) {
  return Item::of_int(static_cast<int64_t>(shape_of(call.args[0]).size()));
}

std::optional<Item> first_size(Operators& ops, const OpCall& call) { return ops.calls.size(call.args[0], 0); }

std::optional<Item> sizes_of(Operators& ops, const OpCall& call) {
  const Item& self = call.args[0];
  const Shape shape = shape_of(self);
  if (call.args.size() > 1) return ops.calls.size(self, call.args[1].integer);
  Item::Items sizes;
  for (size_t i = 0; i < shape.size(); ++i) sizes.push_back(ops.calls.size(self, static_cast<int64_t>(i)));
  return Item::of_items(IKind::List, std::move(sizes));
}

std::optional<Item> element_count(Operators& ops, const OpCall& call) {
  const Item& self = call.args[0];
  Item count = Item::of_int(1);
  for (size_t i = 0; i < shape_of(self).size(); ++i)
    count = ops.arithmetic("mul", count, ops.calls.size(self, static_cast<int64_t>(i)));
  return count;
}

std::optional<Item> as_list(Operators& ops, const OpCall& call) {
  const Item& self = call.args[0];
  const Shape shape = shape_of(self);
  const IKind kind = kind_of(dtype_of_tensor(self));
  if (shape.empty()) return ops.converted(self, kind);
  const auto count = shape[0].constant();
  if (shape.size() != 1 || !count || *count > kMostListed)
    fail_unsupported("a list of a tensor of shape {}", tonnx::text_of(shape));
  Item::Items list;
  for (int64_t i = 0; i < *count; ++i) {
    if (is_known_tensor(self)) {
      const Tensor& tensor = *self.value->constant;
      list.push_back(kind == IKind::Float  ? Item::of_float(element_as_double(tensor, i))
                     : kind == IKind::Bool ? Item::of_bool(element_as_int(tensor, i) != 0)
                                           : Item::of_int(element_as_int(tensor, i)));
    } else {
      const Item each = ops.calls.call("aten", "select", {{self, Item::of_int(0), Item::of_int(i)}, {}});
      list.push_back(ops.converted(each, kind));
    }
  }
  return Item::of_items(IKind::List, std::move(list));
}

std::optional<Item> is_of_floats(Operators&, const OpCall& call) {
  return Item::of_bool(is_float(dtype_of_tensor(call.args[0])));
}

std::optional<Item> is_of_complex(Operators&, const OpCall& call) {
  return Item::of_bool(is_complex(dtype_of_tensor(call.args[0])));
}

std::optional<Item> element_size(Operators&, const OpCall& call) {
  return Item::of_int(info(dtype_of_tensor(call.args[0])).bits / 8);
}

std::optional<Item> fill_with_zeros(Operators& ops, const OpCall& call) {
  return ops.calls.call("aten", "fill_", {{call.args[0], Item::of_int(0)}, {}});
}

constexpr OpRow kTensorRows[] = {
    {"Bool", converted_to<IKind::Bool>},
    {"Float", converted_to<IKind::Float>},
    {"FloatImplicit", converted_to<IKind::Float>},
    {"Int", converted_to<IKind::Int>},
    {"IntImplicit", converted_to<IKind::Int>},
    {"ScalarImplicit", as_number},
    {"add", of_sizes},
    {"alias", itself},
    {"clone", itself_if_size},
    {"contiguous", itself_if_size},
    {"cpu", itself},
    {"cuda", itself},
    {"detach", itself},
    {"detach_", itself},
    {"dim", rank_of},
    {"div", of_sizes},
    {"element_size", element_size},
    {"floor_divide", of_sizes},
    {"is_complex", is_of_complex},
    {"is_floating_point", is_of_floats},
    {"item", as_number},
    {"len", first_size},
    {"lift_fresh", itself},
    {"mul", of_sizes},
    {"ndimension", rank_of},
    {"neg", of_sizes},
    {"nonzero_numpy", true_places},
    {"numel", element_count},
    {"pin_memory", itself},
    {"remainder", of_sizes},
    {"requires_grad_", itself},
    {"rsub", of_sizes},
    {"size", sizes_of},
    {"sub", of_sizes},
    {"to", moved_to},
    {"tolist", as_list},
    {"view_copy", view_copy},
    {"where", places_where},
    {"zero_", fill_with_zeros},
};

}  // namespace

constinit const OpTable kOfTensors = kTensorRows;

}  // namespace tonnx::torchscript
