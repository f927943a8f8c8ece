// general.cpp - operators that take anything: layers of traces, new tensors, texts, and questions to the runtime.
#include <algorithm>
#include <functional>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/operators/operators.h"
#include "formats/torchscript/run/item_facts.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

/// aten::_convolution, as traces have it, by the name of the layer.
std::optional<Item> convolution(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  require(args.size() >= 9 && args[0].is(IKind::Tensor) && args[6].is(IKind::Bool), "a convolution lacks arguments");
  const size_t spatial = args[3].items ? args[3].items->size() : 0;
  require(spatial >= 1 && spatial <= 3, "a convolution has {} strides", spatial);
  const bool is_transposed = args[6].integer != 0;
  std::vector<std::pair<std::string, Item>> named = {{"input", args[0]},  {"weight", args[1]},  {"bias", args[2]},
                                                     {"stride", args[3]}, {"padding", args[4]}, {"dilation", args[5]},
                                                     {"groups", args[8]}};
  if (is_transposed) named.emplace_back("output_padding", args[7]);
  const std::string name = is_transposed
                               ? fmt::format("aten::conv_transpose{}d{}", spatial, spatial == 1 ? "" : ".input")
                               : fmt::format("aten::conv{}d", spatial);
  return ops.calls.call_row(name, std::move(named));
}

/// aten::_convolution_mode, whose padding is a word.
std::optional<Item> convolution_mode(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  require(args.size() == 7 && args[3].items, "a convolution lacks arguments");
  return ops.calls.call_row(fmt::format("aten::conv{}d.padding", args[3].items->size()), {{"input", args[0]},
                                                                                          {"weight", args[1]},
                                                                                          {"bias", args[2]},
                                                                                          {"stride", args[3]},
                                                                                          {"padding", args[4]},
                                                                                          {"dilation", args[5]},
                                                                                          {"groups", args[6]}});
}

/// Numbers, and lists of them, as they lie in a tensor.
struct Leaves {
  std::vector<int64_t> dims;
  Item::Items items;

  explicit Leaves(const Item& data) { collect(data, 0); }
  bool has(IKind kind) const {
    return std::any_of(items.begin(), items.end(), [&](const Item& each) { return each.is(kind); });
  }
  bool are_known() const {
    return std::all_of(items.begin(), items.end(), [](const Item& i) { return i.is_number() && i.is_constant(); });
  }
  DType dtype() const {
    if (items.empty() || has(IKind::Float)) return DType::Float32;
    return has(IKind::Int) ? DType::Int64 : DType::Bool;
  }

 private:
  void collect(const Item& item, size_t depth) {
    budget().take(Resource::Memory, sizeof(Item));
    if (!item.items) return items.push_back(item);
    if (dims.size() <= depth) dims.push_back(static_cast<int64_t>(item.items->size()));
    require(dims[depth] == static_cast<int64_t>(item.items->size()), "the lists of a tensor differ in length");
    for (const Item& each : *item.items) collect(each, depth + 1);
  }
};

/// torch.tensor of numbers, and lists of them.
std::optional<Item> make_tensor(Operators& ops, const OpCall& call) {
  require(!call.args.empty(), "a tensor is made of nothing");
  const Item& data = call.args[0];
  const Item* dtype = find_argument(call.arguments, 1, "dtype");
  const bool has_type = dtype != nullptr && dtype->is(IKind::Int);
  if (data.is(IKind::Tensor)) return data;
  const Leaves leaves(data);
  const DType wanted = has_type ? dtype_of(dtype->integer) : leaves.dtype();
  if (leaves.are_known()) {
    if (leaves.items.size() == 1 && leaves.dims.empty() && wanted == DType::Int64) {
      Item tensor = Item::tensor(ops.calls.constant(make_scalar(wanted, real_of(leaves.items[0])), kLiteral));
      tensor.number = std::make_shared<Item>(leaves.items[0]);
      return tensor;
    }
    std::vector<double> numbers;
    for (const Item& leaf : leaves.items) numbers.push_back(real_of(leaf));
    return Item::tensor(ops.calls.constant(make_floats(wanted, leaves.dims, numbers), "constant"));
  }
  Item::Items scalars;
  for (const Item& leaf : leaves.items) {
    require(leaf.is_number(), "a tensor is made of {}", name_of(leaf.kind));
    Item scalar = Item::tensor(ops.calls.as_tensor(leaf));
    if (scalar.value->type.dtype != wanted)
      scalar = ops.calls.call("aten", "to", {{scalar, Item::of_int(number_of(wanted))}, {}});
    scalars.push_back(scalar);
  }
  if (leaves.dims.empty()) return scalars[0];
  const Item row = ops.calls.call("aten", "stack", {{Item::of_items(IKind::List, scalars)}, {}});
  if (leaves.dims.size() == 1) return row;
  Item::Items sizes;
  for (const int64_t dim : leaves.dims) sizes.push_back(Item::of_int(dim));
  return ops.calls.call("aten", "reshape", {{row, Item::of_items(IKind::List, sizes)}, {}});
}

std::optional<Item> any_device(Operators&, const OpCall&) { return cpu(); }

std::optional<Item> formatted(Operators&, const OpCall& call) {
  if (call.args.empty()) return Item::of_text({});
  std::string result;
  size_t next = 1;
  const std::string& pattern = call.args[0].text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, "{}") == 0 && next < call.args.size()) {
      result += text_of(call.args[next++]);
      ++i;
    } else {
      result += pattern[i];
    }
  }
  return Item::of_text(std::move(result));
}

std::optional<Item> as_text(Operators&, const OpCall& call) {
  return Item::of_text(call.args.empty() ? "" : text_of(call.args[0]));
}

/// For what was forked, and is there.
std::optional<Item> waited(Operators&, const OpCall& call) {
  return call.args.size() == 1 ? std::optional(call.args[0]) : std::nullopt;
}

/// With gradients: fused forms of layers are for running without them.
std::optional<Item> yes(Operators&, const OpCall&) { return Item::of_bool(true); }
std::optional<Item> no_autocast(Operators&, const OpCall&) { return Item::of_bool(false); }

std::optional<Item> is_same(Operators&, const OpCall& call) {
  require(call.args.size() == 2, "{} compares two things", call.op);
  const Item &a = call.args[0], &b = call.args[1];
  const bool same = a.kind == b.kind && (a.is(IKind::Tensor)   ? a.value == b.value && a.number == b.number
                                         : a.is(IKind::Object) ? a.object == b.object
                                         : a.items || b.items  ? a.items == b.items
                                                               : equal_items(a, b).value_or(false));
  return Item::of_bool(same == (call.op == "__is__"));
}

constexpr OpRow kGeneralRows[] = {
    {"__is__", is_same},
    {"__isnot__", is_same},
    {"_assert", nothing},
    {"_convolution", convolution},
    {"_convolution_mode", convolution_mode},
    {"_native_multi_head_attention", attention},
    {"_transformer_encoder_layer_fwd", encoder_layer},
    {"_weight_norm", normalised_weight},
    {"as_tensor", make_tensor},
    {"device", any_device},
    {"format", formatted},
    {"is_autocast_cpu_enabled", no_autocast},
    {"is_autocast_enabled", no_autocast},
    {"is_grad_enabled", yes},
    {"is_scripting", yes},
    {"manual_seed", nothing},
    {"str", as_text},
    {"tensor", make_tensor},
    {"wait", waited},
    {"warn", nothing},
};

}  // namespace

constinit const OpTable kOfAnything = kGeneralRows;

}  // namespace tonnx::torchscript
