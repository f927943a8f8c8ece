// dtype.cpp - the element types of torch.export.
#include "formats/pt2/dtype.h"

#include "base/error.h"

namespace tonnx {

DType dtype_of_pt2(int64_t number) {
  switch (number) {
    case 1: return DType::UInt8;
    case 2: return DType::Int8;
    case 3: return DType::Int16;
    case 4: return DType::Int32;
    case 5: return DType::Int64;
    case 6: return DType::Float16;
    case 7: return DType::Float32;
    case 8: return DType::Float64;
    case 9: fail_unsupported("tensors of type complex32 are not supported");
    case 10: return DType::Complex64;
    case 11: return DType::Complex128;
    case 12: return DType::Bool;
    case 13: return DType::BFloat16;
    case 28: return DType::UInt16;
    case 29: return DType::Float8E4M3FN;
    case 30: return DType::Float8E5M2;
    case 31: return DType::Float8E4M3FNUZ;
    case 32: return DType::Float8E5M2FNUZ;
    case 33: return DType::Float8E8M0;
    case 34: return DType::UInt32;
    case 35: return DType::UInt64;
    default: fail_invalid("{} is not the number of an element type", number);
  }
}

int pt2_number_of(DType dtype) {
  switch (dtype) {
    case DType::UInt8: return 1;
    case DType::Int8: return 2;
    case DType::Int16: return 3;
    case DType::Int32: return 4;
    case DType::Int64: return 5;
    case DType::Float16: return 6;
    case DType::Float32: return 7;
    case DType::Float64: return 8;
    case DType::Complex64: return 10;
    case DType::Complex128: return 11;
    case DType::Bool: return 12;
    case DType::BFloat16: return 13;
    case DType::UInt16: return 28;
    case DType::Float8E4M3FN: return 29;
    case DType::Float8E5M2: return 30;
    case DType::Float8E4M3FNUZ: return 31;
    case DType::Float8E5M2FNUZ: return 32;
    case DType::Float8E8M0: return 33;
    case DType::UInt32: return 34;
    case DType::UInt64: return 35;
    default: fail_unsupported("PyTorch has no tensors of {}", name_of(dtype));
  }
}

}  // namespace tonnx
