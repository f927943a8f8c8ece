// softmax.cpp - normalised exponentials: Softmax, LogSoftmax, Hardmax.
#include <algorithm>

#include "base/error.h"
#include "ops/activation/rows.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"

namespace tonnx {
namespace {

void infer_softmax(InferNode& n) {
  infer_same_as_first(n);
  if (n.find_rank("input").value_or(0) > 0) n.axis("axis", "input");
}

Values lower_softmax(const OnnxNode& n, AtenBuilder& aten) {
  return aten("softmax.int", n.input("input"), n.i("axis"));
}

Values lower_log_softmax(const OnnxNode& n, AtenBuilder& aten) {
  return aten("log_softmax.int", n.input("input"), n.i("axis"));
}

/// One at the first of the largest elements, zero elsewhere.
Values lower_hardmax(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  const int64_t dim = n.i("axis");
  return aten("scatter.value", aten("zeros_like", x), dim, aten("argmax", x, dim, true), 1.0);
}

/// Up to opset 12 the axis split the input into two dimensions, and all behind it was normalised together.
void up_flattened(OnnxEdit& edit) {
  Node& node = edit.node();
  const int64_t axis = edit.i("axis", 1);
  Value* x = node.input(0);
  const auto rank = edit.rank(0);
  if (rank) {
    // an axis that is the rank leaves one element each; negative ones are of opset 11
    require(axis >= -*rank && axis <= *rank, "axis {} is out of range for rank {}", axis, *rank);
    const int64_t from = axis < 0 ? axis + *rank : axis;
    const Shape& shape = *x->type.shape;
    const auto behind = shape.begin() + std::min(from + 1, *rank);
    if (from < *rank && std::all_of(behind, shape.end(), [](const Dim& size) { return size.is(1); })) {
      return node.set_attribute("axis", from == *rank - 1 ? int64_t{-1} : from);
    }
  }
  Value* shape = edit.before("Shape", {x});
  const auto is_there = [](const Dim& size) { return size.is_constant() && !size.is(0); };
  std::vector<Attribute> attributes;
  if (!rank || !std::all_of(x->type.shape->begin(), x->type.shape->end(), is_there))
    attributes.push_back({"allowzero", int64_t{1}});
  node.set_input(0, edit.before("Flatten", {x}, {{"axis", axis}}));
  node.set_attribute("axis", int64_t{-1});
  edit.after(0, "Reshape", {nullptr, shape}, std::move(attributes));
}

void down_flattened(OnnxEdit& edit) {
  Node& node = edit.node();
  const auto rank = edit.rank(0);
  int64_t axis = edit.i("axis", -1);
  if (axis == -1 || (rank && axis == *rank - 1)) return node.set_attribute("axis", rank ? *rank - 1 : int64_t{-1});
  if (!rank) edit.cannot("the rank of its input is not known");
  require(axis >= -*rank && axis < *rank, "axis {} is out of range for rank {}", axis, *rank);
  if (axis < 0) axis += *rank;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < *rank; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  node.set_input(0, edit.before("Transpose", {node.input(0)}, {{"perm", order}}));
  edit.after(0, "Transpose", {nullptr}, {{"perm", order}});
  node.set_attribute("axis", *rank - 1);
}

/// Opset 10 counts axes from the front only.
void down_negative_axis(OnnxEdit& edit) {
  const int64_t axis = edit.i("axis", 1);
  if (axis >= 0) return;
  const auto rank = edit.rank(0);
  if (!rank) edit.cannot("its axis is negative, and the rank of its input is not known");
  edit.node().set_attribute("axis", axis + *rank);
}

std::string emit_softmax(const Emission& e) {
  const std::string dtype = e.has("dtype") ? ", dtype=" + e.text("dtype") : "";
  return fmt::format("F.{}({}, dim={}{})", e.signature().name, e.text("self"), e.text("dim"), dtype);
}

constexpr OpsetStep kHistory[] = {
    {.to = 11, .down = down_negative_axis},
    {.to = 13, .up = up_flattened, .down = down_flattened, .adds = kBFloat16},
};

/// Up to opset 12 it computed over its axis, 1 by default, and all axes after it.
void open_softmax(OpenNode& n) {
  constexpr int64_t kOneAxis = 13;
  if (n.node().version >= kOneAxis) return open_along_axis(n);
  if (n.node().find_attribute("axis") != nullptr) return open_from_axis(n);
  open_samples(n);
}

constexpr OnnxOp kSoftmaxOnnx[] = {
    {.sig = "Softmax(T input, *, int axis=-1) -> T output",
     .since = 1,
     .traits = kNotNegative,
     .history = kHistory,
     .infer = infer_softmax,
     .open = open_softmax,
     .eval = eval_softmax,
     .lower = lower_softmax},
    {.sig = "LogSoftmax(T input, *, int axis=-1) -> T output",
     .since = 1,
     .history = kHistory,
     .infer = infer_softmax,
     .open = open_softmax,
     .eval = eval_log_softmax,
     .lower = lower_log_softmax},
    {.sig = "Hardmax(T input, *, int axis=-1) -> T output",
     .since = 1,
     .history = kHistory,
     .infer = infer_softmax,
     .open = open_softmax,
     .eval = eval_hardmax,
     .lower = lower_hardmax},
};

constexpr AtenOp kSoftmaxAten[] = {
    {.sig = "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .types = types_as_first,
     .emit = emit_softmax,
     .raise = raise_softmax},
    {.sig = "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .types = types_as_first,
     .emit = emit_softmax,
     .raise = raise_softmax},
};

}  // namespace

extern const OpFamily kSoftmaxOps;
constinit const OpFamily kSoftmaxOps{"softmax", kSoftmaxOnnx, kSoftmaxAten};

}  // namespace tonnx
