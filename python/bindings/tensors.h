// tensors.h - tensors of the library as Python's, and Python's as the library's, without a copy where none is asked
// for.
#pragma once
#include <nanobind/nanobind.h>
#include <tonnx/module.h>

#include <string>
#include <tuple>
#include <vector>

namespace tonnx::python_binding {

/// (address, size, object that keeps it alive)
using Memory = std::tuple<uintptr_t, size_t, nanobind::object>;

/// Bytes of a Python object, which they keep alive. They are the library's own where nobody else has the object.
Tensor tensor_of(nanobind::bytes object, bool is_own = false);
Tensor tensor_of(const Memory& memory);

/// Bytes of a Python object, as elements of a type.
Tensor borrowed_tensor(DType dtype, std::vector<int64_t> dims, const Memory& memory);

/// (buffer, offset, dtype, sizes): what torch.frombuffer needs. Nothing to map where there are no elements.
nanobind::tuple describe_tensor(const Tensor& tensor);

/// The source of a module, the entries of its state dict (name, tensor, transposed, trainable), and the copies that
/// must be there before anybody looks at them.
nanobind::tuple source_and_state_of(ModuleCode code);

/// Weights of a module in Python: (name, dtype, sizes, memory, transposed, trainable).
using StoredTensors = std::vector<nanobind::tuple>;
std::vector<ModuleWeight> weights_of(const StoredTensors& entries);

}  // namespace tonnx::python_binding
