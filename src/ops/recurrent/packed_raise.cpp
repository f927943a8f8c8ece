// packed_raise.cpp - packed sequences as ONNX, whose layers take padded ones and their lengths.
#include "ops/recurrent/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// The sequences padded to [time, batch, features]. What is in their places behind the last step is not looked at.
Values raise_packed(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_lstm = n.node().op == "lstm";
  Value* state = is_lstm ? n.inputs("hx").at(0) : n.input("hx");
  Value* sizes = n.input("batch_sizes");  // of how many sequences there is each step
  Value* zero = onnx.integer(DType::Int64, 0);
  Value* starts = onnx("CumSum", {sizes, zero}, {attr("exclusive", int64_t{1})});
  Value* number = onnx.unsqueeze(onnx.range(onnx.size(state, 1)), {0});
  Value* is_there = onnx("Less", {number, onnx.unsqueeze(sizes, {1})});
  Value* places = onnx.where(is_there, onnx("Add", {onnx.unsqueeze(starts, {1}), number}), zero);
  Value* lengths = onnx.reduce("ReduceSum", onnx.cast(is_there, DType::Int32), {0}, false);
  Values results = raise_layers(n, onnx, onnx.gather(n.input("data"), places, 0), lengths, false);
  Value* steps = onnx.reshape(results[0], IntArgs{-1, onnx.size(results[0], 2)});
  results[0] = onnx("Compress", {steps, onnx.reshape(is_there, IntArgs{-1})}, {attr("axis", int64_t{0})});
  return results;
}

#define PACKED(op)                                                                                             \
  "aten::" op                                                                                                  \
  ".data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float " \
  "dropout, bool train, bool bidirectional) -> (Tensor, Tensor)"

constexpr AtenOp kAtenPackedAten[] = {
    {.sig = "aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int "
            "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
     .layout = Layout::Own,
     .low_precision = true,
     .python = "torch.lstm",
     .raise = raise_packed},
    {.sig = PACKED("gru"), .low_precision = true, .python = "torch.gru", .raise = raise_packed},
    {.sig = PACKED("rnn_tanh"), .low_precision = true, .python = "torch.rnn_tanh", .raise = raise_packed},
    {.sig = PACKED("rnn_relu"), .low_precision = true, .python = "torch.rnn_relu", .raise = raise_packed},
};

#undef PACKED

}  // namespace

extern const OpFamily kAtenPackedOps;
constinit const OpFamily kAtenPackedOps{"aten_packed", {}, kAtenPackedAten};

}  // namespace tonnx
