// row.h - a row of com.microsoft: an operator that is written in terms of the standard's.
#pragma once
#include "ops/frame/op_def.h"

namespace tonnx {

constexpr OnnxOp expanded_row(Signature sig, ExpandFn expand, std::string_view note = {}) {
  return {.sig = sig, .since = 1, .note = note, .expand = expand};
}

/// An operator that ONNX Runtime takes in ai.onnx, and the standard does not have.
constexpr OnnxOp nonstandard_row(Signature sig, ExpandFn expand) {
  OnnxOp row = expanded_row(sig, expand);
  row.traits = kOutsideStandard;
  return row;
}

}  // namespace tonnx
