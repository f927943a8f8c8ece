// aten_norm.cpp - PyTorch's normalisations as ONNX.
#include "ops/raises.h"

namespace tonnx {

Values raise_batch_norm(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"cudnn_enabled", "momentum"});
  if (n.flag("training")) n.cannot("batch_norm in training mode");
  const DType dtype = n.dtype("input");
  const Dim& channels = n.shape("input").at(1);
  const auto filled = [&](double value) {
    return onnx.numbers(dtype, {*channels.constant()},
                        std::vector<double>(static_cast<size_t>(*channels.constant()), value));
  };
  Value* weight = n.find_input("weight");
  Value* bias = n.find_input("bias");
  return onnx("BatchNormalization",
              {n.input("input"), weight ? weight : filled(1), bias ? bias : filled(0), n.input("running_mean"),
               n.input("running_var")},
              {{"epsilon", n.f("eps")}});
}

}  // namespace tonnx
