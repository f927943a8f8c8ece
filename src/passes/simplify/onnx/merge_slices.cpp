// merge_slices.cpp - parts of parts, and parts that are joined again, become one part.
#include <algorithm>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"
#include "passes/simplify/onnx/cuts.h"

namespace tonnx {
namespace {

Value* add_slice(Node& before, Value* x, const std::vector<Cut>& cuts, Rewriter& rewriter, std::string_view hint) {
  std::vector<int64_t> axes, starts, ends, steps;
  for (const Cut& cut : cuts) {
    axes.push_back(cut.axis);
    starts.push_back(cut.start);
    ends.push_back(cut.end);
    steps.push_back(cut.step);
  }
  Graph& graph = *before.graph;
  std::vector<Value*> inputs{x, rewriter.ints(graph, starts, "starts"), rewriter.ints(graph, ends, "ends"),
                             rewriter.ints(graph, axes, "axes")};
  if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; }))
    inputs.push_back(rewriter.ints(graph, steps, "steps"));
  return rewriter.add(before, {"Slice", std::move(inputs)}, hint);
}

/// 1. Slice of a Slice that nobody else uses
bool merge_two_slices(Node& node, Rewriter& rewriter) {
  const Node* before = producer_of(node.input(0), kSlice);
  if (before == nullptr || only_user(node.input(0)) == nullptr) return false;
  const auto inner = cuts_of(*before), outer = cuts_of(node);
  if (!inner || !outer) return false;
  std::vector<Cut> cuts = *inner;
  for (const Cut& cut : *outer) {
    const auto same = std::find_if(cuts.begin(), cuts.end(), [&](const Cut& each) { return each.axis == cut.axis; });
    if (same == cuts.end()) {
      cuts.push_back(cut);
      continue;
    }
    const auto part = part_of(*same, cut);
    if (!part) return false;
    *same = *part;
  }
  Value* y = node.output(0);
  Value* made = add_slice(node, before->input(0), cuts, rewriter, y->name);
  return made != nullptr && rewriter.replace(y, made);
}

std::optional<int64_t> axis_of_concat(const Node& node) {
  const Value* y = node.output(0);
  if (!is_onnx(node, kConcat) || y == nullptr || !y->type.shape) return std::nullopt;
  const auto axis = int_of(node, "axis");
  if (!axis && node.find_attribute("axis") != nullptr) return std::nullopt;
  return from_front(axis.value_or(1), static_cast<int64_t>(y->type.shape->size()));  // 1 in the first three opsets
}

/// 2. Concat of what other Concats of the same axis give to it alone. The last one of them takes all the inputs.
bool flatten_concat(Node& node, Rewriter& rewriter) {
  const auto axis = axis_of_concat(node);
  if (!axis) return false;
  const auto is_part = [&](const Value* value) {
    return value && value->producer && only_user(value) != nullptr && value->producer->graph == node.graph &&
           axis_of_concat(*value->producer) == axis;
  };
  if (std::none_of(node.inputs().begin(), node.inputs().end(), is_part)) return false;
  Node* user = only_user(node.output(0));
  if (user != nullptr && is_onnx(user, kConcat) && axis_of_concat(*user) == axis) return false;  // it does it all
  std::vector<Value*> inputs, todo(node.inputs().rbegin(), node.inputs().rend());
  std::vector<Node*> parts;
  while (!todo.empty()) {
    Value* value = todo.back();
    todo.pop_back();
    if (!is_part(value)) {
      inputs.push_back(value);
      continue;
    }
    parts.push_back(value->producer);
    const auto& inside = value->producer->inputs();
    todo.insert(todo.end(), inside.rbegin(), inside.rend());
  }
  node.resize_inputs(0);
  for (size_t i = 0; i < inputs.size(); ++i) node.set_input(i, inputs[i]);
  for (Node* part : parts) rewriter.erase_unused(part);
  return true;
}

/// 3. Concat of all that a Split gives, in order
bool join_split(Node& node, Rewriter& rewriter) {
  const Value* first = node.input(0);
  const Node* split = producer_of(first, kSplit);
  const auto axis = axis_of_concat(node);
  if (split == nullptr || !axis || split->inputs().empty() || split->outputs() != node.inputs()) return false;
  const auto from =
      from_front(int_of(*split, "axis").value_or(0), static_cast<int64_t>(first->type.rank().value_or(0)));
  Value* x = split->input(0);
  return from == axis && x && have_same_type(x, node.output(0)) && rewriter.replace(node.output(0), x);
}

/// What one Slice that only this Concat uses cuts from its one axis.
std::optional<Cut> joined_cut(const Value* value, int64_t axis) {
  const Node* slice = producer_of(value, kSlice);
  if (slice == nullptr || only_user(value) == nullptr) return std::nullopt;
  const auto cuts = cuts_of(*slice);
  if (!cuts || cuts->size() != 1 || cuts->front().axis != axis || cuts->front().step != 1) return std::nullopt;
  // with a start behind the end of the tensor or of the part there is nothing to join
  const auto size = (*slice->input(0)->type.shape)[static_cast<size_t>(axis)].constant();
  const Cut cut = cuts->front();
  return size && cut.start <= cut.end && cut.start <= *size ? std::optional(cut) : std::nullopt;
}

/// 4. Concat of Slices that lie side by side in one tensor
bool join_slices(Node& node, Rewriter& rewriter) {
  const auto axis = axis_of_concat(node);
  if (!axis || node.inputs().size() < 2) return false;
  std::vector<Value*> inputs;
  bool is_changed = false;
  for (size_t i = 0; i < node.inputs().size();) {
    Value* value = node.input(i);
    auto cut = joined_cut(value, *axis);
    size_t next = i + 1;
    while (cut && next < node.inputs().size()) {
      const auto other = joined_cut(node.input(next), *axis);
      if (!other || node.input(next)->producer->input(0) != value->producer->input(0) || other->start != cut->end)
        break;
      cut->end = other->end;
      ++next;
    }
    if (cut && next > i + 1) {
      Value* x = value->producer->input(0);
      Value* made = add_slice(node, x, {*cut}, rewriter, value->name);
      if (made == nullptr) return false;
      const bool is_all = have_same_type(x, made);
      if (is_all) rewriter.erase_unused(made->producer);
      value = is_all ? x : made;
      is_changed = true;
    } else {
      next = i + 1;
    }
    inputs.push_back(value);
    i = next;
  }
  if (!is_changed) return false;
  const std::vector<Value*> old = node.inputs();
  node.resize_inputs(0);
  for (size_t i = 0; i < inputs.size(); ++i) node.set_input(i, inputs[i]);
  for (const Value* value : old) {
    if (value->uses.empty()) rewriter.erase_unused(value->producer);
  }
  if (inputs.size() == 1) rewriter.replace(node.output(0), inputs[0]);
  return true;
}

/// The axis that an Unsqueeze or a Squeeze adds or removes, where it is one.
std::optional<int64_t> one_axis(const Node& node, const Value* wide) {
  const auto axes = ints_of(node, "axes");
  if (!axes || axes->size() != 1 || !wide->type.shape) return std::nullopt;
  return from_front(axes->front(), static_cast<int64_t>(wide->type.shape->size()));
}

std::optional<int64_t> axis_of_gather(const Node& gather) {
  const Value* x = gather.input(0);
  if (x == nullptr || !x->type.shape) return std::nullopt;
  return from_front(int_of(gather, "axis").value_or(0), static_cast<int64_t>(x->type.shape->size()));
}

Value* add_gather(Node& before, Value* x, int64_t index, bool keeps_axis, int64_t axis, Rewriter& rewriter) {
  TensorPtr tensor = keeps_axis ? make_ints({index}) : make_scalar(DType::Int64, static_cast<double>(index));
  Value* indices = rewriter.constant(*before.graph, std::move(tensor), "index");
  return rewriter.add(before, {"Gather", {x, indices}, {{"axis", axis, AttrType::Int, {}, {}}}},
                      before.output(0)->name);
}

/// 5. Gather of one element, and Unsqueeze of the axis that went away with it; or of a list of one, and Squeeze
bool merge_gather(Node& node, Rewriter& rewriter) {
  const bool adds = is_onnx(node, kUnsqueeze);
  Value *part = node.input(0), *y = node.output(0);
  const Node* gather = producer_of(part, kGather);
  if (gather == nullptr || only_user(part) == nullptr) return false;
  const auto axis = axis_of_gather(*gather), changed = one_axis(node, adds ? y : part);
  const Value* indices = gather->input(1);
  const auto index = int_of(*gather, "indices");
  if (!axis || axis != changed || !index || !indices->type.shape || indices->type.shape->size() != (adds ? 0 : 1))
    return false;
  Value* made = add_gather(node, gather->input(0), *index, adds, *axis, rewriter);
  return made != nullptr && rewriter.replace(y, made);
}

/// 6. Slice of one element, and Squeeze of its axis
bool merge_slice_of_one(Node& node, Rewriter& rewriter) {
  Value *part = node.input(0), *y = node.output(0);
  const Node* slice = producer_of(part, kSlice);
  if (slice == nullptr || only_user(part) == nullptr) return false;
  const auto cuts = cuts_of(*slice);
  const auto axis = one_axis(node, part);
  if (!cuts || cuts->size() != 1 || !axis || cuts->front().axis != *axis) return false;
  const Dim& size = (*slice->input(0)->type.shape)[static_cast<size_t>(*axis)];
  const int64_t start = cuts->front().start, end = cuts->front().end;
  const auto known = size.constant();
  // where the size is open, there is an element, as otherwise Squeeze would have none to remove
  const bool is_one = known ? start < *known && std::min(end, *known) - start == 1 : end - start == 1;
  if (!is_one) return false;
  Value* made = add_gather(node, slice->input(0), start, false, *axis, rewriter);
  return made != nullptr && rewriter.replace(y, made);
}

/// 7. Gather or Slice of sizes that lie side by side in what Shape gives, where Shape can do that itself
bool merge_shape(Node& node, Rewriter& rewriter) {
  const Node* shape = producer_of(node.input(0), kShape);
  if (shape == nullptr || rewriter.opset() < 15 || shape->input(0) == nullptr || !shape->input(0)->type.shape)
    return false;
  if (has(*shape, "start") || has(*shape, "end")) return false;
  const auto rank = static_cast<int64_t>(shape->input(0)->type.shape->size());
  int64_t start = 0, end = 0;
  if (is_onnx(node, kSlice)) {
    const auto cuts = cuts_of(node);
    if (!cuts || cuts->size() != 1 || cuts->front().step != 1) return false;
    start = cuts->front().start;
    end = std::min(cuts->front().end, rank);
  } else {
    const Value* indices = node.input(1);
    const auto list = ints_of(node, "indices");
    if (!list || list->empty() || !indices->type.shape || indices->type.shape->size() != 1) return false;
    const auto sorted = axes_from_front(*list, rank);
    const auto first = from_front(list->front(), rank);
    if (!sorted || !first || sorted->front() != *first) return false;
    for (size_t i = 0; i < list->size(); ++i) {
      if (from_front((*list)[i], rank) != *first + static_cast<int64_t>(i)) return false;
    }
    start = *first;
    end = start + static_cast<int64_t>(list->size());
  }
  if (start >= end) return false;
  std::vector<Attribute> attributes{{"start", start, AttrType::Int, {}, {}}, {"end", end, AttrType::Int, {}, {}}};
  Value* y = node.output(0);
  Value* made = rewriter.add(node, {"Shape", {shape->input(0)}, std::move(attributes)}, y->name);
  return made != nullptr && rewriter.replace(y, made);
}

}  // namespace

bool merge_slices(Node& node, Rewriter& rewriter) {
  if (node.input(0) == nullptr || node.output(0) == nullptr || node.output(0)->uses.empty()) return false;
  if (is_onnx(node, kSlice)) return merge_two_slices(node, rewriter) || merge_shape(node, rewriter);
  if (is_onnx(node, kConcat))
    return join_split(node, rewriter) || flatten_concat(node, rewriter) || join_slices(node, rewriter);
  if (is_onnx(node, kGather)) return merge_shape(node, rewriter);
  if (is_onnx(node, kUnsqueeze)) return merge_gather(node, rewriter);
  if (is_onnx(node, kSqueeze)) return merge_gather(node, rewriter) || merge_slice_of_one(node, rewriter);
  return false;
}

}  // namespace tonnx
