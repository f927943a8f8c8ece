// cast.h - ONNX's change of the element type, which other operators end with.
#pragma once
#include <string>

#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

struct CastOptions {
  bool saturate = true;
  std::string round_mode = "up";
};

/// `x` in another element type, as Cast has it. Types smaller than a byte live in the type that holds them.
Value* converted(AtenBuilder& aten, Value* x, DType from, DType to, const CastOptions& options = {});

}  // namespace tonnx
