// views.cpp - what a view operator of aten looks at, by the rule of its row; splits are seen as slices, one for each
// part.
#include "passes/functionalize/views.h"

#include <algorithm>
#include <numeric>

#include "base/checked_int.h"
#include "base/error.h"
#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

using Kind = View::Kind;

using Rule = ViewRule;

Rule rule_of(const Node& node) {
  const AtenOpEntry* entry = find_aten_op(node);
  return entry ? entry->op->view : Rule::None;
}

const AttrValue* find_value(const Node& node, std::string_view name) {
  const Attribute* found = node.find_attribute(name);
  return found ? &found->value : nullptr;
}

int64_t wrapped(int64_t dim, int64_t rank) {
  const int64_t count = std::max<int64_t>(rank, 1);
  require(dim >= -count && dim < count, "dimension {} of a tensor of rank {}", dim, rank);
  return dim < 0 ? dim + count : dim;
}

int64_t dim_argument(const Node& node, std::string_view name, int64_t otherwise, int64_t rank) {
  const AttrValue* given = find_value(node, name);
  if (given == nullptr) return wrapped(otherwise, rank);
  const auto* dim = given->get<int64_t>();
  require(dim != nullptr, "the argument '{}' is not a number", name);
  return wrapped(*dim, rank);
}

std::vector<int64_t> dims_argument(const Node& node, std::string_view name, int64_t rank) {
  std::vector<int64_t> dims;
  const AttrValue* given = find_value(node, name);
  if (const auto* one = given ? given->get<int64_t>() : nullptr) dims = {*one};
  if (const auto* all = given ? given->get<std::vector<int64_t>>() : nullptr) dims = *all;
  for (int64_t& dim : dims) dim = wrapped(dim, rank);
  return dims;
}

/// A number among the arguments; 0 where it is left out.
IntArg int_argument(const Node& node, std::string_view name) {
  const AttrValue* given = find_value(node, name);
  return given ? size_argument(node, *given) : 0;
}

/// The node itself, to be called again.
AtenCall call_of(const Node& node) {
  AtenCall call(node.op, node.overload, &node);
  call.attributes = node.attributes;
  call.inputs = node.inputs();
  return call;
}

AtenCall slice_call(const Node& node, Value* of, int64_t dim, const IntArg& start, std::optional<IntArg> end) {
  AtenCall call("slice", "Tensor", &node);
  call.with("self", of).with("dim", IntArg(dim)).with("start", start);
  if (end) call.with("end", *end);
  return call;
}

bool has_same_shape(const Type& a, const Type& b) { return a.shape && b.shape && *a.shape == *b.shape; }

std::vector<int64_t> swapped(int64_t rank, int64_t a, int64_t b) {
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  if (rank > 0) std::swap(dims[static_cast<size_t>(a)], dims[static_cast<size_t>(b)]);
  return dims;
}

std::vector<int64_t> movedim_order(const Node& node, int64_t rank) {
  const std::vector<int64_t> from = dims_argument(node, "source", rank), to = dims_argument(node, "destination", rank);
  require(from.size() == to.size(), "{} dimensions are moved to {} places", from.size(), to.size());
  std::vector<int64_t> dims(static_cast<size_t>(rank), -1), rest;
  for (size_t i = 0; i < from.size() && rank > 0; ++i) dims[static_cast<size_t>(to[i])] = from[i];
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(from.begin(), from.end(), d) == from.end()) rest.push_back(d);
  }
  size_t next = 0;
  for (int64_t& dim : dims) {
    if (dim >= 0) continue;
    require(next < rest.size(), "a dimension is moved twice");
    dim = rest[next++];
  }
  return dims;
}

std::vector<int64_t> permutation(Rule rule, const Node& node, int64_t rank) {
  std::vector<int64_t> dims;
  switch (rule) {
    case Rule::Permute: dims = dims_argument(node, "dims", rank); break;
    case Rule::Transpose:
      dims = swapped(rank, dim_argument(node, "dim0", 0, rank), dim_argument(node, "dim1", 0, rank));
      break;
    case Rule::Movedim: dims = movedim_order(node, rank); break;
    case Rule::Reversed:
      dims = swapped(rank, 0, 0);
      std::reverse(dims.begin(), dims.end());
      break;
    default: dims = rank < 2 ? swapped(rank, 0, 0) : swapped(rank, rank - 2, rank - 1);
  }
  std::vector<int64_t> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  require(sorted == swapped(rank, 0, 0), "the dimensions are no permutation of {}", rank);
  return dims;
}

/// Those of size 1 that squeeze takes away; nothing where a size may or may not be 1.
std::optional<std::vector<int64_t>> squeezed(const Node& node, const Type& of, const Type& to) {
  const auto rank = static_cast<int64_t>(of.shape->size());
  const bool all = find_value(node, "dim") == nullptr;
  std::vector<int64_t> dims = all ? swapped(rank, 0, 0) : dims_argument(node, "dim", rank);
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  std::erase_if(dims, [&](int64_t d) { return rank == 0 || !(*of.shape)[static_cast<size_t>(d)].is(1); });
  const bool fits = to.shape && to.shape->size() + dims.size() == of.shape->size();
  return fits ? std::optional(std::move(dims)) : std::nullopt;
}

bool is_dense(const Viewed& input) {
  const auto dense = dense_strides(input.type);
  if (!dense || !input.strides || dense->size() != input.strides->size()) return false;
  for (size_t i = 0; i < dense->size(); ++i) {
    if (!(*input.type.shape)[i].is(1) && !((*dense)[i] == (*input.strides)[i])) return false;
  }
  return true;
}

/// Whether the sizes and strides of an as_strided put two elements in one place, as far as they are numbers.
bool overlaps_itself(const Node& node) {
  const AttrValue *size = find_value(node, "size"), *stride = find_value(node, "stride");
  const auto* sizes = size ? size->get<std::vector<int64_t>>() : nullptr;
  const auto* strides = stride ? stride->get<std::vector<int64_t>>() : nullptr;
  if (sizes == nullptr || strides == nullptr || sizes->size() != strides->size()) return false;
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i] > 1) steps.emplace_back((*strides)[i], (*sizes)[i]);
  }
  std::sort(steps.begin(), steps.end());
  int64_t farthest = 0;
  for (const auto& [step, count] : steps) {
    if (step <= farthest) return true;
    farthest = checked_add(farthest, checked_mul(step, count - 1));
  }
  return false;
}

Kind converted(const Node& node, const Type& of, const Type& to) {
  const AttrValue* copy = find_value(node, "copy");
  const bool copies = copy != nullptr && copy->get<bool>() != nullptr && *copy->get<bool>();
  const bool is_same = of.dtype == to.dtype && !copies && find_value(node, "memory_format") == nullptr;
  return is_same ? Kind::Same : Kind::None;
}

Kind dropped(const Node& node) {
  const AttrValue* train = find_value(node, "train");
  const bool trains = train != nullptr && train->get<bool>() != nullptr && *train->get<bool>();
  return !trains || is_number(node, "p", 0.0) ? Kind::Same : Kind::None;
}

bool is_complex(const Type& type) { return info(type.dtype).kind == 'c'; }

void describe(Rule rule, const Node& node, const Viewed& input, View& view, AtenWriter& writer) {
  const Type& of = input.type;
  const bool same_shape = has_same_shape(of, view.type);
  view.kind = Kind::Opaque;
  if (!of.shape) return;
  const auto rank = static_cast<int64_t>(of.shape->size());
  switch (rule) {
    case Rule::Select:
    case Rule::Diagonal: view.kind = Kind::Scatter; break;
    case Rule::Slice: {
      const IntArg step = find_value(node, "step") ? int_argument(node, "step") : IntArg(1);
      view.kind = same_shape && !step.value && step.number == 1 ? Kind::Merged : Kind::Scatter;
      break;
    }
    case Rule::Narrow: {
      if (node.overload == "Tensor") break;
      const IntArg start = int_argument(node, "start"), length = int_argument(node, "length");
      std::optional<IntArg> end = writer.sum(start, length, &node);
      if (!start.value && start.number < 0 && !end->value && end->number >= 0) end.reset();
      view.call = slice_call(node, operand(node, "self"), dim_argument(node, "dim", 0, rank), start, end);
      view.rule = Rule::Slice;
      view.viewed = 0;
      view.kind = same_shape ? Kind::Merged : Kind::Scatter;
      break;
    }
    case Rule::AsStrided: {
      const bool is_plain = input.is_whole && is_dense(input) && !overlaps_itself(node);
      view.kind = is_plain ? Kind::Scatter : Kind::Opaque;
      break;
    }
    case Rule::View:
      if (of.dtype == view.type.dtype) view.kind = same_shape ? Kind::Merged : Kind::Reshape;
      break;
    case Rule::Reshape:
      if (same_shape) {
        view.kind = Kind::Merged;
      } else if (input.strides && view.type.shape) {
        const bool is_view = reshape_strides(*of.shape, *input.strides, *view.type.shape).has_value();
        view.kind = is_view ? Kind::Reshape : Kind::None;
      } else {
        view.may_copy = true;
      }
      break;
    case Rule::Contiguous:
      if (input.strides)
        view.kind = is_dense(input) && find_value(node, "memory_format") == nullptr ? Kind::Same : Kind::None;
      else
        view.may_copy = true;
      break;
    case Rule::Permute:
    case Rule::Transpose:
    case Rule::Transposed:
    case Rule::Reversed:
    case Rule::Movedim: {
      if (is_complex(of) && (rule == Rule::Transposed || rule == Rule::Reversed)) break;
      view.dims = permutation(rule, node, rank);
      view.kind = Kind::Permute;
      break;
    }
    case Rule::Squeeze:
      if (auto dims = squeezed(node, of, view.type)) {
        view.kind = dims->empty() ? Kind::Merged : Kind::Squeeze;
        view.dims = std::move(*dims);
      }
      break;
    case Rule::Unsqueeze:
      view.dims = {dim_argument(node, "dim", 0, rank + 1)};
      view.kind = Kind::Unsqueeze;
      break;
    case Rule::Expand: view.kind = same_shape ? Kind::Merged : view.type.shape ? Kind::Expanded : Kind::Opaque; break;
    case Rule::Unfold: {
      // where windows overlap, what a write leaves depends on the order in which elements are written
      const IntArg size = int_argument(node, "size"), step = int_argument(node, "step");
      const bool is_apart = !size.value && !step.value && size.number <= step.number;
      if (is_apart && view.type.shape) view.kind = Kind::Windows;
      break;
    }
    case Rule::Same: view.kind = Kind::Same; break;
    case Rule::Real: view.kind = is_complex(of) ? Kind::Opaque : Kind::Same; break;
    case Rule::Convert: view.kind = converted(node, of, view.type); break;
    case Rule::Dropout: view.kind = dropped(node); break;
    default: break;
  }
}

bool gives_parts(Rule rule) {
  return rule == Rule::Split || rule == Rule::HSplit || rule == Rule::VSplit || rule == Rule::DSplit ||
         rule == Rule::Unbind;
}

int64_t split_dim(Rule rule, const Node& node, int64_t rank) {
  switch (rule) {
    case Rule::HSplit: return rank == 1 ? 0 : 1;
    case Rule::VSplit: return 0;
    case Rule::DSplit: return 2;
    default: return dim_argument(node, "dim", 0, rank);
  }
}

std::vector<View> parts_of(Rule rule, const Node& node, const Viewed& input, size_t viewed, AtenWriter& writer) {
  std::vector<View> views;
  Value* of = node.input(viewed);
  require(input.type.shape.has_value(), "a tensor of unknown shape is split");
  const auto rank = static_cast<int64_t>(input.type.shape->size());
  const int64_t dim = split_dim(rule, node, rank);
  require(rank > 0 && dim < rank, "dimension {} of a tensor of rank {} is split", dim, rank);
  IntArg start = 0;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.output(i);
    const Type type = output ? output->type : Type{};
    if (rule == Rule::Unbind) {
      AtenCall call("select", "int", &node);
      call.with("self", of).with("dim", IntArg(dim)).with("index", IntArg(static_cast<int64_t>(i)));
      views.emplace_back(std::move(call), Rule::Select);
    } else {
      require(output != nullptr && type.shape && type.shape->size() == input.type.shape->size(),
              "part {} of a split has no shape", i);
      const IntArg size = writer.size(node.output(i), type, static_cast<size_t>(dim), &node);
      const IntArg end = writer.sum(start, size, &node);
      views.emplace_back(slice_call(node, of, dim, start, end), Rule::Slice);
      start = end;
    }
    views.back().kind = Kind::Scatter;
    views.back().type = type;
  }
  if (views.size() == 1 && has_same_shape(input.type, views[0].type)) views[0].kind = Kind::Merged;
  return views;
}

}  // namespace

int viewed_input(const Node& node) {
  if (rule_of(node) == Rule::None) return -1;
  for (const std::string_view name : {"self", "input", "A"}) {
    const AttrValue* given = find_value(node, name);
    const auto* at = given ? given->get<Operand>() : nullptr;
    if (at != nullptr && node.input(at->index) && node.input(at->index)->type.is_tensor())
      return static_cast<int>(at->index);
  }
  return -1;
}

bool asks_strides(const Node& node) {
  const Rule rule = rule_of(node);
  return rule == Rule::Reshape || rule == Rule::Contiguous || rule == Rule::AsStrided;
}

std::vector<View> views_of(const Node& node, const Viewed& input, AtenWriter& writer) {
  const Rule rule = rule_of(node);
  const auto viewed = static_cast<size_t>(viewed_input(node));
  if (gives_parts(rule)) return parts_of(rule, node, input, viewed, writer);
  require(node.outputs().size() == 1 && node.output(0), "a view has {} results", node.outputs().size());
  std::vector<View> views;
  View& view = views.emplace_back(call_of(node), rule);
  view.viewed = viewed;
  view.type = node.output(0)->type;
  describe(rule, node, input, view, writer);
  return views;
}

}  // namespace tonnx
