// dtype_test.cpp - the table of element types against the numbers of onnx.proto.
#include "ir/dtype.h"

#include "checks.h"

namespace tonnx {
namespace {

struct Row {
  int64_t number;
  const char* name;
  int bits;
  char kind;
};

// TensorProto.DataType of ONNX 1.23, and the width of one element.
constexpr Row kStandard[] = {
    {1, "float32", 32, 'f'},       {2, "uint8", 8, 'u'},
    {3, "int8", 8, 'i'},           {4, "uint16", 16, 'u'},
    {5, "int16", 16, 'i'},         {6, "int32", 32, 'i'},
    {7, "int64", 64, 'i'},         {8, "string", 0, 's'},
    {9, "bool", 8, 'b'},           {10, "float16", 16, 'f'},
    {11, "float64", 64, 'f'},      {12, "uint32", 32, 'u'},
    {13, "uint64", 64, 'u'},       {14, "complex64", 64, 'c'},
    {15, "complex128", 128, 'c'},  {16, "bfloat16", 16, 'f'},
    {17, "float8_e4m3fn", 8, 'f'}, {18, "float8_e4m3fnuz", 8, 'f'},
    {19, "float8_e5m2", 8, 'f'},   {20, "float8_e5m2fnuz", 8, 'f'},
    {21, "uint4", 4, 'u'},         {22, "int4", 4, 'i'},
    {23, "float4_e2m1fn", 4, 'f'}, {24, "float8_e8m0fnu", 8, 'f'},
    {25, "uint2", 2, 'u'},         {26, "int2", 2, 'i'},
    {27, "float6_e2m3fn", 6, 'f'}, {28, "float6_e3m2fn", 6, 'f'},
};

TEST(DType, NumbersNamesAndWidthsAreThoseOfOnnx) {
  EXPECT_EQ(std::size(kStandard) + 1, static_cast<size_t>(kDTypeCount));
  for (const Row& row : kStandard) {
    const auto dtype = find_dtype(row.number);
    ASSERT_TRUE(dtype) << row.number;
    EXPECT_EQ(name_of(*dtype), row.name);
    EXPECT_EQ(info(*dtype).dtype, *dtype);
    EXPECT_EQ(info(*dtype).bits, row.bits) << row.name;
    EXPECT_EQ(info(*dtype).kind, row.kind) << row.name;
    EXPECT_EQ(find_dtype(std::string_view(row.name)), dtype);
  }
}

TEST(DType, OtherNumbersAndNamesAreNone) {
  for (const int64_t number : {int64_t{0}, int64_t{-1}, int64_t{29}, INT64_MAX, INT64_MIN})
    EXPECT_FALSE(find_dtype(number));
  for (const std::string_view name : {"", "undefined", "float", "Float32"}) EXPECT_FALSE(find_dtype(name));
}

TEST(DType, WhatPyTorchHoldsIsAtLeastAByteAndCanHoldIt) {
  for (const Row& row : kStandard) {
    const DType dtype = *find_dtype(row.number);
    const DType wide = widened(dtype);
    EXPECT_EQ(info(wide).kind, row.kind) << row.name;
    if (row.bits > 0) EXPECT_GE(info(wide).bits, std::max(8, row.bits)) << row.name;
    if (row.bits >= 8) EXPECT_EQ(wide, dtype) << row.name;
  }
}

TEST(DType, Sets) {
  constexpr DTypeSet set = dtype_set(DType::Float32, DType::Float6E3M2);
  EXPECT_TRUE(contains(set, DType::Float32));
  EXPECT_TRUE(contains(set, DType::Float6E3M2));
  EXPECT_FALSE(contains(set, DType::Int8));
  EXPECT_FALSE(contains(set, DType::Undefined));
}

}  // namespace
}  // namespace tonnx
