// join.cpp - tensors put together and taken apart: Concat, Split.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/same_value.h"
#include "ops/frame/size_node.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

// Concat

void infer_concat(InferNode& n) {
  const auto inputs = n.values("inputs");
  require(!inputs.empty(), "nothing is to be put together");
  std::optional<Shape> shape;
  int64_t axis = 0;
  bool complete = true;
  std::optional<Dims> elements = Dims{};
  for (const Value* input : inputs) {
    require(input != nullptr, "an input is missing");
    const auto known = input->type.rank() == 1 ? find_dims(*input) : std::nullopt;
    if (known && elements) {
      elements->insert(elements->end(), known->begin(), known->end());
    } else {
      elements.reset();
    }
    if (!input->type.shape) {
      complete = false;
    } else if (!shape) {
      shape = input->type.shape;
      axis = NodeView::normalized(n.i("axis"), static_cast<int64_t>(shape->size()));
      if (!complete) (*shape)[static_cast<size_t>(axis)] = n.fresh();
    } else {
      const Shape& other = *input->type.shape;
      require(other.size() == shape->size(), "inputs of {} and {} dimensions are put together", shape->size(),
              other.size());
      for (size_t i = 0; i < other.size(); ++i) {
        Dim& size = (*shape)[i];
        if (static_cast<int64_t>(i) == axis) {
          size = size + other[i];
        } else {
          require(!size.is_constant() || !other[i].is_constant() || other[i] == size,
                  "sizes {} and {} of axis {} differ", size.text(), other[i].text(), i);
          n.same(size, other[i]);
          if (!size.is_constant()) size = other[i];
        }
      }
    }
  }
  if (!complete && shape) (*shape)[static_cast<size_t>(axis)] = n.fresh();
  n.set(0, inputs[0]->type.dtype, std::move(shape));
  constexpr size_t kLongest = 1024;
  if (elements && elements->size() <= kLongest) n.set_dims(std::move(*elements));
}

Values lower_concat(const OnnxNode& n, AtenBuilder& aten) {
  const std::vector<Value*> inputs = n.inputs("inputs");
  int64_t axis = n.i("axis");
  if (const auto rank = n.output_type().rank()) axis = NodeView::normalized(axis, *rank);
  return inputs.size() == 1 ? inputs[0] : aten("cat", inputs, axis);
}

void up_concat_4(OnnxEdit& edit) {
  if (edit.node().find_attribute("axis") == nullptr) edit.node().set_attribute("axis", int64_t{1});
}

// Split

/// How many parts there are; the sizes of an even split differ at most in the last.
size_t part_count(const NodeView& n) {
  const size_t count = n.output_count();
  if (const auto asked = n.find_i("num_outputs")) {
    require(!n.has("split"), "both 'split' and 'num_outputs' are given");
    require(*asked >= 1 && *asked >= static_cast<int64_t>(count), "{} outputs where num_outputs is {}", count, *asked);
    constexpr int64_t kMost = 1 << 16;
    require(*asked <= kMost, "a tensor is split in {} parts", *asked);
    return static_cast<size_t>(*asked);
  }
  return count;
}

/// The sizes of the parts; nothing where they are not known.
std::optional<Dims> part_sizes(const NodeView& n, const std::optional<Dim>& size) {
  const size_t count = part_count(n);
  if (n.has("split")) {
    const auto sizes = n.find_dims("split");
    if (!sizes) return std::nullopt;
    require(sizes->size() >= count, "{} sizes for {} outputs", sizes->size(), count);
    Dim sum;
    for (const Dim& part : *sizes) {
      require(!part.is_constant() || *part.constant() >= 0, "the size {} is negative", part.text());
      sum = sum + part;
    }
    require(!size || !size->is_constant() || !sum.is_constant() || *size == sum, "the parts have {} elements of {}",
            sum.text(), size ? size->text() : "");
    return sizes;
  }
  if (!size) return std::nullopt;
  const Dim parts(static_cast<int64_t>(count));
  if (const auto even = exact_div(*size, parts)) return Dims(count, *even);
  const Dim each = ceil_div(*size, parts);
  Dims sizes(count, each);
  sizes.back() = *size - each * Dim(static_cast<int64_t>(count) - 1);
  // a branch that is never taken may ask for what cannot be
  if (sizes.back().is_constant() && *sizes.back().constant() < 0) return std::nullopt;
  return sizes;
}

void infer_split(InferNode& n) {
  const Shape* from = n.find_shape("input");
  if (from == nullptr) {
    for (size_t i = 0; i < n.output_count(); ++i) n.set(i, n.dtype("input"), std::nullopt);
    return;
  }
  const auto axis = static_cast<size_t>(n.axis("axis", "input"));
  const auto sizes = part_sizes(n, (*from)[axis]);
  for (size_t i = 0; i < n.output_count(); ++i) {
    Shape shape = *from;
    shape[axis] = sizes ? (*sizes)[i] : n.fresh();
    n.set(i, n.dtype("input"), std::move(shape));
  }
  const auto elements = n.find_dims("input");
  if (!elements || from->size() != 1 || !sizes) return;
  if (std::any_of(sizes->begin(), sizes->end(), [](const Dim& part) { return !part.is_constant(); })) return;
  auto at = elements->begin();
  for (size_t i = 0; i < n.output_count(); ++i) {
    const auto end = at + std::min<int64_t>(*(*sizes)[i].constant(), elements->end() - at);
    n.set_dims(i, {at, end});
    at = end;
  }
}

Values lower_split(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  const Shape* from = n.find_shape("input");
  const size_t count = part_count(n);
  const int64_t axis = from ? n.axis("axis", "input") : n.i("axis");
  const auto sizes = part_sizes(n, from ? std::optional((*from)[static_cast<size_t>(axis)]) : std::nullopt);
  if (n.has("split") && !sizes) return aten.list(count, "split_with_sizes", x, n.int_list("split"), axis);
  const auto parts = static_cast<int64_t>(sizes ? sizes->size() : count);
  if (parts == 1) return x;
  const bool even =
      sizes && std::all_of(sizes->begin(), sizes->end(), [&](const Dim& part) { return part == (*sizes)[0]; });
  // chunk gives fewer parts where the last would be empty
  const auto last = sizes ? sizes->back().constant() : std::nullopt;
  const bool chunks = !n.has("split") && (!last || *last > 0);
  if (chunks || (even && last.value_or(1) > 0)) return aten.list(static_cast<size_t>(parts), "chunk", x, parts, axis);
  IntArgs numbers;
  for (const Dim& part : *sizes) numbers.push_back(n.int_arg(part));
  return aten.list(static_cast<size_t>(parts), "split_with_sizes", x, numbers, axis);
}

/// Opset 1 takes the sizes as an attribute or as an input, of the type of the data.
void up_split_2(OnnxEdit& edit) {
  if (edit.node().input(1) == nullptr) return;
  const auto sizes = edit.const_floats(1);
  if (!sizes) edit.cannot("the sizes of opset 1 must be constant");
  std::vector<int64_t> numbers;
  for (const double size : *sizes) {
    require(size >= 0 && size < 1e15, "the size {} is not one", size);
    numbers.push_back(static_cast<int64_t>(size));
  }
  edit.node().resize_inputs(1);
  edit.node().set_attribute("split", numbers, AttrType::Ints);
}

void up_split_18(OnnxEdit& edit) {
  if (edit.node().input(1) != nullptr) return;
  edit.node().set_attribute("num_outputs", static_cast<int64_t>(edit.node().outputs().size()));
}

void down_split_18(OnnxEdit& edit) {
  const Attribute* asked = edit.node().find_attribute("num_outputs");
  if (asked == nullptr) return;
  const int64_t count = edit.i("num_outputs", 1);
  const Value* input = edit.node().input(0);
  const auto rank = edit.rank(0);
  if (!rank || count < 1) edit.cannot("the rank of its input is not known");
  const int64_t axis = NodeView::normalized(edit.i("axis", 0), *rank);
  const auto size = (*input->type.shape)[static_cast<size_t>(axis)].constant();
  if (!size) edit.cannot("the size of the axis is not known, and the older opset splits evenly only");
  edit.node().take_attribute("num_outputs");
  if (*size % count == 0) return;
  require(count == static_cast<int64_t>(edit.node().outputs().size()), "num_outputs is {}, and there are {} outputs",
          count, edit.node().outputs().size());
  const int64_t each = (*size - 1) / count + 1;
  std::vector<int64_t> sizes(static_cast<size_t>(count), each);
  sizes.back() = *size - each * (count - 1);
  require(sizes.back() >= 0, "{} elements are split into {} parts", *size, count);
  edit.node().set_input(1, edit.ints(std::move(sizes), "split"));
}

constexpr OpsetStep kConcatHistory[] = {
    {.to = 4, .up = up_concat_4, .adds = kNonFloats},
    {.to = 11, .down = down_axes_from_front<"axis">},
    {.to = 13, .adds = kBFloat16},
};
constexpr OpsetStep kSplitHistory[] = {
    {.to = 2, .up = up_split_2, .adds = kNonFloats},
    {.to = 11, .down = down_axes_from_front<"axis">},
    {.to = 13, .up = up_attr_to_input<"split", 1>, .down = down_input_to_attr<"split", 1>, .adds = kBFloat16},
    {.to = 18, .up = up_split_18, .down = down_split_18},
};

constexpr OnnxOp kJoinOnnx[] = {
    {.sig = "Concat(T... inputs, *, int axis) -> T concat_result",
     .since = 1,
     .traits = kTakesStrings,
     .history = kConcatHistory,
     .infer = infer_concat,
     .sizes = sizes_of_joined,
     .open = open_concat,
     .eval = eval_concat,
     .same = same_of_one,
     .lower = lower_concat},
    {.sig = "Split(T input, I? split, *, int? num_outputs, int axis=0) -> T... outputs",
     .since = 1,
     .traits = kTakesStrings,
     .history = kSplitHistory,
     .infer = infer_split,
     .open = open_split,
     .eval = eval_split,
     .same = same_where_shape_stays,
     .lower = lower_split},
};

constexpr AtenOp kJoinAten[] = {
    {.sig = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
     .types = types_cat,
     .layout = Layout::Channels,
     .python = "torch.cat",
     .raise = raise_cat},
    {.sig = "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
     .types = types_stack,
     .layout = Layout::Channels,
     .python = "torch.stack",
     .raise = raise_stack},
    {.sig = "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
     .types = types_split_with_sizes,
     .view = ViewRule::Split,
     .python = "torch.split",
     .raise = raise_split_with_sizes},
    {.sig = "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
     .types = types_chunk,
     .view = ViewRule::Split,
     .python = ".chunk",
     .raise = raise_split},
    {.sig = "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
     .types = types_unbind,
     .view = ViewRule::Unbind,
     .python = "torch.unbind",
     .raise = raise_unbind},
};

}  // namespace

extern const OpFamily kJoinOps;
constinit const OpFamily kJoinOps{"join", kJoinOnnx, kJoinAten};

}  // namespace tonnx
