// fused.cpp - fused operators that traces have, of attention and of normalised weights, in terms of others.
#include "base/error.h"
#include "formats/torchscript/operators/operators.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

Item ints(std::initializer_list<int64_t> numbers) {
  Item::Items items;
  for (const int64_t number : numbers) items.push_back(Item::of_int(number));
  return Item::of_items(IKind::List, std::move(items));
}

}  // namespace

/// _native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
/// mask, need_weights ...): the result, and weights that nobody may ask for.
std::optional<Item> attention(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  require(args.size() >= 9 && args[0].is(IKind::Tensor) && args[4].is(IKind::Int), "an attention lacks arguments");
  if (args.size() > 9 && !args[9].is(IKind::None)) fail_unsupported("a fused attention with a mask");
  const bool is_one = args[0].value == args[1].value && args[1].value == args[2].value;
  const auto node = [&](const char* op, std::vector<Item> given) {
    return ops.calls.call("aten", op, {std::move(given), {}});
  };
  Item::Items parts;
  if (is_one) {
    parts = *node("chunk", {node("linear", {args[0], args[5], args[6]}), Item::of_int(3), Item::of_int(-1)}).items;
  } else {
    const Item weights = node("chunk", {args[5], Item::of_int(3), Item::of_int(0)});
    const Item biases = node("chunk", {args[6], Item::of_int(3), Item::of_int(0)});
    for (size_t i = 0; i < 3; ++i) parts.push_back(node("linear", {args[i], (*weights.items)[i], (*biases.items)[i]}));
  }
  for (Item& part : parts) {
    const Item heads = node("unflatten", {part, Item::of_int(-1), ints({args[4].integer, -1})});
    part = node("transpose", {heads, Item::of_int(1), Item::of_int(2)});
  }
  const Item mixed = node("scaled_dot_product_attention", {parts[0], parts[1], parts[2]});
  const Item joined = node("flatten", {node("transpose", {mixed, Item::of_int(1), Item::of_int(2)}), Item::of_int(2)});
  return Item::of_items(IKind::Tuple, {node("linear", {joined, args[7], args[8]}), Item::of(IKind::Unset)});
}

/// _transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu,
/// norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2,
/// ffn_bias_2, mask, mask_type).
std::optional<Item> encoder_layer(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  require(args.size() >= 18 && args[7].is(IKind::Bool) && args[8].is(IKind::Bool), "a layer lacks arguments");
  if (args.size() > 18 && !args[18].is(IKind::None)) fail_unsupported("a fused layer with a mask");
  const auto node = [&](const char* op, std::vector<Item> given) {
    return ops.calls.call("aten", op, {std::move(given), {}});
  };
  const auto norm = [&](const Item& x, size_t weight) {
    return node("layer_norm", {x, Item::of_items(IKind::List, {args[1]}), args[weight], args[weight + 1], args[9]});
  };
  const auto attend = [&](const Item& x) {
    const Arguments given{{x, x, x, args[1], args[2], args[3], args[4], args[5], args[6]}, {}};
    return (*attention(ops, {"_native_multi_head_attention", given})->items)[0];
  };
  const auto feed = [&](const Item& x) {
    const Item wide = node("linear", {x, args[14], args[15]});
    return node("linear", {node(args[7].integer != 0 ? "gelu" : "relu", {wide}), args[16], args[17]});
  };
  if (args[8].integer != 0) {
    const Item x = node("add", {args[0], attend(norm(args[0], 10))});
    return node("add", {x, feed(norm(x, 12))});
  }
  const Item x = norm(node("add", {args[0], attend(args[0])}), 10);
  return norm(node("add", {x, feed(x)}), 12);
}

/// _weight_norm(v, g, dim): each slice of v has the length that g says.
std::optional<Item> normalised_weight(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  require(args.size() >= 2 && args[0].is(IKind::Tensor) && args[0].value != nullptr,
          "a normalised weight lacks arguments");
  const auto rank = static_cast<int64_t>(args[0].value->type.shape->size());
  int64_t kept = args.size() > 2 ? args[2].integer : 0;
  if (kept < 0 && kept + rank > 0) kept += rank;
  Item::Items dims;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != kept) dims.push_back(Item::of_int(i));
  }
  const Item norm =
      ops.calls.call("aten", "linalg_vector_norm",
                     {{args[0], Item::of_int(2), Item::of_items(IKind::List, dims), Item::of_bool(true)}, {}});
  const Item scale = ops.calls.call("aten", "div", {{args[1], norm}, {}});
  return ops.calls.call("aten", "mul", {{args[0], scale}, {}});
}

}  // namespace tonnx::torchscript
