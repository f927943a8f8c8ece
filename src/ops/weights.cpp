// weights.cpp - weights that a few nodes put together from constants.
#include "ops/weights.h"

#include <algorithm>
#include <cstring>

#include "ops/node_view.h"

namespace tonnx {
namespace {

/// What may be done for one weight: a file can ask for any number of copies of copies.
struct Allowance {
  int nodes = 256;
  int64_t bytes = int64_t{1} << 29;

  bool take(int64_t count) { return (bytes -= count) >= 0; }
};

TensorPtr find(const Value* value, Allowance& left);

std::optional<std::vector<int64_t>> const_dims(const Value* value) {
  if (value == nullptr || !value->type.shape) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Dim& dim : *value->type.shape) {
    if (!dim.is_constant() || *dim.constant() < 0) return std::nullopt;
    dims.push_back(*dim.constant());
  }
  return dims;
}

std::optional<std::vector<int64_t>> const_ints(const Value* value) {
  const auto dims = value ? find_dims(*value) : std::nullopt;
  if (!dims) return std::nullopt;
  std::vector<int64_t> result;
  for (const Dim& dim : *dims) {
    if (!dim.is_constant()) return std::nullopt;
    result.push_back(*dim.constant());
  }
  return result;
}

int64_t int_attribute(const Node& node, std::string_view name, int64_t otherwise) {
  const Attribute* found = node.find_attribute(name);
  const auto* value = found ? found->value.get<int64_t>() : nullptr;
  return value ? *value : otherwise;
}

/// A tensor as rows along an axis: `outer` times `size` pieces of so many bytes.
struct Layout {
  int64_t outer = 1, size = 1, piece = 0;
};

std::optional<Layout> layout_of(const Tensor& tensor, int64_t axis) {
  const auto rank = static_cast<int64_t>(tensor.dims.size());
  if (info(tensor.dtype).bits < 8 || axis < 0 || axis >= rank) return std::nullopt;
  const auto at = tensor.dims.begin() + axis;
  return Layout{count_of(std::vector(tensor.dims.begin(), at)), *at,
                byte_size(tensor.dtype, count_of(std::vector(at + 1, tensor.dims.end())))};
}

TensorPtr with(const Tensor& like, std::vector<int64_t> dims, std::vector<uint8_t> bytes) {
  auto result = std::make_shared<Tensor>();
  result->dtype = like.dtype;
  result->dims = std::move(dims);
  result->data = Bytes::own(std::move(bytes));
  return result;
}

/// The elements [start, start + count) along an axis.
TensorPtr part_of(const Tensor& tensor, int64_t axis, int64_t start, int64_t count) {
  const auto layout = layout_of(tensor, axis);
  if (!layout || start < 0 || count < 0 || start + count > layout->size) return nullptr;
  std::vector<int64_t> dims = tensor.dims;
  dims[static_cast<size_t>(axis)] = count;
  std::vector<uint8_t> bytes;
  bytes.reserve(static_cast<size_t>(layout->outer * count * layout->piece));
  for (int64_t o = 0; o < layout->outer; ++o) {
    const uint8_t* from = tensor.data.data() + (o * layout->size + start) * layout->piece;
    bytes.insert(bytes.end(), from, from + count * layout->piece);
  }
  return with(tensor, std::move(dims), std::move(bytes));
}

TensorPtr reshaped(const TensorPtr& tensor, const Value* value) {
  const auto dims = const_dims(value);
  if (!tensor || !dims || count_of(*dims) != tensor->count()) return nullptr;
  auto result = std::make_shared<Tensor>(*tensor);
  result->dims = *dims;
  result->source = {};
  return result;
}

TensorPtr joined(const Node& node, Allowance& left) {
  std::vector<TensorPtr> parts;
  std::vector<Layout> layouts;
  int64_t axis = int_attribute(node, "axis", 0), size = 0, bytes_needed = 0;
  for (const Value* input : node.inputs()) {
    TensorPtr part = find(input, left);
    if (!part) return nullptr;
    if (axis < 0) axis += static_cast<int64_t>(part->dims.size());
    const auto layout = layout_of(*part, axis);
    if (!layout || (!parts.empty() && (part->dtype != parts[0]->dtype || part->dims.size() != parts[0]->dims.size() ||
                                       layout->outer != layouts[0].outer || layout->piece != layouts[0].piece))) {
      return nullptr;
    }
    size += layout->size;
    bytes_needed += layout->outer * layout->size * layout->piece;
    parts.push_back(std::move(part));
    layouts.push_back(*layout);
  }
  if (parts.empty() || !left.take(bytes_needed)) return nullptr;
  std::vector<uint8_t> bytes;
  bytes.reserve(static_cast<size_t>(bytes_needed));
  for (int64_t o = 0; o < layouts[0].outer; ++o) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t row = layouts[i].size * layouts[i].piece;
      const uint8_t* from = parts[i]->data.data() + o * row;
      bytes.insert(bytes.end(), from, from + row);
    }
  }
  std::vector<int64_t> dims = parts[0]->dims;
  dims[static_cast<size_t>(axis)] = size;
  return with(*parts[0], std::move(dims), std::move(bytes));
}

TensorPtr sliced(const Node& node, Allowance& left) {
  TensorPtr tensor = find(node.input(0), left);
  const auto starts = const_ints(node.input(1)), ends = const_ints(node.input(2));
  if (!tensor || !starts || !ends || starts->size() != ends->size()) return nullptr;
  std::vector<int64_t> axes;
  if (node.input(3) != nullptr) {
    const auto given = const_ints(node.input(3));
    if (!given || given->size() != starts->size()) return nullptr;
    axes = *given;
  } else {
    for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (node.input(4) != nullptr) {
    const auto steps = const_ints(node.input(4));
    if (!steps || std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step != 1; })) return nullptr;
  }
  const auto rank = static_cast<int64_t>(tensor->dims.size());
  for (size_t i = 0; i < axes.size() && tensor; ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return nullptr;
    const int64_t size = tensor->dims[static_cast<size_t>(axis)];
    const auto place = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? std::max(at, -size) + size : at, 0, size);
    };
    const int64_t start = place((*starts)[i]), end = place((*ends)[i]);
    tensor = part_of(*tensor, axis, start, std::max<int64_t>(end - start, 0));
  }
  return tensor;
}

TensorPtr split(const Node& node, const Value* value, Allowance& left) {
  const TensorPtr tensor = find(node.input(0), left);
  int64_t axis = int_attribute(node, "axis", 0);
  if (!tensor) return nullptr;
  if (axis < 0) axis += static_cast<int64_t>(tensor->dims.size());
  int64_t start = 0;
  for (const Value* output : node.outputs()) {
    const auto dims = const_dims(output);
    if (!dims || axis < 0 || axis >= static_cast<int64_t>(dims->size())) return nullptr;
    const int64_t count = (*dims)[static_cast<size_t>(axis)];
    if (output == value) return part_of(*tensor, axis, start, count);
    start += count;
  }
  return nullptr;
}

TensorPtr find(const Value* value, Allowance& left) {
  if (value == nullptr || value->constant) return value ? value->constant : nullptr;
  if (--left.nodes < 0) return nullptr;
  const Node* node = value->producer;
  if (node == nullptr || !node->domain.empty()) return nullptr;
  const std::string_view op = node->op.view();
  if (op == "Identity") return find(node->input(0), left);
  if (op == "Unsqueeze" || op == "Squeeze" || op == "Reshape" || op == "Flatten") {
    return reshaped(find(node->input(0), left), value);
  }
  if (op == "Concat") return joined(*node, left);
  if (op == "Slice") return sliced(*node, left);
  return op == "Split" ? split(*node, value, left) : nullptr;
}

}  // namespace

TensorPtr find_weight(const Value* value) {
  Allowance left;
  return find(value, left);
}

}  // namespace tonnx
