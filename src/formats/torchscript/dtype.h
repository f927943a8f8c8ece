// dtype.h - element types as TorchScript writes them: the numbers of c10, and the names of storages.
#pragma once
#include <string_view>

#include "ir/dtype.h"

namespace tonnx::torchscript {

/// Throws Unsupported for types that PyTorch does not have.
int number_of(DType dtype);
/// `FloatStorage`.
std::string_view storage_of(DType dtype);

}  // namespace tonnx::torchscript
