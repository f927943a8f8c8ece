// compress.cpp - elements kept by a condition, or turned around up to a length: Compress, ReverseSequence.
#include <algorithm>

#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/node_facts.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/index/rows.h"

namespace tonnx {
namespace {

// Compress

void infer_compress(InferNode& n) {
  const Shape* shape = n.find_shape("input");
  const auto condition = n.find_const_ints("condition");
  Dim count = n.fresh();
  if (condition) count = std::count_if(condition->begin(), condition->end(), [](int64_t keep) { return keep != 0; });
  if (!n.find_i("axis")) return n.set(0, n.dtype("input"), Shape{count});
  if (shape == nullptr) return n.set(0, n.dtype("input"), std::nullopt);
  Shape result = *shape;
  result[static_cast<size_t>(n.axis("axis", "input"))] = count;
  n.set(0, n.dtype("input"), std::move(result));
}

/// The condition may be shorter than the axis, which a mask may not.
Values lower_compress(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  int64_t axis = n.find_i("axis").value_or(0);
  if (!n.has("axis")) {
    if (n.find_rank("input") != 1) x = aten("flatten.using_ints", x);
  } else if (n.find_rank("input")) {
    axis = n.axis("axis", "input");
  }
  if (const auto condition = n.find_const_ints("condition")) {
    IntArgs kept;
    for (size_t i = 0; i < condition->size(); ++i) {
      if ((*condition)[i] != 0) kept.push_back(static_cast<int64_t>(i));
    }
    return selected_along(aten, x, n.dtype("input"), axis, aten.ints(kept));
  }
  Value* places = aten("squeeze.dim", aten("nonzero", n.input("condition")), 1);
  return selected_along(aten, x, n.dtype("input"), axis, places);
}

// ReverseSequence

void check_reverse_sequence(const NodeView& n) {
  const int64_t batch = n.i("batch_axis"), time = n.i("time_axis");
  require((batch == 0 && time == 1) || (batch == 1 && time == 0), "batch_axis {} and time_axis {} are not 0 and 1",
          batch, time);
  const auto rank = n.find_rank("input");
  require(!rank || *rank >= 2, "the input has {} dimensions, and needs two", rank.value_or(0));
}

void infer_reverse_sequence(InferNode& n) {
  check_reverse_sequence(n);
  infer_same_as_first(n);
}

Values lower_reverse_sequence(const OnnxNode& n, AtenBuilder& aten) {
  check_reverse_sequence(n);
  Value* x = n.input("input");
  const int64_t batch = n.i("batch_axis"), time = n.i("time_axis");
  // the step that each step comes from, as a matrix in the order of the two axes
  Value* steps = aten("arange", aten.size(x, time));
  Value* lengths = n.input("sequence_lens");
  if (batch == 0) {
    lengths = aten("unsqueeze", lengths, 1);
  } else {
    steps = aten("unsqueeze", steps, 1);
  }
  Value* reversed = aten("sub.Tensor", aten("sub.Scalar", lengths, 1), steps);
  Value* from = aten("where.self", aten("lt.Tensor", steps, lengths), reversed, steps);
  Value* rows = aten("arange", aten.size(x, batch));
  if (batch == 0) return aten("index.Tensor", x, std::vector<Value*>{aten("unsqueeze", rows, 1), from});
  return aten("index.Tensor", x, std::vector<Value*>{from, rows});
}

/// A constant list of lengths has one for each sequence.
void open_reverse_sequence(OpenNode& n) {
  const Shape* x = n.shape(0);
  const auto rank = x != nullptr ? static_cast<int64_t>(x->size()) : 0;
  const auto batch = from_front(int_of(n.node(), "batch_axis").value_or(1), rank);
  if (batch) align(n, {InputAxis{0, static_cast<size_t>(*batch)}, InputAxis{1, 0}});
}

constexpr OpsetStep kCompressHistory[] = {
    {.to = 11, .down = down_axes_from_front<"axis">},
    {.to = 28, .adds = kBFloat16},
};
constexpr OpsetStep kReverseSequenceHistory[] = {{.to = 28, .adds = kBFloat16}};

constexpr OnnxOp kCompressOnnx[] = {
    {.sig = "Compress(T input, T1 condition, *, int? axis) -> T output",
     .since = 9,
     .traits = kBounded | kTakesStrings,
     .runtime = {kAllInts | kBool},
     .history = kCompressHistory,
     .infer = infer_compress,
     .eval = eval_compress,
     .lower = lower_compress},
    {.sig = "ReverseSequence(T input, I sequence_lens, *, int batch_axis=1, int time_axis=0) -> T Y",
     .since = 10,
     .traits = kTakesStrings,
     .history = kReverseSequenceHistory,
     .infer = infer_reverse_sequence,
     .open = open_reverse_sequence,
     .eval = eval_reverse_sequence,
     .lower = lower_reverse_sequence},
};

}  // namespace

extern const OpFamily kCompressOps;
constinit const OpFamily kCompressOps{"compress", kCompressOnnx, {}};

}  // namespace tonnx
