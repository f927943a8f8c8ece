// one_node.h - models of one node, for every operator of the tables, made from its signature.
#pragma once
#include <vector>

#include "ir/model.h"
#include "ops/frame/op_def.h"

namespace tonnx {

std::vector<const OnnxOpEntry*> all_onnx_ops();

inline constexpr const char* kInputTypes[] = {
    "",  // nothing is known
    "float32",
    "undefined",
    "float32[n, c, h, w]",
    "float32[2, 3, 4, 5]",
    "float32[]",
    "float32[0, 3]",
    "int64[n]",
    "int64[3]",
    "bool[2, 2]",
    "string[2]",
    "float16[1, 1, 1]",
    "float32[?, ?]",
    "seq(float32[n])",
    "optional(float32)",
    "map(int64, float32)",
    "uint8[4, 4]",
    "float8_e4m3fn[2]",
    "int4[2, 2]",
    "complex64[3]",
    "sparse(float32[2])",
    "float32[1, 2, 3, 4, 5, 6, 7]",
};

/// Stand for every input but the first.
inline constexpr const char* kConstants[] = {
    "int64[1]{0}",
    "int64[1]{-1}",
    "int64[1]{9223372036854775807}",
    "int64[1]{-9223372036854775808}",
    "int64[]{1}",
    "int64[0]{}",
    "int64[4]{1, 0, -5, 1000000000000}",
    "int64[2, 2]{0, 1, 2, 3}",
    "int32[2]{0, 2}",
    "float32[]{nan}",
    "float32[1]{-0.5}",
    "float32[4]{1e+30, 0.0, -1.0, inf}",
    "float32[3, 3, 1, 1]{1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}",
    "bool[]{True}",
    "string[1]{\"a\"}",
    "uint8[1]{3}",
};

inline constexpr int kAttributeVariants = 8;

struct OneNode {
  bool all_inputs = true;
  int attribute_variant = -1;  // below zero: only what is required
};

/// The first input is of the one type; the others too, or the constant where one is given.
Model one_node(const OnnxOpEntry& entry, std::string_view type, std::string_view constant, const OneNode& options);

}  // namespace tonnx
