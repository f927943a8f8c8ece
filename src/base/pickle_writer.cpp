// pickle_writer.cpp - opcodes of pickles.
#include "base/pickle_writer.h"

namespace tonnx {
namespace {

void append_number(std::string& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

void PickleWriter::global(std::string_view module, std::string_view name) {
  bytes_ += 'c';
  bytes_ += module;
  bytes_ += '\n';
  bytes_ += name;
  bytes_ += '\n';
}

void PickleWriter::text(std::string_view value) {
  bytes_ += 'X';
  append_number(bytes_, value.size(), 4);
  bytes_ += value;
}

void PickleWriter::number(int64_t value) {
  if (value == static_cast<int32_t>(value)) {
    bytes_ += 'J';
    return append_number(bytes_, static_cast<uint64_t>(value), 4);
  }
  bytes_ += "\x8a\x08";  // TorchScript's reader takes eight bytes only
  append_number(bytes_, static_cast<uint64_t>(value), 8);
}

void PickleWriter::tuple_of(const std::vector<int64_t>& numbers) {
  mark();
  for (const int64_t each : numbers) number(each);
  tuple();
}

void PickleWriter::tensor(const PickledTensor& tensor) {
  const std::vector<int64_t>& dims = tensor.dims;
  std::vector<int64_t> dense(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) dense[i - 1] = dense[i] * (dims[i] == 0 ? 1 : dims[i]);
  const bool has_own_storage = tensor.dtype.empty();
  global("torch._utils", has_own_storage ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  mark();
  mark();
  text("storage");
  global(has_own_storage ? "torch" : "torch.storage", tensor.storage);
  text(tensor.key);
  text("cpu");
  number(tensor.count);
  tuple();
  persistent_id();
  number(0);
  tuple_of(dims);
  tuple_of(tensor.strides.empty() ? dense : tensor.strides);
  flag(tensor.requires_grad);
  global("collections", "OrderedDict");
  empty_tuple();
  reduce();
  if (!has_own_storage) global("torch", tensor.dtype);
  tuple();
  reduce();
}

}  // namespace tonnx
