// dtype.h - the numbers that torch.export writes for element types; they are not those of c10, which TorchScript has.
#pragma once
#include <cstdint>

#include "ir/dtype.h"

namespace tonnx {

/// Throws Unsupported for the types that no ONNX type holds, InvalidModel for numbers that mean nothing.
DType dtype_of_pt2(int64_t number);
/// Throws Unsupported for types that PyTorch does not have.
int pt2_number_of(DType dtype);

}  // namespace tonnx
