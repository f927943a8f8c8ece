// op_symbols.h - the ONNX operators that passes look for.
#pragma once
#include "ir/symbol.h"

namespace tonnx {

inline const Symbol kAbs("Abs"), kAdd("Add"), kAttention("Attention"), kAveragePool("AveragePool"),
    kBatchNormalization("BatchNormalization"), kCast("Cast"), kClip("Clip"), kConcat("Concat"), kConstant("Constant"),
    kConstantOfShape("ConstantOfShape"), kConv("Conv"), kConvInteger("ConvInteger"), kConvTranspose("ConvTranspose"),
    kDequantize("DequantizeLinear"), kDiv("Div"), kEqual("Equal"), kErf("Erf"), kExp("Exp"), kExpand("Expand"),
    kFlatten("Flatten"), kGather("Gather"), kGemm("Gemm"), kGroup("GroupNormalization"), kHardSigmoid("HardSigmoid"),
    kIdentity("Identity"), kInstance("InstanceNormalization"), kLayerNormalization("LayerNormalization"), kLog("Log"),
    kLoop("Loop"), kMatMul("MatMul"), kMax("Max"), kMaxPool("MaxPool"), kMin("Min"), kMul("Mul"), kNeg("Neg"),
    kPad("Pad"), kPow("Pow"), kQLinearConv("QLinearConv"), kQuantize("QuantizeLinear"), kReciprocal("Reciprocal"),
    kReduceMax("ReduceMax"), kReduceMean("ReduceMean"), kReduceMin("ReduceMin"), kReduceSum("ReduceSum"),
    kReduceSumSquare("ReduceSumSquare"), kRelu("Relu"), kReshape("Reshape"), kRmsNormalization("RMSNormalization"),
    kRound("Round"), kShape("Shape"), kSigmoid("Sigmoid"), kSlice("Slice"), kSoftmax("Softmax"), kSoftplus("Softplus"),
    kSplit("Split"), kSqrt("Sqrt"), kSqueeze("Squeeze"), kSub("Sub"), kTanh("Tanh"), kTranspose("Transpose"),
    kUnsqueeze("Unsqueeze"), kWhere("Where");

}  // namespace tonnx
