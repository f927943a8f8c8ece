// memory_order.cpp - as_strided means memory: what it looks at becomes a tensor that lies row by row.
#include <algorithm>
#include <numeric>

#include "base/checked_int.h"
#include "ops/frame/aten_names.h"
#include "ops/frame/result_dtype.h"
#include "passes/functionalize/readying.h"

namespace tonnx {
namespace {

bool is_fixed(const Type& type) {
  return type.is_tensor() && type.shape &&
         std::all_of(type.shape->begin(), type.shape->end(), [](const Dim& dim) { return dim.is_constant(); });
}

/// A number among the arguments; nothing where only the run tells it.
std::optional<int64_t> given_number(const AtenCall& call, std::string_view name, int64_t otherwise) {
  const auto found = std::find_if(call.attributes.begin(), call.attributes.end(),
                                  [&](const Attribute& attribute) { return attribute.name == name; });
  if (found == call.attributes.end() || found->value.is_none()) return otherwise;
  const auto* given = found->value.get<int64_t>();
  return given ? std::optional(*given) : std::nullopt;
}

/// How far behind the first element of what it looks at the first element of a part lies.
std::optional<int64_t> part_offset(const View& view, const Type& of, const Strides& strides) {
  const auto rank = static_cast<int64_t>(strides.size());
  auto dim = given_number(view.call, "dim", 0);
  if (!dim || *dim < -rank || *dim >= rank) return std::nullopt;
  if (*dim < 0) *dim += rank;
  const auto size = (*of.shape)[static_cast<size_t>(*dim)].constant();
  const auto stride = strides[static_cast<size_t>(*dim)].constant();
  auto start = given_number(view.call, view.rule == ViewRule::Select ? "index" : "start", 0);
  if (!size || !stride || !start) return std::nullopt;
  if (*start < 0) *start += *size;
  return checked_mul(std::clamp<int64_t>(*start, 0, *size), *stride);
}

/// Where in its memory the first element of the place lies.
std::optional<int64_t> offset_of(const Place& place, TensorMemory& memory) {
  int64_t offset = 0;
  for (const Place* at = &place; at->parent != nullptr; at = at->parent) {
    const View& view = *at->view;
    if (view.rule == ViewRule::Expand || view.rule == ViewRule::Unfold) continue;
    if (view.kind == View::Kind::Opaque) return std::nullopt;
    if (view.kind != View::Kind::Scatter) continue;
    if (view.rule != ViewRule::Select && view.rule != ViewRule::Slice) return std::nullopt;
    const Viewed parent = memory.viewed(*at->parent, true);
    const auto part = parent.strides ? part_offset(view, parent.type, *parent.strides) : std::nullopt;
    if (!part) return std::nullopt;
    offset = checked_add(offset, *part);
  }
  return offset;
}

/// The dimensions as they follow each other in memory; nothing where there are gaps.
std::optional<std::vector<int64_t>> order_in_memory(const Viewed& whole) {
  if (!whole.strides || whole.strides->size() != whole.type.shape->size()) return std::nullopt;
  std::vector<int64_t> sizes, strides;
  for (size_t i = 0; i < whole.strides->size(); ++i) {
    const auto stride = (*whole.strides)[i].constant();
    if (!stride) return std::nullopt;
    sizes.push_back(*(*whole.type.shape)[i].constant());
    strides.push_back(*stride);
  }
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto stride_of = [&](int64_t dim) { return strides[static_cast<size_t>(dim)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return stride_of(a) > stride_of(b); });
  int64_t count = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t size = sizes[static_cast<size_t>(order[i])];
    if (size != 1 && stride_of(order[i]) != count) return std::nullopt;
    if (__builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  return order;
}

}  // namespace

bool reads_by_strides(const Node& node) {
  const AtenOpEntry* const entry = find_canonical_op(node);
  return entry != nullptr && entry->op->view == ViewRule::AsStrided;
}

bool has_fixed_inputs(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(),
                     [](const Value* input) { return !input->type.is_tensor() || is_fixed(input->type); });
}

void use_whole_memory(Node& node, TensorMemory& memory, bool is_written) {
  Value* const self = node.input(0);
  Place& place = memory.get(self);
  for (const Place* at = &place; at != nullptr; at = at->parent) {
    if (!is_fixed(at->type)) return;
  }
  const Viewed whole = memory.viewed(*place.whole, true);
  const auto order = order_in_memory(whole);
  const Attribute* const given = node.find_attribute("storage_offset");
  const bool has_offset = given != nullptr && !given->value.is_none();
  const auto offset = has_offset ? std::optional<int64_t>(0) : offset_of(place, memory);
  if (!order || !offset) return;
  const bool is_in_order = std::is_sorted(order->begin(), order->end());
  const Node* const made_by = self->producer;
  const bool is_own = made_by == nullptr || (viewed_input(*made_by) < 0 && !is_elementwise(*made_by));
  if (is_in_order && place.parent == nullptr && (is_own || is_written)) return;
  Value* base = memory.read(*place.whole, &node);
  memory.writer().write_before(&node);
  Type type = whole.type;
  if (!is_in_order) {
    Shape shape;
    for (const int64_t dim : *order) shape.push_back((*whole.type.shape)[static_cast<size_t>(dim)]);
    type.shape = shape;
    AtenCall permute("permute", "", &node);
    base = memory.writer().add(permute.with("self", base).with("dims", AttrValue(*order)), type, "memory");
  }
  AtenCall clone("clone", "", &node);  // lies row by row in PyTorch too, whatever becomes of the nodes before it
  clone.with("self", base).with("memory_format", AttrValue(std::string("contiguous_format")));
  node.set_input(0, memory.writer().add(clone, type, "memory"));
  place.whole->is_read_by_strides = memory.get(node.input(0)).is_read_by_strides = true;
  if (!has_offset && *offset != 0) node.set_attribute("storage_offset", *offset);
}

}  // namespace tonnx
