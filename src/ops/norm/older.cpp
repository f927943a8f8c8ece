// older.cpp - LayerNormalization, GroupNormalization and RMSNormalization in operators that older opsets have.
#include <numeric>

#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/norm/rows.h"

namespace tonnx {
namespace {

bool is_half(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

std::vector<int64_t> axes_from(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank - axis));
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

Value* mean(Expansion& make, Value* x, const std::vector<int64_t>& axes) {
  return make("ReduceMean", {x, make.ints(axes)}, {{"keepdims", int64_t{1}}});
}

Value* squared(Expansion& make, Value* x, DType dtype) { return make("Pow", {x, make.number(dtype, 2)}); }

}  // namespace

bool layer_norm_in_older(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  Node& node = edit.node();
  const DType dtype = n.dtype("X");
  const bool is_wide = is_half(dtype);
  const DType kernel = is_wide ? DType::Float32 : dtype;
  const std::vector<int64_t> axes = axes_from(n.axis("axis", "X"), n.rank("X"));
  Value* x = is_wide ? make.cast(node.input(0), kernel) : node.input(0);
  Value* average = mean(make, x, axes);
  Value* centred = make("Sub", {x, average});
  Value* variance = mean(make, squared(make, centred, kernel), axes);
  Value* deviation = make("Sqrt", {make("Add", {variance, make.number(kernel, n.f("epsilon"))})});
  Value* y = make("Div", {centred, deviation});
  if (is_wide) y = make.cast(y, dtype);
  y = make("Mul", {y, node.input(1)});
  if (node.input(2) != nullptr) y = make("Add", {y, node.input(2)});
  return edit.replace_with(
      {y, n.wants_output(1) ? average : nullptr, n.wants_output(2) ? make("Reciprocal", {deviation}) : nullptr});
}

bool rms_norm_in_older(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  Node& node = edit.node();
  const DType from = n.dtype("X"), to = n.dtype("scale");
  const auto stash = find_dtype(n.i("stash_type"));
  require(stash && is_float(*stash), "stash_type is {}", n.i("stash_type"));
  const DType kernel = from == DType::Float64 ? from : *stash;
  const std::vector<int64_t> axes = axes_from(n.axis("axis", "X"), n.rank("X"));
  Value* x = from == kernel ? node.input(0) : make.cast(node.input(0), kernel);
  Value* square = mean(make, squared(make, x, kernel), axes);
  Value* root = make("Sqrt", {make("Add", {square, make.number(kernel, n.f("epsilon"))})});
  Value* y = make("Div", {x, root});
  if (kernel != to) y = make.cast(y, to);
  return edit.replace_with({make("Mul", {y, node.input(1)})});
}

namespace {

/// A list of one for each channel, as something that planes can be multiplied by.
Value* beside_planes(Expansion& make, OnnxEdit& edit, Value* weight, int64_t rank) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank - 1), 1);
  sizes[0] = -1;
  if (!weight->constant) return make.reshape(weight, sizes);
  auto column = std::make_shared<Tensor>(*weight->constant);
  sizes[0] = column->count();
  column->dims = sizes;
  column->source = {};
  Value* made = edit.constant(column, weight->name);
  if (weight->uses.size() == 1) std::swap(made->name, weight->name);  // nobody wants it as it was
  return made;
}

/// Each group as one channel, normalised; and the scales and biases of the channels beside it.
struct GroupParts {
  Value *y, *scale, *bias;
};
GroupParts group_parts(OnnxEdit& edit, int64_t groups, double epsilon) {
  Expansion make(edit);
  Value* x = edit.node().input(0);
  const auto rank = edit.rank(0);
  if (!rank) edit.cannot("the rank of the input is not known");
  for (size_t i = 1; i < 3; ++i) require(edit.node().input(i) != nullptr, "input {} is missing", i);
  constexpr int64_t kMostGroups = int64_t{1} << 20;
  require(*rank >= 2 && groups >= 1 && groups <= kMostGroups, "{} groups of a tensor of {} dimensions", groups, *rank);
  const DType dtype = x->type.dtype;
  const std::vector<double> ones(static_cast<size_t>(groups), 1), zeros(static_cast<size_t>(groups), 0);
  // a plane of a known size is written down: where there is no batch, -1 could be anything
  Dim plane(1);
  for (size_t i = 1; i < x->type.shape->size(); ++i) plane = plane * (*x->type.shape)[i];
  const auto known = plane.constant();
  Value* flat = make.reshape(x, {0, groups, known ? *known / std::max<int64_t>(groups, 1) : -1});
  Value* y =
      make("InstanceNormalization", {flat, make.numbers(dtype, {groups}, ones), make.numbers(dtype, {groups}, zeros)},
           {{"epsilon", epsilon}});
  std::vector<int64_t> sizes;
  for (const Dim& size : *x->type.shape) sizes.push_back(size.constant().value_or(-1));
  if (!sizes.empty() && sizes[0] == -1) sizes[0] = 0;
  const bool is_known = std::count(sizes.begin(), sizes.end(), -1) <= 1;
  y = is_known ? make.reshape(y, sizes) : make("Reshape", {y, make("Shape", {x})});
  return {y, beside_planes(make, edit, edit.node().input(1), *rank),
          beside_planes(make, edit, edit.node().input(2), *rank)};
}

}  // namespace

bool group_norm_in_older(const NodeView& n, OnnxEdit& edit) {
  const GroupParts parts = group_parts(edit, n.i("num_groups"), n.f("epsilon"));
  return edit.replace_with({edit.before("Add", {edit.before("Mul", {parts.y, parts.scale}), parts.bias})});
}

void down_group_norm(OnnxEdit& edit) {
  require_default(edit, "stash_type", 1);
  Node& node = edit.node();
  const Attribute* given = node.find_attribute("epsilon");
  const auto* epsilon = given ? given->value.get<double>() : nullptr;
  const GroupParts parts = group_parts(edit, edit.i("num_groups", 1), epsilon ? *epsilon : 1e-5);
  Value* scaled = edit.before("Mul", {parts.y, parts.scale});
  for (const char* name : {"epsilon", "num_groups"}) drop_attribute(edit, name);
  node.op = "Add";
  node.resize_inputs(2);
  node.set_input(0, scaled);
  node.set_input(1, parts.bias);
  node.mark_changed();
}

}  // namespace tonnx
