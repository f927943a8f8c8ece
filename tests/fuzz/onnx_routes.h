// onnx_routes.h - everything that is done with an ONNX file, from its bytes.
#pragma once
#include <string>

namespace tonnx::fuzz {

/// Reads, writes, simplifies, infers and converts it, at an opset and with options that `choice` picks; false where it
/// was refused. Throws what no file may cause.
bool convert_all_ways(const std::string& bytes, unsigned choice);

}  // namespace tonnx::fuzz
