// tensors.cpp - the binding of tensors: buffers, descriptions, copies.
#include "tensors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/budget.h"
#include "base/computed.h"
#include "base/error.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

/// Memory that tensors in Python are views of: a mapped file, or a buffer of ours. Kept alive by them.
struct Buffer {
  std::shared_ptr<const ByteOwner> owner;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* buffer = nb::inst_ptr<Buffer>(self);
  // A mapping is private: a view may be written to, and only the pages that are written are copied.
  return PyBuffer_FillInfo(view, self, const_cast<uint8_t*>(buffer->owner->begin()),
                           static_cast<Py_ssize_t>(buffer->owner->size()), 0, flags);
}

PyType_Slot kBufferSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

/// Memory that weights lie in.
class UsedMemory {
 public:
  /// Adds a part; true where none of it was there.
  bool add(const Bytes& bytes) {
    const uint8_t *begin = bytes.data(), *end = begin + bytes.size();
    const auto next = ends_.lower_bound(begin);
    const bool is_free =
        (next == ends_.end() || next->first >= end) && (next == ends_.begin() || std::prev(next)->second <= begin);
    if (is_free) ends_.emplace_hint(next, begin, end);
    return is_free;
  }

 private:
  std::map<const uint8_t*, const uint8_t*> ends_;  // by their beginning; no two overlap
};

DType torch_dtype(const std::string& name) {
  for (int i = 1; i < kDTypeCount; ++i) {
    if (info(static_cast<DType>(i)).torch == name) return static_cast<DType>(i);
  }
  fail_unsupported("weights of {} are not supported", name);
}

}  // namespace

Bytes bytes_of(nb::bytes object, bool is_own) {
  const auto owner = std::make_shared<const PythonBytes>(std::move(object), is_own);
  return {owner, owner->begin(), owner->size()};
}

Bytes bytes_of(const std::tuple<uintptr_t, size_t, nb::object>& memory) {
  const auto& [address, size, keep] = memory;
  const auto owner = std::make_shared<const PythonMemory>(address, size, keep);
  return {owner, owner->begin(), owner->size()};
}

nb::object BufferTable::buffer_of(const Bytes& bytes) {
  nb::object& object = known_[bytes.owner().get()];
  if (!object.is_valid()) object = nb::cast(Buffer{bytes.owner()});
  return object;
}

nb::tuple describe_tensor(const Tensor& tensor, BufferTable& buffers) {
  const Bytes& data = tensor.data;
  nb::list dims;
  for (const int64_t dim : tensor.dims) dims.append(dim);
  const std::string dtype(info(tensor.dtype).torch);
  if (data.empty()) return nb::make_tuple(nb::none(), 0, dtype, nb::tuple(dims));
  return nb::make_tuple(buffers.buffer_of(data), data.data() - data.owner()->begin(), dtype, nb::tuple(dims));
}

std::unique_ptr<Copies> begin_copies(const Graph& graph) {
  std::vector<Bytes> sources;
  UsedMemory used;
  for (const Value* value : graph.initializers()) {
    if (!value->constant) continue;
    const Bytes& data = value->constant->data;
    if (!data.empty() && !data.owner()->is_own() && !is_computed(data) && used.add(data)) sources.push_back(data);
  }
  return std::make_unique<Copies>(std::move(sources));
}

PythonState state_of(const std::vector<StateTensor>& state, bool mapped, std::unique_ptr<Copies> begun) {
  std::vector<Tensor> tensors;
  std::vector<size_t> foreign;  // those that are to be copied
  std::vector<Bytes> sources;
  UsedMemory used;
  for (const StateTensor& entry : state) {
    tensors.push_back(*entry.tensor);
    const Bytes& data = entry.tensor->data;
    if (mapped || data.empty()) continue;
    const bool is_first = used.add(data);
    // a small file can have many weights that lie at the same place
    if (!is_first) budget().take(Resource::Memory, static_cast<int64_t>(data.size()));
    if (is_first && data.owner()->is_own()) continue;
    if (const auto copy = is_first && begun ? begun->place_of(data) : std::nullopt) {
      tensors.back().data = *copy;
      continue;
    }
    foreign.push_back(tensors.size() - 1);
    sources.push_back(data);
  }
  auto copies = std::make_unique<Copies>(std::move(sources));
  for (size_t i = 0; i < foreign.size(); ++i) tensors[foreign[i]].data = copies->places()[i];
  PythonState result;
  if (begun) result.copies.append(nb::cast(std::move(begun)));
  result.copies.append(nb::cast(std::move(copies)));
  BufferTable buffers;
  for (size_t i = 0; i < state.size(); ++i) {
    result.entries.append(
        nb::make_tuple(state[i].name, describe_tensor(tensors[i], buffers), state[i].transposed, state[i].trainable));
  }
  return result;
}

std::vector<StateTensor> state_tensors(const std::vector<nb::tuple>& entries) {
  std::vector<StateTensor> state;
  for (const nb::tuple& entry : entries) {
    auto tensor = std::make_shared<Tensor>();
    tensor->dtype = torch_dtype(nb::cast<std::string>(entry[1]));
    tensor->dims = nb::cast<std::vector<int64_t>>(entry[2]);
    tensor->data = bytes_of(nb::cast<std::tuple<uintptr_t, size_t, nb::object>>(entry[3]));
    state.push_back({nb::cast<std::string>(entry[0]), tensor, nb::cast<bool>(entry[4]), nb::cast<bool>(entry[5])});
  }
  return state;
}

void bind_tensors(nb::module_& m) {
  nb::class_<Buffer>(m, "Buffer", nb::type_slots(kBufferSlots));
  nb::class_<Copies>(m, "Copies").def("wait", &Copies::wait, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace tonnx::python_binding
