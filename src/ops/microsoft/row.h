// row.h - a row of com.microsoft: an operator that is written in terms of the standard's.
#pragma once
#include "ops/frame/op_def.h"

namespace tonnx {

constexpr OnnxOp expanded_row(Signature sig, ExpandFn expand, std::string_view note = {}) {
  return {.sig = sig, .since = 1, .note = note, .expand = expand};
}

}  // namespace tonnx
