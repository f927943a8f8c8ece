// type_reader.h - TypeProto to types.
#pragma once
#include "base/bytes.h"
#include "ir/type.h"

namespace tonnx::onnx {

inline constexpr int kMaxNesting = 64;  // of subgraphs, and of types; deeper ones are refused

Type read_type(const Bytes& message, int depth = 0);

/// The name and the type of a ValueInfoProto.
std::pair<std::string, Type> read_value_info(const Bytes& message);

}  // namespace tonnx::onnx
