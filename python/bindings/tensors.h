// tensors.h - tensors of the core as Python's, and Python's as the core's, without a copy where none is asked for.
#pragma once
#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/copies.h"
#include "formats/state_tensor.h"
#include "ir/graph.h"

namespace tonnx::python_binding {

/// Bytes of a Python object, which they keep alive. They are our own where nobody else has the object.
class PythonBytes : public ByteOwner {
 public:
  explicit PythonBytes(nanobind::bytes object, bool is_own = false) : object_(std::move(object)), is_own_(is_own) {}
  ~PythonBytes() override {
    const nanobind::gil_scoped_acquire gil;
    object_.reset();
  }
  bool is_own() const override { return is_own_; }
  const uint8_t* begin() const override { return reinterpret_cast<const uint8_t*>(object_.c_str()); }
  size_t size() const override { return object_.size(); }

 private:
  nanobind::bytes object_;
  bool is_own_;
};

/// Memory of a tensor of Python's, kept alive by an object.
class PythonMemory : public ByteOwner {
 public:
  PythonMemory(uintptr_t address, size_t size, nanobind::object keep)
      : data_(reinterpret_cast<const uint8_t*>(address)), size_(size), keep_(std::move(keep)) {}  // NOLINT
  ~PythonMemory() override {
    const nanobind::gil_scoped_acquire gil;
    keep_.reset();
  }
  const uint8_t* begin() const override { return data_; }
  size_t size() const override { return size_; }

 private:
  const uint8_t* data_;
  size_t size_;
  nanobind::object keep_;
};

Bytes bytes_of(nanobind::bytes object, bool is_own = false);
/// (address, size, object that keeps it alive)
Bytes bytes_of(const std::tuple<uintptr_t, size_t, nanobind::object>& memory);

/// The buffers that the tensors of one conversion lie in, each handed out once.
class BufferTable {
 public:
  nanobind::object buffer_of(const Bytes& bytes);

 private:
  std::unordered_map<const ByteOwner*, nanobind::object> known_;
};

/// (buffer, offset, dtype, sizes): what torch.frombuffer needs. Nothing to map where there are no elements.
nanobind::tuple describe_tensor(const Tensor& tensor, BufferTable& buffers);

/// The entries of a state dict in Python, and the copies that must be there before anybody looks at them.
struct PythonState {
  nanobind::list entries;  // (name, tensor, transposed, trainable)
  nanobind::list copies;
};

/// Copies what most likely are the weights of a model, while others look at it: the constants of its graph that lie in
/// files.
std::unique_ptr<Copies> begin_copies(const Graph& graph);

/// `mapped`: the weights are views of the file. Otherwise each is in memory of its own, copied now unless that was
/// begun.
PythonState state_of(const std::vector<StateTensor>& state, bool mapped, std::unique_ptr<Copies> begun);

/// Weights of a module in Python, as they are written to files: (name, dtype, sizes, memory, transposed, trainable).
std::vector<StateTensor> state_tensors(const std::vector<nanobind::tuple>& entries);

void bind_tensors(nanobind::module_& m);

}  // namespace tonnx::python_binding
