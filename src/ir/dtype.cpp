// dtype.cpp - the table of element types.
#include "ir/dtype.h"

#include <array>

namespace tonnx {
namespace {

using enum DType;
constexpr std::array<DTypeInfo, kDTypeCount> kTypes{{
    {Undefined, "undefined", 0, '?', "", ""},
    {Float32, "float32", 32, 'f', "float32", "F32"},
    {UInt8, "uint8", 8, 'u', "uint8", "U8"},
    {Int8, "int8", 8, 'i', "int8", "I8"},
    {UInt16, "uint16", 16, 'u', "uint16", "U16"},
    {Int16, "int16", 16, 'i', "int16", "I16"},
    {Int32, "int32", 32, 'i', "int32", "I32"},
    {Int64, "int64", 64, 'i', "int64", "I64"},
    {String, "string", 0, 's', "", ""},
    {Bool, "bool", 8, 'b', "bool", "BOOL"},
    {Float16, "float16", 16, 'f', "float16", "F16"},
    {Float64, "float64", 64, 'f', "float64", "F64"},
    {UInt32, "uint32", 32, 'u', "uint32", "U32"},
    {UInt64, "uint64", 64, 'u', "uint64", "U64"},
    {Complex64, "complex64", 64, 'c', "complex64", "C64"},
    {Complex128, "complex128", 128, 'c', "complex128", ""},
    {BFloat16, "bfloat16", 16, 'f', "bfloat16", "BF16"},
    {Float8E4M3FN, "float8_e4m3fn", 8, 'f', "float8_e4m3fn", "F8_E4M3"},
    {Float8E4M3FNUZ, "float8_e4m3fnuz", 8, 'f', "float8_e4m3fnuz", "F8_E4M3FNUZ"},
    {Float8E5M2, "float8_e5m2", 8, 'f', "float8_e5m2", "F8_E5M2"},
    {Float8E5M2FNUZ, "float8_e5m2fnuz", 8, 'f', "float8_e5m2fnuz", "F8_E5M2FNUZ"},
    {UInt4, "uint4", 4, 'u', "", ""},
    {Int4, "int4", 4, 'i', "", ""},
    {Float4E2M1, "float4_e2m1fn", 4, 'f', "", ""},
    {Float8E8M0, "float8_e8m0fnu", 8, 'f', "float8_e8m0fnu", "F8_E8M0"},
    {UInt2, "uint2", 2, 'u', "", ""},
    {Int2, "int2", 2, 'i', "", ""},
    {Float6E2M3, "float6_e2m3fn", 6, 'f', "", ""},
    {Float6E3M2, "float6_e3m2fn", 6, 'f', "", ""},
}};

}  // namespace

const DTypeInfo& info(DType dtype) { return kTypes[static_cast<size_t>(dtype)]; }

std::optional<DType> find_dtype(int64_t onnx_number) {
  if (onnx_number <= 0 || onnx_number >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(onnx_number);
}

std::optional<DType> find_dtype(std::string_view name) {
  for (const DTypeInfo& type : kTypes) {
    if (type.name == name && type.dtype != Undefined) return type.dtype;
  }
  return std::nullopt;
}

DType widened(DType dtype) {
  switch (dtype) {
    case UInt4:
    case UInt2: return UInt8;
    case Int4:
    case Int2: return Int8;
    case Float4E2M1:
    case Float6E2M3:
    case Float6E3M2: return Float32;
    default: return dtype;
  }
}

}  // namespace tonnx
