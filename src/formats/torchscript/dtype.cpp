// dtype.cpp - the element types of c10.
#include "formats/torchscript/dtype.h"

#include <algorithm>

#include "base/error.h"

namespace tonnx::torchscript {
namespace {

struct Row {
  DType dtype;
  int number;
  std::string_view storage;
};

constexpr Row kRows[] = {
    {DType::UInt8, 0, "ByteStorage"},
    {DType::Int8, 1, "CharStorage"},
    {DType::Int16, 2, "ShortStorage"},
    {DType::Int32, 3, "IntStorage"},
    {DType::Int64, 4, "LongStorage"},
    {DType::Float16, 5, "HalfStorage"},
    {DType::Float32, 6, "FloatStorage"},
    {DType::Float64, 7, "DoubleStorage"},
    {DType::Complex64, 9, "ComplexFloatStorage"},
    {DType::Complex128, 10, "ComplexDoubleStorage"},
    {DType::Bool, 11, "BoolStorage"},
    {DType::BFloat16, 15, "BFloat16Storage"},
    {DType::Float8E5M2, 23, "Float8_e5m2Storage"},
    {DType::Float8E4M3FN, 24, "Float8_e4m3fnStorage"},
    {DType::Float8E5M2FNUZ, 25, "Float8_e5m2fnuzStorage"},
    {DType::Float8E4M3FNUZ, 26, "Float8_e4m3fnuzStorage"},
    {DType::UInt16, 27, "UInt16Storage"},
    {DType::UInt32, 28, "UInt32Storage"},
    {DType::UInt64, 29, "UInt64Storage"},
    {DType::Float8E8M0, 44, "Float8_e8m0fnuStorage"},
};

const Row& row_of(DType dtype) {
  const DType held = widened(dtype);
  const auto* at = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.dtype == held; });
  if (at == std::end(kRows)) fail_unsupported("PyTorch has no tensors of {}", name_of(dtype));
  return *at;
}

}  // namespace

int number_of(DType dtype) { return row_of(dtype).number; }
DType dtype_of(int64_t number) {
  const auto* at =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.number == number; });
  if (at == std::end(kRows)) fail_unsupported("the element type of number {} is not known", number);
  return at->dtype;
}
std::string_view storage_of(DType dtype) { return row_of(dtype).storage; }

}  // namespace tonnx::torchscript
