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

void PickleWriter::tensor(std::string_view storage, std::string_view key, int64_t count,
                          const std::vector<int64_t>& dims, bool requires_grad) {
  global("torch._utils", "_rebuild_tensor_v2");
  mark();
  mark();
  text("storage");
  global("torch", storage);
  text(key);
  text("cpu");
  number(count);
  tuple();
  persistent_id();
  number(0);
  mark();
  for (const int64_t dim : dims) number(dim);
  tuple();
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * (dims[i] == 0 ? 1 : dims[i]);
  mark();
  for (const int64_t stride : strides) number(stride);
  tuple();
  flag(requires_grad);
  global("collections", "OrderedDict");
  empty_tuple();
  reduce();
  tuple();
  reduce();
}

}  // namespace tonnx
