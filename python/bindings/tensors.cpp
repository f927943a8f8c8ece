// tensors.cpp - the binding of tensors: buffers, descriptions, copies.
#include "tensors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>

#include "bindings.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

/// Memory that a tensor in Python is a view of: of a mapped file, or of the library's own. Kept alive by it.
struct Buffer {
  Tensor tensor;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const std::span<const std::byte> bytes = nb::inst_ptr<Buffer>(self)->tensor.bytes();
  // A mapping is private: a view may be written to, and only the pages that are written are copied.
  return PyBuffer_FillInfo(view, self, const_cast<std::byte*>(bytes.data()), static_cast<Py_ssize_t>(bytes.size()), 0,
                           flags);
}

PyType_Slot kBufferSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

void release_object(void* object) {
  const nb::gil_scoped_acquire gil;
  Py_DECREF(static_cast<PyObject*>(object));
}

DType torch_dtype(const std::string& name) {
  if (const auto dtype = find_torch_dtype(name)) return *dtype;
  throw Error(Error::Kind::Unsupported, "weights of " + name + " are not supported");
}

}  // namespace

Tensor tensor_of(nb::bytes object, bool is_own) {
  const std::span bytes(reinterpret_cast<const std::byte*>(object.c_str()), object.size());
  const std::vector<int64_t> dims{static_cast<int64_t>(bytes.size())};
  PyObject* keeper = object.inc_ref().ptr();
  return is_own ? Tensor::adopt(DType::UInt8, dims, bytes, keeper, release_object)
                : Tensor::borrow(DType::UInt8, dims, bytes, keeper, release_object);
}

Tensor borrowed_tensor(DType dtype, std::vector<int64_t> dims, const Memory& memory) {
  const auto& [address, size, keep] = memory;
  const std::span bytes(reinterpret_cast<const std::byte*>(address), size);  // NOLINT
  return Tensor::borrow(dtype, std::move(dims), bytes, keep.inc_ref().ptr(), release_object);
}

Tensor tensor_of(const Memory& memory) {
  return borrowed_tensor(DType::UInt8, {static_cast<int64_t>(std::get<1>(memory))}, memory);
}

nb::tuple describe_tensor(const Tensor& tensor) {
  nb::list dims;
  for (const int64_t dim : tensor.dims()) dims.append(dim);
  const std::string dtype(torch_name_of(tensor.dtype()));
  if (tensor.bytes().empty()) return nb::make_tuple(nb::none(), 0, dtype, nb::tuple(dims));
  return nb::make_tuple(nb::cast(Buffer{tensor}), 0, dtype, nb::tuple(dims));
}

nb::tuple source_and_state_of(ModuleCode code) {
  nb::list entries, copies;
  std::map<std::string, nb::list> tied;
  for (const auto& [name, of] : code.tied) tied[of].append(name);
  for (const ModuleWeight& weight : code.state) {
    nb::list names;
    names.append(weight.name);
    if (const auto others = tied.find(weight.name); others != tied.end()) names.extend(others->second);
    entries.append(nb::make_tuple(names, describe_tensor(weight.tensor), weight.transposed, weight.trainable));
  }
  copies.append(nb::cast(std::move(code.copies)));
  return nb::make_tuple(code.source, entries, copies);
}

std::vector<ModuleWeight> weights_of(const StoredTensors& entries) {
  std::vector<ModuleWeight> weights;
  for (const nb::tuple& entry : entries) {
    const DType dtype = torch_dtype(nb::cast<std::string>(entry[1]));
    weights.push_back({nb::cast<std::string>(entry[0]),
                       borrowed_tensor(dtype, nb::cast<std::vector<int64_t>>(entry[2]), nb::cast<Memory>(entry[3])),
                       nb::cast<bool>(entry[4]), nb::cast<bool>(entry[5])});
  }
  return weights;
}

void bind_tensors(nb::module_& m) {
  nb::class_<Buffer>(m, "Buffer", nb::type_slots(kBufferSlots));
  nb::class_<WeightCopies>(m, "Copies").def("wait", &WeightCopies::wait, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace tonnx::python_binding
