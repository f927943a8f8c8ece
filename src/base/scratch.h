// scratch.h - room for large results, which the system may move out of memory.
#pragma once
#include "base/bytes.h"

namespace tonnx {

/// Bytes to be filled once. Large ones, past a few that may stay in memory, lie in a temporary file without a name,
/// where one can be had.
class Scratch {
 public:
  explicit Scratch(size_t size);
  uint8_t* data() { return data_; }
  /// The file that they lie in, or -1.
  int fd() const { return owner_->fd(); }
  /// Hands the bytes over.
  Bytes done();

 private:
  std::shared_ptr<const ByteOwner> owner_;
  uint8_t* data_ = nullptr;
  size_t size_;
};

}  // namespace tonnx
