// grow.cpp - values that a model computes of constants alone, made as long as a size that became open.
#include "convert/opening/grow.h"

#include <algorithm>
#include <cstring>

#include "base/budget.h"
#include "base/computed.h"
#include "ir/clone.h"
#include "ops/frame/node_facts.h"

namespace tonnx {
namespace {

constexpr int kDeepest = 32;
constexpr int64_t kMostLooked = int64_t{1} << 24;  // bytes of a constant that is compared row by row

/// A tensor as blocks: `outer` times `size` along the axis times `inner` bytes. Nothing where it is not made of bytes.
struct Blocks {
  int64_t outer = 1, size = 0, inner = 1;
  const uint8_t* data = nullptr;

  const uint8_t* at(int64_t i, int64_t k) const { return data + (i * size + k) * inner; }
};

std::optional<Blocks> blocks_of(const Tensor& tensor, size_t axis) {
  const int bits = info(tensor.dtype).bits;
  if (bits < 8 || tensor.dtype == DType::String || is_computed(tensor.data) || axis >= tensor.dims.size() ||
      static_cast<int64_t>(tensor.data.size()) > kMostLooked || tensor.count() == 0)
    return std::nullopt;
  Blocks result;
  for (size_t i = 0; i < axis; ++i) result.outer *= tensor.dims[i];
  for (size_t i = axis + 1; i < tensor.dims.size(); ++i) result.inner *= tensor.dims[i];
  result.inner *= bits / 8;
  result.size = tensor.dims[axis];
  result.data = reinterpret_cast<const uint8_t*>(tensor.data.view().data());
  return result;
}

/// The first of the rows along an axis, where all of them are the same; null otherwise.
TensorPtr first_of_equal_rows(const Tensor& tensor, size_t axis) {
  const auto blocks = blocks_of(tensor, axis);
  if (!blocks || !budget().try_take(Resource::Steps, tensor.count())) return nullptr;
  const auto row = static_cast<size_t>(blocks->inner);
  for (int64_t i = 0; i < blocks->outer; ++i) {
    for (int64_t k = 1; k < blocks->size; ++k) {
      if (std::memcmp(blocks->at(i, 0), blocks->at(i, k), row) != 0) return nullptr;
    }
  }
  std::vector<uint8_t> bytes;
  budget().take(Resource::Memory, blocks->outer * blocks->inner);
  for (int64_t i = 0; i < blocks->outer; ++i) bytes.insert(bytes.end(), blocks->at(i, 0), blocks->at(i, 0) + row);
  auto result = std::make_shared<Tensor>();
  result->dtype = tensor.dtype;
  result->dims = tensor.dims;
  result->dims[axis] = 1;
  result->data = Bytes::own(std::move(bytes));
  return result;
}

/// 2, 5, 8, 11: the first number and the step.
std::optional<std::pair<int64_t, int64_t>> counted(const Tensor& tensor) {
  constexpr int64_t kLongest = 1 << 20;
  const auto numbers = is_integer(tensor.dtype) ? ints_of(tensor, kLongest) : std::nullopt;
  if (!numbers || numbers->size() < 2) return std::nullopt;
  const int64_t step = (*numbers)[1] - (*numbers)[0];
  for (size_t i = 1; i < numbers->size(); ++i) {
    if ((*numbers)[i] - (*numbers)[i - 1] != step) return std::nullopt;
  }
  return std::pair((*numbers)[0], step);
}

std::string hint_of(const Value& value) { return value.name + "_open"; }

}  // namespace

Value* Grower::repeated(Value* value, size_t axis, const Dim& size, Node& before) {
  constexpr int64_t kExpand = 8, kTile = 6;
  if (sizes_.opset() < kTile) return nullptr;
  Dims list(value->type.shape->size(), 1);
  list[axis] = size;
  Value* sizes = sizes_.list(list, before, value->name + "_sizes");
  if (sizes == nullptr) return nullptr;
  return sizes_.add(before, sizes_.opset() >= kExpand ? "Expand" : "Tile", {value, sizes}, {}, hint_of(*value));
}

Value* Grower::repeated_for_samples(Value* value, size_t axis, const SizeParts& parts, Node& before) {
  constexpr int64_t kExpand = 8;
  const Shape& shape = *value->type.shape;
  if (sizes_.opset() < kExpand) return nullptr;
  Dim count = 1, together = 1;
  Dims apart(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)), repeated(axis, 1), joined = apart;
  for (const SizePart& part : parts) {
    if (!(part.now == part.fixed) && !part.fixed.is(1)) return nullptr;  // what it has more than before is not known
    apart.push_back(part.fixed);
    repeated.push_back(part.now == part.fixed ? Dim(1) : part.now);
    count = count * part.fixed;
    together = together * part.now;
  }
  if (!(count == shape[axis])) return nullptr;
  joined.push_back(together);
  for (size_t i = axis + 1; i < shape.size(); ++i) {
    apart.push_back(shape[i]);
    repeated.emplace_back(1);
    joined.push_back(shape[i]);
  }
  Value* made = value;
  for (const auto& [op, sizes] : {std::pair("Reshape", &apart), {"Expand", &repeated}, {"Reshape", &joined}}) {
    Value* list = sizes_.list(*sizes, before, value->name + "_sizes");
    if (list == nullptr) return nullptr;
    made = sizes_.add(before, op, {made, list}, {}, hint_of(*value));
  }
  return made;
}

/// Numbers that count on, along the only axis that has more than one.
Value* Grower::longer_count(const Value& value, size_t axis, const Dim& size, Node& before) {
  constexpr int64_t kRange = 11;
  const Tensor& tensor = *value.constant;
  if (sizes_.opset() < kRange || tensor.count() != tensor.dims[axis]) return nullptr;
  const auto count = counted(tensor);
  if (!count || count->second == 0) return nullptr;
  Graph& graph = *before.graph;
  const auto scalar = [&](int64_t number, std::string_view hint) { return sizes_.scalar(number, before, hint); };
  Value* end = sizes_.scalar(size * count->second + count->first, before, "end");
  if (end == nullptr) return nullptr;
  Value* result =
      sizes_.add(before, "Range", {scalar(count->first, "start"), end, scalar(count->second, "step")}, {}, "count");
  if (tensor.dtype != DType::Int64)
    result = sizes_.add(before, "Cast", {result}, {Attribute("to", static_cast<int64_t>(tensor.dtype))}, "count");
  if (tensor.dims.size() == 1) return result;
  std::vector<int64_t> dims(tensor.dims.size(), 1);
  dims[axis] = -1;
  return sizes_.add(before, "Reshape", {result, sizes_.ints(graph, dims, "sizes")}, {}, hint_of(value));
}

/// A square whose elements only tell whether the column is past the row: the mask of a decoder.
Value* Grower::longer_triangle(const Value& value, size_t axis, const Dim& size, Node& before) {
  const Tensor& tensor = *value.constant;
  const size_t rank = tensor.dims.size();
  if (rank < 2 || axis + 2 < rank || tensor.dims[rank - 1] != tensor.dims[rank - 2] || tensor.dims[rank - 1] < 2 ||
      tensor.count() != tensor.dims[rank - 1] * tensor.dims[rank - 1] || info(tensor.dtype).bits < 8 ||
      tensor.dtype == DType::String || is_computed(tensor.data) || !budget().try_take(Resource::Steps, tensor.count()))
    return nullptr;
  const int64_t n = tensor.dims[rank - 1];
  const auto element = [&](int64_t row, int64_t column) { return element_bits(tensor, row * n + column); };
  const uint64_t past = element(0, 1), rest = element(1, 0);
  const bool on_diagonal_is_rest = element(0, 0) == rest;
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      const bool is_rest = column < row || (column == row && on_diagonal_is_rest);
      if (element(row, column) != (is_rest ? rest : past)) return nullptr;
    }
  }
  Graph& graph = *before.graph;
  std::vector<int64_t> numbers(static_cast<size_t>(n)), dims(rank, 1);
  for (int64_t i = 0; i < n; ++i) numbers[static_cast<size_t>(i)] = i;
  const auto counter = [&](size_t along) {
    auto counts = std::make_shared<Tensor>(*make_ints(numbers));
    counts->dims = dims;
    counts->dims[along] = n;
    return graph.add_initializer(graph.unique_name(along + 1 == rank ? "columns" : "rows"), counts);
  };
  const auto one = [&](int64_t row, int64_t column) {
    auto scalar = std::make_shared<Tensor>();
    scalar->dtype = tensor.dtype;
    scalar->dims = dims;
    std::vector<uint8_t> bytes(static_cast<size_t>(info(tensor.dtype).bits) / 8);
    set_element_bits(tensor.dtype, bytes.data(), 0, element(row, column));
    scalar->data = Bytes::own(std::move(bytes));
    return graph.add_initializer(graph.unique_name(hint_of(value)), scalar);
  };
  const bool less_or_equal = on_diagonal_is_rest;  // the rest is where column <= row, or column < row
  Value *rows = counter(rank - 2), *columns = counter(rank - 1);
  for (Value* each : {rows, columns}) {
    const bool grows = (each == columns) == (axis + 1 == rank);
    if (!grows) continue;
    Value* longer = longer_count(*each, axis, size, before);
    if (longer == nullptr) return nullptr;
    (each == rows ? rows : columns) = longer;
    break;
  }
  Value* is_past = less_or_equal
                       ? sizes_.add(before, "Less", {rows, columns}, {}, "is_past")
                       : sizes_.add(before, "Not", {sizes_.add(before, "Less", {columns, rows})}, {}, "is_past");
  return sizes_.add(before, "Where", {is_past, one(0, 1), one(1, 0)}, {}, hint_of(value));
}

Value* Grower::longer_constant(const Value& value, size_t axis, const Dim& size, Node& before) {
  if (const TensorPtr row = first_of_equal_rows(*value.constant, axis)) {
    Graph& graph = *before.graph;
    Value* one = graph.add_initializer(graph.unique_name(value.name + "_row"), row);
    return repeated(one, axis, size, before);
  }
  if (Value* count = longer_count(value, axis, size, before)) return count;
  return longer_triangle(value, axis, size, before);
}

/// The node once more, with another input.
Value* Grower::copied(Node& node, size_t input, Value* by, Node& before) {
  std::vector<Value*> inputs = node.inputs();
  inputs[input] = by;
  return sizes_.add(before, node.op.view(), inputs, node.attributes, hint_of(*node.output(0)));
}

/// A longer part of what the value is a part of.
Value* Grower::longer_part(Node& slice, size_t axis, const Dim& size, Node& before, int depth) {
  constexpr int64_t kInputs = 10;
  const auto starts = ints_of(slice, "starts"), ends = ints_of(slice, "ends");
  const auto axes = ints_of(slice, "axes"), steps = ints_of(slice, "steps");
  Value* whole = slice.input(0);
  if (!starts || !ends || sizes_.opset() < kInputs || whole == nullptr || !whole->type.shape) return nullptr;
  const Shape& shape = *whole->type.shape;
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto at =
        axes ? from_front((*axes)[i], static_cast<int64_t>(shape.size())) : std::optional(static_cast<int64_t>(i));
    if (!at || static_cast<size_t>(*at) != axis) continue;
    if (steps && (*steps)[i] != 1) return nullptr;
    const auto length = shape[axis].constant();
    int64_t start = (*starts)[i];
    if (!length || start < 0 || (*ends)[i] < 0) return nullptr;
    if (start == 0 && (*ends)[i] >= *length) break;  // all of it
    Dims list(ends->begin(), ends->end());
    list[i] = size + start;
    Value* end = sizes_.list(list, before, "ends");
    return end == nullptr ? nullptr : copied(slice, 2, end, before);
  }
  Value* longer = grown(whole, axis, size, before, depth + 1);
  return longer == nullptr ? nullptr : copied(slice, 0, longer, before);
}

Value* Grower::longer_lookup(Node& gather, size_t axis, const Dim& size, Node& before, int depth) {
  Value *data = gather.input(0), *indices = gather.input(1);
  if (data == nullptr || indices == nullptr || !data->type.shape || !indices->type.shape) return nullptr;
  const auto of = from_front(int_of(gather, "axis").value_or(0), static_cast<int64_t>(data->type.shape->size()));
  if (!of) return nullptr;
  const auto first = static_cast<size_t>(*of), count = indices->type.shape->size();
  const bool is_index = axis >= first && axis < first + count;
  const size_t in_data = axis < first ? axis : axis + 1 - count;
  Value* longer =
      is_index ? grown(indices, axis - first, size, before, depth + 1) : grown(data, in_data, size, before, depth + 1);
  return longer == nullptr ? nullptr : copied(gather, is_index ? 1 : 0, longer, before);
}

/// The node once more, with another element in the list of sizes that one of its inputs is.
Value* Grower::with_list(Node& node, size_t input, size_t place, const Dim& size, Node& before) {
  const Value* old = node.input(input);
  auto list = old != nullptr ? find_dims(*old) : std::nullopt;
  if (!list || place >= list->size()) return nullptr;
  (*list)[place] = size;
  Value* made = sizes_.list(*list, before, old->name + "_open");
  return made == nullptr ? nullptr : copied(node, input, made, before);
}

/// What an Unsqueeze or a Transpose gives, of a longer input.
Value* Grower::longer_moved(Node& node, size_t axis, const Dim& size, Node& before, int depth) {
  const auto rank = node.output(0)->type.rank();
  auto from = static_cast<int64_t>(axis);
  if (node.op == "Transpose") {
    const auto perm = ints_of(node, "perm");
    from = perm && axis < perm->size() ? (*perm)[axis] : *rank - 1 - from;
  } else {
    const auto axes = ints_of(node, "axes");
    if (!axes) return nullptr;
    for (const int64_t each : *axes) {
      const auto added = from_front(each, *rank);
      if (!added || *added == static_cast<int64_t>(axis)) return nullptr;
      if (*added < static_cast<int64_t>(axis)) --from;
    }
  }
  Value* longer = grown(node.input(0), static_cast<size_t>(from), size, before, depth + 1);
  return longer == nullptr ? nullptr : copied(node, 0, longer, before);
}

/// What an Expand gives: of a size of 1, or of a longer input.
Value* Grower::longer_expanded(Node& node, size_t axis, const Dim& size, Node& before, int depth) {
  Value *input = node.input(0), *list = node.input(1);
  const auto sizes = list != nullptr ? find_dims(*list) : std::nullopt;
  const auto rank = input != nullptr ? input->type.rank() : std::nullopt;
  const auto out = node.output(0)->type.rank();
  if (!sizes || !rank || !out) return nullptr;
  const int64_t back = *out - static_cast<int64_t>(axis);
  const int64_t in_input = *rank - back, in_list = static_cast<int64_t>(sizes->size()) - back;
  const bool is_spread = in_input < 0 || (*input->type.shape)[static_cast<size_t>(in_input)].is(1);
  if (is_spread) return in_list < 0 ? nullptr : with_list(node, 1, static_cast<size_t>(in_list), size, before);
  Value* longer = grown(input, static_cast<size_t>(in_input), size, before, depth + 1);
  if (longer == nullptr) return nullptr;
  Dims other = *sizes;
  if (in_list >= 0) other[static_cast<size_t>(in_list)] = 1;
  Value* made = sizes_.list(other, before, list->name + "_open");
  return made == nullptr ? nullptr : sizes_.add(before, "Expand", {longer, made}, {}, hint_of(*node.output(0)));
}

/// Parts that lie side by side, each of them longer.
Value* Grower::longer_joined(Node& concat, size_t axis, const Dim& size, Node& before, int depth) {
  const auto along = from_front(int_of(concat, "axis").value_or(0), concat.output(0)->type.rank().value_or(0));
  if (!along || static_cast<size_t>(*along) == axis) return nullptr;
  std::vector<Value*> inputs = concat.inputs();
  for (Value*& input : inputs) {
    input = grown(input, axis, size, before, depth + 1);
    if (input == nullptr) return nullptr;
  }
  return sizes_.add(before, "Concat", inputs, concat.attributes, hint_of(*concat.output(0)));
}

Value* Grower::grown(Value* value, size_t axis, const Dim& size, Node& before, int depth) {
  if (depth > kDeepest || !is_fixed_(value) || !value->type.shape || axis >= value->type.shape->size()) return nullptr;
  const Dim was = (*value->type.shape)[axis];
  if (was.is(1)) return repeated(value, axis, size, before);
  if (value->constant) {
    if (Value* longer = longer_constant(*value, axis, size, before)) return longer;
  }
  Node* node = value->producer;
  if (node == nullptr || !node->domain.empty() || has_references(*node) || node->outputs().size() != 1) return nullptr;
  if (node->op == "Slice") return longer_part(*node, axis, size, before, depth);
  if (node->op == "Gather") return longer_lookup(*node, axis, size, before, depth);
  if (node->op == "Unsqueeze" || node->op == "Transpose") return longer_moved(*node, axis, size, before, depth);
  if (node->op == "Expand") return longer_expanded(*node, axis, size, before, depth);
  if (node->op == "ConstantOfShape") return with_list(*node, 0, axis, size, before);
  if (node->op == "Concat") return longer_joined(*node, axis, size, before, depth);
  if (!has_trait(*node, kElementwise)) return nullptr;
  Value* result = nullptr;
  std::vector<Value*> inputs = node->inputs();
  const size_t back = value->type.shape->size() - axis;
  for (Value*& input : inputs) {
    if (input == nullptr || !input->type.shape) return nullptr;
    const size_t rank = input->type.shape->size();
    if (rank < back || (*input->type.shape)[rank - back].is(1)) continue;
    input = grown(input, rank - back, size, before, depth + 1);
    if (input == nullptr) return nullptr;
  }
  result = sizes_.add(before, node->op.view(), inputs, node->attributes, hint_of(*value));
  return result;
}

}  // namespace tonnx
