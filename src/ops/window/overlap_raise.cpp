// overlap_raise.cpp - windows that overlap added up to what they are windows of, as an inverse STFT does, as ONNX.
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

constexpr int64_t kMostParts = 256;  // of a window

Value* padded(OnnxBuilder& onnx, Value* x, int64_t axis, const IntArg& before, const IntArg& after) {
  const auto rank = static_cast<size_t>(onnx.rank(x)), at = static_cast<size_t>(axis);
  if (before.is(0) && after.is(0)) return x;
  IntArgs pads;
  for (size_t i = 0; i < 2 * rank; ++i) pads.push_back(i == at ? before : i == rank + at ? after : IntArg(0));
  return onnx("Pad", {x, onnx.list(pads)});
}

}  // namespace

// A window is cut into parts as long as a step: part `i` of window `w` lies at step `w + i` of the result.
Value* added_windows(OnnxBuilder& onnx, Value* x, int64_t size, int64_t step) {
  const int64_t last = onnx.rank(x) - 1, parts = (size + step - 1) / step;
  if (parts > kMostParts) fail_unsupported("windows of {} steps", parts);
  x = padded(onnx, x, last, 0, parts * step - size);
  std::vector<Value*> terms;
  for (int64_t i = 0; i < parts; ++i) {
    Value* part = parts == 1 ? x : onnx.slice(x, last, i * step, (i + 1) * step);
    terms.push_back(padded(onnx, part, last - 1, i, parts - 1 - i));
  }
  Value* sum = terms.size() == 1 ? terms[0] : onnx("Sum", terms);
  IntArgs joined = onnx.sizes(sum);
  joined.pop_back();
  joined[static_cast<size_t>(last - 1)] = -1;
  return onnx.reshape(sum, joined);
}

namespace {

Values raise_unfold_backward(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t size = n.positive("size"), step = n.positive("step");
  if (!is_float(n.dtype("grad_in"))) n.cannot("windows of {}", name_of(n.dtype("grad_in")));
  const IntArgs sizes = n.int_args("input_sizes");
  const int64_t rank = static_cast<int64_t>(sizes.size()), dim = AtenNode::normalized(n.i("dim"), rank);
  Value* x = n.input("grad_in");
  std::vector<int64_t> order;  // the windows behind all other dimensions, and their elements last
  for (int64_t i = 0; i < rank; ++i) {
    if (i != dim) order.push_back(i);
  }
  order.insert(order.end(), {dim, rank});
  Value* sum = added_windows(onnx, onnx.transpose(x, order), size, step);
  // what no window reached is 0
  const IntArg& wanted = sizes[static_cast<size_t>(dim)];
  const IntArg missing = onnx.max(onnx.sub(wanted, onnx.size(sum, rank - 1)), 0);
  sum = onnx.slice(padded(onnx, sum, rank - 1, 0, missing), rank - 1, 0, wanted);
  std::vector<int64_t> back;
  for (int64_t i = 0; i < rank; ++i) back.push_back(i < dim ? i : i == dim ? rank - 1 : i - 1);
  return onnx.expand(onnx.transpose(sum, back), n.output_shape());  // an inverse STFT has one window for a whole batch
}

constexpr AtenOp kAtenOverlapAten[] = {
    {.sig = "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
     .python = "torch.ops.aten.unfold_backward",
     .raise = raise_unfold_backward},
};

}  // namespace

extern const OpFamily kAtenOverlapOps;
constinit const OpFamily kAtenOverlapOps{"aten_overlap", {}, kAtenOverlapAten};

}  // namespace tonnx
