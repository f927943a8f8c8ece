// pickle_writer.h - the few opcodes that pickles of tensors and of TorchScript's modules consist of, protocol 2.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx {

/// A tensor over a part of a storage, as torch.save describes it.
struct PickledTensor {
  std::string_view storage;  // FloatStorage and so on
  std::string_view key;      // the name of the storage's file
  int64_t count = 0;         // elements of the storage
  std::vector<int64_t> dims;
  std::vector<int64_t> strides = {};  // none: dense
  bool requires_grad = false;
  std::string_view dtype = {};  // `uint16`: a type without a storage of its own, in a storage of bytes
};

class PickleWriter {
 public:
  PickleWriter() { bytes_ = "\x80\x02"; }

  void global(std::string_view module, std::string_view name);
  void text(std::string_view value);
  void number(int64_t value);
  void flag(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void mark() { bytes_ += '('; }
  void tuple() { bytes_ += 't'; }  // of what is behind the mark
  void empty_dict() { bytes_ += '}'; }
  void empty_tuple() { bytes_ += ')'; }
  void set_items() { bytes_ += 'u'; }  // keys and values behind the mark go to the dict in front of it
  void reduce() { bytes_ += 'R'; }
  void new_object() { bytes_ += '\x81'; }  // of the class and the arguments on top
  void build() { bytes_ += 'b'; }          // gives the object its state, which is on top
  void persistent_id() { bytes_ += 'Q'; }
  void tuple_of(const std::vector<int64_t>& numbers);

  void tensor(const PickledTensor& tensor);
  /// The same, dense.
  void tensor(std::string_view storage, std::string_view key, int64_t count, const std::vector<int64_t>& dims,
              bool requires_grad = false) {
    tensor({.storage = storage, .key = key, .count = count, .dims = dims, .requires_grad = requires_grad});
  }

  /// The whole, ended.
  std::string done() && {
    bytes_ += '.';
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

}  // namespace tonnx
