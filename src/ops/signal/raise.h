// raise.h - raisings of this family that rows and other families name.
#pragma once
#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

// fft_raise.cpp
Values raise_fft(const AtenNode& n, OnnxBuilder& onnx);

}  // namespace tonnx
