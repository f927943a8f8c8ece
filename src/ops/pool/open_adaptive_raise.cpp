// open_adaptive_raise.cpp - adaptive pools over sizes that only the run tells: one slice for each window of a
// dimension.
#include "ops/pool/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

constexpr int64_t kMostWindows = 64;  // of a dimension

/// The parts of an axis between `count` bounds: from i * size / count, rounded down, to (i + 1) * size / count, rounded
/// up.
Value* pooled(OnnxBuilder& onnx, Value* x, int64_t axis, int64_t count, const char* reduce) {
  std::vector<int64_t> first, next;
  for (int64_t i = 0; i < count; ++i) {
    first.push_back(i);
    next.push_back(i + 1);
  }
  Value *size = onnx.list(onnx.size(x, axis)), *by = onnx.ints({count});
  Value* starts = onnx("Div", {onnx("Mul", {size, onnx.ints(first)}), by});
  Value* ends = onnx("Div", {onnx("Add", {onnx("Mul", {size, onnx.ints(next)}), onnx.ints({count - 1})}), by});
  std::vector<Value*> parts;
  for (int64_t i = 0; i < count; ++i) {
    Value* window = onnx.slice(x, axis, onnx.slice(starts, 0, i, i + 1), onnx.slice(ends, 0, i, i + 1));
    parts.push_back(onnx.reduce(reduce, window, {axis}, true));
  }
  return onnx.concat(parts, axis);
}

}  // namespace

Value* pooled_at_run_time(const AtenNode& n, OnnxBuilder& onnx, int64_t spatial, const char* reduce) {
  Value* x = n.input("self");
  const Shape &from = n.shape("self"), &to = n.output_shape();
  const int64_t rank = onnx.rank(x);
  std::vector<int64_t> whole;  // dimensions of one window
  for (int64_t axis = rank - spatial; axis < rank; ++axis) {
    const Dim &in = from.at(static_cast<size_t>(axis)), &out = to.at(static_cast<size_t>(axis));
    if (in == out) continue;
    const auto count = out.constant();
    if (!count || *count < 1 || *count > kMostWindows)
      n.cannot("an adaptive pool of open sizes to {}", count ? std::to_string(*count) : "another open size");
    if (*count == 1) {
      whole.push_back(axis);
    } else {
      x = pooled(onnx, x, axis, *count, reduce);
    }
  }
  return whole.empty() ? x : onnx.reduce(reduce, x, whole, true);
}

}  // namespace tonnx
