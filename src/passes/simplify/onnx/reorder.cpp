// reorder.cpp - how nodes work with their axes in another order.
#include <algorithm>
#include <cstring>

#include "passes/simplify/onnx/transposes.h"

namespace tonnx {
namespace {

bool is_one_of(Symbol op, std::span<const Symbol> ops) { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

/// Up to opset 6 two tensors were broadcast in another way.
bool is_elementwise(const Node& node) {
  return has_trait(node, kElementwise) && (node.version >= 7 || node.inputs().size() == 1);
}

bool is_reduction(const Node& node) { return has_trait(node, kReduces); }

/// One axis is special, and an attribute says which.
bool has_one_axis(const Node& node) {
  static const Symbol kOps[] = {"Concat"}, kSince13[] = {"Softmax", "LogSoftmax", "Hardmax"};
  return is_one_of(node.op, kOps) || (is_one_of(node.op, kSince13) && node.version >= 13);
}

std::vector<Attribute> with(std::vector<Attribute> attributes, std::string_view name, int64_t value) {
  for (Attribute& attribute : attributes) {
    if (attribute.name != name) continue;
    attribute.value = value;
    return attributes;
  }
  attributes.push_back({std::string(name), value, AttrType::Int, {}, {}});
  return attributes;
}

bool has_rank(const Value* value, size_t rank) {
  return value && value->type.is_tensor() && value->type.shape && value->type.shape->size() == rank;
}

std::optional<Reordered> reorder_elementwise(const Node& node, const Perm& perm) {
  Reordered result{.inputs = {}, .attributes = node.attributes, .is_copy = true};
  for (Value* input : node.inputs()) {
    if (input == nullptr) {
      result.inputs.push_back({nullptr, {}});
      continue;
    }
    if (!input->type.is_tensor() || !input->type.shape) return std::nullopt;
    const Shape& shape = *input->type.shape;
    if (std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is(1); })) {
      result.inputs.push_back({input, {}});
      continue;
    }
    if (shape.size() > perm.size() || (shape.size() < perm.size() && !can_reorder(*input))) return std::nullopt;
    result.inputs.push_back({input, perm});
  }
  return result;
}

std::optional<Reordered> reorder_one_axis(const Node& node, const Perm& perm) {
  const bool is_concat = node.op == "Concat";
  const auto given = int_of(node, "axis");
  if (!given && (is_concat || node.find_attribute("axis"))) return std::nullopt;
  const auto axis = from_front(given.value_or(-1), static_cast<int64_t>(perm.size()));
  if (!axis) return std::nullopt;
  const int64_t moved = inverse_of(perm)[static_cast<size_t>(*axis)];
  Reordered result{.inputs = {}, .attributes = with(node.attributes, "axis", moved), .is_copy = true};
  for (Value* input : node.inputs()) {
    if (!has_rank(input, perm.size())) return std::nullopt;
    result.inputs.push_back({input, perm});
  }
  return result;
}

/// Axes counted from the front, in the order in which they are given.
std::optional<std::vector<int64_t>> given_axes(const Node& node, int64_t rank, size_t count) {
  std::vector<int64_t> axes;
  if (has(node, "axes")) {
    const auto given = ints_of(node, "axes");
    if (!given || given->size() != count || !axes_from_front(*given, rank)) return std::nullopt;
    for (const int64_t axis : *given) axes.push_back(*from_front(axis, rank));
    return axes;
  }
  if (static_cast<int64_t>(count) > rank) return std::nullopt;
  for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

std::vector<int64_t> moved_axes(const std::vector<int64_t>& axes, const Perm& perm) {
  const Perm places = inverse_of(perm);
  std::vector<int64_t> result;
  for (const int64_t axis : axes) result.push_back(places[static_cast<size_t>(axis)]);
  return result;
}

std::optional<Reordered> reorder_slice(const Node& node, const Perm& perm) {
  const auto starts = ints_of(node, "starts"), ends = ints_of(node, "ends"), steps = ints_of(node, "steps");
  if (!starts || !ends || starts->size() != ends->size() || !has_rank(node.input(0), perm.size())) return std::nullopt;
  if (has(node, "steps") && (!steps || steps->size() != starts->size())) return std::nullopt;
  const auto axes = given_axes(node, static_cast<int64_t>(perm.size()), starts->size());
  if (!axes) return std::nullopt;
  Reordered result{.inputs = {{node.input(0), perm}}, .lists = {*starts, *ends, moved_axes(*axes, perm)}};
  if (steps) result.lists.push_back(*steps);
  return result;
}

/// The value to pad with stays where it is, as an input.
std::optional<Reordered> reorder_pad(const Node& node, const Perm& perm) {
  const auto pads = ints_of(node, "pads");
  const auto rank = perm.size();
  if (!pads || !has_rank(node.input(0), rank) || node.version < 11) return std::nullopt;
  const auto axes = given_axes(node, static_cast<int64_t>(rank), pads->size() / 2);
  if (!axes || pads->size() != 2 * axes->size() || node.input(2)) return std::nullopt;
  std::vector<int64_t> all(2 * rank, 0);
  const std::vector<int64_t> moved = moved_axes(*axes, perm);
  for (size_t i = 0; i < axes->size(); ++i) {
    all[static_cast<size_t>(moved[i])] = (*pads)[i];
    all[rank + static_cast<size_t>(moved[i])] = (*pads)[axes->size() + i];
  }
  return Reordered{.inputs = {{node.input(0), perm}}, .lists = {all}, .attributes = node.attributes};
}

/// The axes that a reduction is over, from the front; nothing where they are not known, or there are none.
std::optional<std::vector<int64_t>> reduced_axes(const Node& node, int64_t rank) {
  if (int_of(node, "noop_with_empty_axes").value_or(0) != 0) return std::nullopt;
  if (!has(node, "axes")) return given_axes(node, rank, static_cast<size_t>(rank));
  const auto axes = ints_of(node, "axes");
  if (!axes || axes->empty()) return std::nullopt;
  return axes_from_front(*axes, rank);
}

/// As the newest opset has them, without axes, which are an input.
std::vector<Attribute> without_axes(const Node& node) {
  std::vector<Attribute> attributes = node.attributes;
  std::erase_if(attributes, [](const Attribute& attribute) { return attribute.name == "axes"; });
  return attributes;
}

std::optional<Reordered> reorder_reduction(const Node& node, const Perm& perm) {
  if (int_of(node, "keepdims").value_or(1) == 0 || !has_rank(node.input(0), perm.size())) return std::nullopt;
  const auto axes = reduced_axes(node, static_cast<int64_t>(perm.size()));
  if (!axes) return std::nullopt;
  std::vector<int64_t> moved = moved_axes(*axes, perm);
  std::sort(moved.begin(), moved.end());
  return Reordered{.inputs = {{node.input(0), perm}}, .lists = {moved}, .attributes = without_axes(node)};
}

/// The order of the axes that are not among those, numbered without them.
Perm remaining(const Perm& perm, const std::vector<int64_t>& removed) {
  Perm result;
  for (const int64_t axis : perm) {
    if (std::binary_search(removed.begin(), removed.end(), axis)) continue;
    const auto before = std::lower_bound(removed.begin(), removed.end(), axis) - removed.begin();
    result.push_back(axis - before);
  }
  return result;
}

std::optional<Reordered> reorder_unsqueeze(const Node& node, const Perm& perm) {
  const auto given = ints_of(node, "axes");
  const auto axes = given ? axes_from_front(*given, static_cast<int64_t>(perm.size())) : std::nullopt;
  if (!axes || !has_rank(node.input(0), perm.size() - axes->size())) return std::nullopt;
  std::vector<int64_t> moved = moved_axes(*axes, perm);
  std::sort(moved.begin(), moved.end());
  return Reordered{.inputs = {{node.input(0), remaining(perm, *axes)}}, .lists = {moved}};
}

/// The axes that go away are where a Transpose in front had found them, or the last ones of the new order.
std::optional<Reordered> reorder_squeeze(const Node& node, const Perm& perm) {
  const auto given = ints_of(node, "axes");
  const Value* x = node.input(0);
  if (!given || x == nullptr || !x->type.shape) return std::nullopt;
  const auto rank = static_cast<int64_t>(x->type.shape->size());
  const auto axes = axes_from_front(*given, rank);
  if (!axes || perm.size() + axes->size() != x->type.shape->size()) return std::nullopt;
  const auto before = x->producer ? perm_of(*x->producer) : std::nullopt;
  if (before && before->size() == x->type.shape->size()) {
    const Perm back = inverse_of(*before);
    if (remaining(back, *axes) == perm) {
      std::vector<int64_t> moved = moved_axes(*axes, back);
      std::sort(moved.begin(), moved.end());
      return Reordered{.inputs = {{node.input(0), back}}, .lists = {moved}};
    }
  }
  std::vector<int64_t> kept, last;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (!std::binary_search(axes->begin(), axes->end(), axis)) kept.push_back(axis);
  }
  Perm wide;
  for (const int64_t axis : perm) wide.push_back(kept[static_cast<size_t>(axis)]);
  for (const int64_t axis : *axes) {
    last.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(axis);
  }
  return Reordered{.inputs = {{node.input(0), wide}}, .lists = {last}};
}

}  // namespace

bool can_reorder(const Value& value) {
  constexpr int64_t kMost = int64_t{1} << 16;
  constexpr int64_t kMostOfShared = 4096;  // others still need it in the old order
  if (!value.constant || value.sparse) return false;
  const Tensor& tensor = *value.constant;
  return tensor.dtype != DType::String && info(tensor.dtype).bits >= 8 && !tensor.external &&
         tensor.count() <= (value.uses.size() == 1 ? kMost : kMostOfShared);
}

TensorPtr in_order(const Tensor& tensor, const Perm& perm) {
  const size_t rank = perm.size(), missing = rank - tensor.dims.size();
  std::vector<int64_t> dims(missing, 1);
  dims.insert(dims.end(), tensor.dims.begin(), tensor.dims.end());
  std::vector<size_t> strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * static_cast<size_t>(dims[i]);
  const size_t bytes = static_cast<size_t>(info(tensor.dtype).bits) / 8;
  auto result = std::make_shared<Tensor>();
  result->dtype = tensor.dtype;
  for (const int64_t axis : perm) result->dims.push_back(dims[static_cast<size_t>(axis)]);
  std::vector<uint8_t> data(tensor.data.size());
  std::vector<int64_t> place(rank, 0);
  size_t from = 0;
  for (size_t to = 0; to + bytes <= data.size(); to += bytes) {
    std::memcpy(data.data() + to, tensor.data.data() + from * bytes, bytes);
    for (size_t i = rank; i-- > 0;) {
      const size_t stride = strides[static_cast<size_t>(perm[i])];
      from += stride;
      if (++place[i] < result->dims[i]) break;
      from -= stride * static_cast<size_t>(result->dims[i]);
      place[i] = 0;
    }
  }
  result->data = Bytes::own(std::move(data));
  return result;
}

std::optional<Reordered> reorder(const Node& node, const Perm& perm) {
  static const Symbol kPad("Pad"), kSlice("Slice"), kUnsqueeze("Unsqueeze"), kSqueeze("Squeeze");
  if (!node.domain.empty() || has_references(node) || node.outputs().size() != 1 || node.inputs().empty() ||
      !has_rank(node.output(0), perm.size()))
    return std::nullopt;
  if (is_elementwise(node)) return reorder_elementwise(node, perm);
  if (has_one_axis(node)) return reorder_one_axis(node, perm);
  if (is_reduction(node)) return reorder_reduction(node, perm);
  if (node.op == kSlice) return reorder_slice(node, perm);
  if (node.op == kPad) return reorder_pad(node, perm);
  if (node.op == kUnsqueeze) return reorder_unsqueeze(node, perm);
  if (node.op == kSqueeze) return reorder_squeeze(node, perm);
  return std::nullopt;
}

std::optional<Reordered> without_transpose(const Node& node, const Perm& perm) {
  static const Symbol kGather("Gather"), kArgMax("ArgMax"), kArgMin("ArgMin");
  const auto rank = static_cast<int64_t>(perm.size());
  if (!node.domain.empty() || has_references(node) || node.outputs().size() != 1) return std::nullopt;
  std::optional<std::vector<int64_t>> removed;
  Reordered result{.inputs = {{node.input(0), {}}}};
  const bool is_arg = node.op == kArgMax || node.op == kArgMin;
  if (is_reduction(node) && int_of(node, "keepdims").value_or(1) == 0) {
    removed = reduced_axes(node, rank);
  } else if (node.op == kGather || (is_arg && int_of(node, "keepdims").value_or(1) == 0)) {
    if (node.op == kGather && (node.input(1) == nullptr || node.input(1)->type.rank() != 0)) return std::nullopt;
    const auto axis = from_front(int_of(node, "axis").value_or(0), rank);
    if (axis) removed = std::vector{*axis};
  }
  if (!removed) return std::nullopt;
  Perm kept;
  for (int64_t i = 0; i < rank; ++i) {
    if (!std::binary_search(removed->begin(), removed->end(), i)) kept.push_back(perm[static_cast<size_t>(i)]);
  }
  if (!is_identity(kept)) return std::nullopt;
  std::vector<int64_t> axes;
  for (const int64_t axis : *removed) axes.push_back(perm[static_cast<size_t>(axis)]);
  std::sort(axes.begin(), axes.end());
  if (is_reduction(node)) {
    result.attributes = without_axes(node);
    result.lists = {axes};
  } else {
    result.attributes = with(node.attributes, "axis", axes[0]);
    if (node.op == kGather) result.inputs.push_back({node.input(1), {}});
  }
  return result;
}

}  // namespace tonnx
