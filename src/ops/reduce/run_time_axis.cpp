// run_time_axis.cpp - operators along axes that only the run tells, as one for each choice of axes that it may be.
#include "ops/reduce/run_time_axis.h"

#include <algorithm>

#include "ops/frame/expansion.h"
#include "ops/frame/node_facts.h"
#include "ops/frame/rank_choice.h"

namespace tonnx {
namespace {

constexpr int64_t kMostAxes = 6;
constexpr size_t kMostSets = 6;  // each is computed

using AxisSet = std::vector<int64_t>;  // ascending

/// How many axes there are, where nobody knows yet which; 0 where they are known, or even their number is not.
int64_t count_of_axes(const NodeView& n, std::string_view name) {
  const Shape* shape = n.find_shape(name);
  if (!n.has(name) || n.value(name)->constant || n.find_const_ints(name) || !shape || shape->size() > 1) return 0;
  if (!contains(kWideInts, n.dtype(name))) return 0;
  return shape->empty() ? 1 : shape->front().constant().value_or(0);
}

/// All sets of so many of the axes of a tensor.
std::vector<AxisSet> sets_of_axes(int64_t rank, int64_t count) {
  std::vector<AxisSet> result;
  for (uint64_t bits = 0; bits < uint64_t{1} << rank; ++bits) {
    AxisSet set;
    for (int64_t axis = 0; axis < rank; ++axis) {
      if ((bits >> axis & 1) != 0) set.push_back(axis);
    }
    if (static_cast<int64_t>(set.size()) == count) result.push_back(std::move(set));
  }
  return result;
}

Shape reduced(const Shape& shape, const AxisSet& axes, bool keeps) {
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_gone = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d));
    if (!is_gone) result.push_back(shape[d]);
    if (is_gone && keeps) result.emplace_back(1);
  }
  return result;
}

/// Whether a shape can be what the file declares.
bool agree(const Shape& found, const MaybeShape& declared) {
  if (!declared) return true;
  if (declared->size() != found.size()) return false;
  for (size_t d = 0; d < found.size(); ++d) {
    const auto a = found[d].constant(), b = (*declared)[d].constant();
    if (a && b && *a != *b) return false;
  }
  return true;
}

/// The one node that makes something of each element of a value, and nothing else.
const Node* only_function_of(const Value& value) {
  const Node* user = only_user(&value);
  if (user == nullptr || user->input(0) != &value || user->outputs().size() != 1) return nullptr;
  const OnnxOpEntry* entry = find_onnx_op(user->domain.view(), user->op.view());
  const bool is_function = entry && (entry->op->traits & kElementwise) != 0 && user->inputs().size() == 1;
  const bool is_cast = user->domain.empty() && (user->op == "Cast" || user->op == "CastLike");
  return is_function || is_cast ? user : nullptr;
}

/// The axes that a reduction may be along; nothing where its shape is another for some of them.
std::vector<AxisSet> possible_axes(const NodeView& n, const Shape& data, int64_t count) {
  const MaybeShape declared = declared_shape(n);
  std::vector<AxisSet> result;
  std::optional<Shape> common;
  for (AxisSet& axes : sets_of_axes(static_cast<int64_t>(data.size()), count)) {
    Shape shape = reduced(data, axes, n.flag("keepdims"));
    if (!agree(shape, declared)) continue;
    if (common && !std::equal(common->begin(), common->end(), shape.begin(), shape.end())) return {};
    common = std::move(shape);
    result.push_back(std::move(axes));
  }
  return result;
}

/// `at` is the place of the axes among the inputs.
bool choose(OnnxEdit& edit, size_t at, const std::vector<AxisSet>& sets, int64_t rank) {
  if (sets.empty() || sets.size() > kMostSets) return false;
  Expansion make(edit);
  Node& node = edit.node();
  Value* given = node.input(at);
  const DType dtype = given->type.dtype;
  const auto along = [&](const AxisSet& axes) {
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[at] = given->type.rank() == 0 ? make.number(dtype, static_cast<double>(axes[0])) : make.ints(axes);
    return make(node.op.view(), std::move(inputs), node.attributes);
  };
  const auto bits_of_axes = [](const AxisSet& axes) {
    int64_t bits = 0;
    for (const int64_t axis : axes) bits |= int64_t{1} << axis;
    return bits;
  };
  Value* result = along(sets.back());
  if (sets.size() == 1) return edit.replace_with({result});
  // the axes, whatever their order, as one number with a bit for each
  std::vector<int64_t> powers;
  for (int64_t axis = 0; axis < rank; ++axis) powers.push_back(int64_t{1} << axis);
  Value* from_front = make("Mod", {given, make.number(dtype, static_cast<double>(rank))});
  const bool is_one = sets[0].size() == 1;
  Value* chosen = is_one ? from_front
                         : make("ReduceSum", {make("Gather", {make.ints(powers), from_front})},
                                {{"keepdims", int64_t{0}, AttrType::Int, {}, {}}});
  for (size_t i = sets.size() - 1; i-- > 0;) {
    const auto number = static_cast<double>(is_one ? sets[i][0] : bits_of_axes(sets[i]));
    Value* is_this = make("Equal", {chosen, make.number(is_one ? dtype : DType::Int64, number)});
    result = make("Where", {is_this, along(sets[i]), result});
  }
  return edit.replace_with({result});
}

}  // namespace

MaybeShape declared_shape(const NodeView& n) {
  constexpr int kFarthest = 8;
  const Value* value = n.node().output(0);
  for (int i = 0; value != nullptr && i < kFarthest; ++i) {
    if (value->type.shape) return value->type.shape;
    const Node* user = only_function_of(*value);
    value = user ? user->output(0) : nullptr;
  }
  return std::nullopt;
}

bool expand_reduce(const NodeView& n, OnnxEdit& edit) {
  const Shape* data = n.find_shape("data");
  const int64_t count = count_of_axes(n, "axes");
  // of no axes it may be nothing that is done, or all: only the run tells
  if (n.has("axes") && count == 0 && n.flag("noop_with_empty_axes"))
    return choose_length(edit, n, {"axes"}, from_to(0, std::min(n.find_rank("data").value_or(kMostAxes), kMostAxes)));
  if (data == nullptr || static_cast<int64_t>(data->size()) > kMostAxes || count == 0) return false;
  return choose(edit, 1, possible_axes(n, *data, count), static_cast<int64_t>(data->size()));
}

bool expand_reduce_product(const NodeView& n, OnnxEdit& edit) {
  if (expand_reduce(n, edit)) return true;
  const auto rank = n.find_rank("data");
  const Shape* list = n.find_shape("axes");
  if (!n.has("axes") || (list && list->size() == 1 && list->front().is(0))) {
    const bool is_along_all = n.flag("keepdims") && !n.flag("noop_with_empty_axes");
    return is_along_all && choose_rank(edit, n, {"data"}, from_to(0, kMostAxes));
  }
  return choose_length(edit, n, {"axes"}, from_to(0, std::min(rank.value_or(kMostAxes), kMostAxes)));
}

bool choose_axis(const NodeView& n, OnnxEdit& edit, size_t at, int64_t rank, int64_t count) {
  if (count < 1 || count > kMostAxes || count_of_axes(n, "axis") != 1) return false;
  return choose(edit, at, sets_of_axes(count, 1), rank);
}

bool expand_cumulative(const NodeView& n, OnnxEdit& edit) {
  const auto rank = n.find_rank("x");
  return rank && choose_axis(n, edit, 1, *rank, *rank);
}

}  // namespace tonnx
