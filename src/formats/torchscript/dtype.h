// dtype.h - element types as TorchScript writes them: the numbers of c10, and the names of storages.
#pragma once
#include <cstdint>
#include <string_view>

#include "ir/dtype.h"

namespace tonnx::torchscript {

/// Throws Unsupported for types that PyTorch does not have.
int number_of(DType dtype);
/// Throws Unsupported for a number that is none of a type that is known.
DType dtype_of(int64_t number);
/// `FloatStorage`.
std::string_view storage_of(DType dtype);

}  // namespace tonnx::torchscript
