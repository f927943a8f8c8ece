// note.h - why some of PyTorch's linear algebra cannot be raised.
#pragma once
#include <string_view>

namespace tonnx {

inline constexpr std::string_view kNoOperator = "ONNX has no operator for it";

}  // namespace tonnx
