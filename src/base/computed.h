// computed.h - bytes that are made when they are written, so that nobody has to hold them.
#pragma once
#include <algorithm>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tonnx {

/// Owns bytes that do not exist: what lies at its addresses is what they are made from. Only those who write bytes to a
/// file, or copy them, can have them; whoever looks at elements of weights asks is_computed first.
class ComputedBytes : public ByteOwner {
 public:
  /// The bytes from `offset` on, of whole elements. Several threads call it at once.
  virtual void compute(size_t offset, uint8_t* into, size_t size) const = 0;
  /// How many bytes are best made at a time: a multiple of 16.
  virtual size_t best_piece() const { return size_t{1} << 18; }

  /// All of them, made when they are first asked for, and kept: for those who must look at them in memory.
  const std::vector<uint8_t>& in_memory() const {
    std::call_once(is_made_, [this] {
      made_.resize(size());
      compute(0, made_.data(), made_.size());
    });
    return made_;
  }

 private:
  mutable std::once_flag is_made_;
  mutable std::vector<uint8_t> made_;
};

/// Whether what lies at these addresses is not what is meant: nobody may look at it then.
inline bool is_computed(const Bytes& bytes) {
  return dynamic_cast<const ComputedBytes*>(bytes.owner().get()) != nullptr;
}

/// Makes the bytes, or copies them, into memory that has room for them.
void compute_into(const Bytes& bytes, uint8_t* into);

/// Hands the bytes over in order, in pieces where they must be made, or lie in a file: those are made and read by
/// threads of their own, while others before them are handed over. No more than a piece or two for each core is held.
void for_each_piece(const Bytes& bytes, const std::function<void(std::string_view)>& sink);
/// The same of runs of bytes that follow each other, by the same threads. Runs that lie in memory are handed over
/// whole.
void for_each_piece(std::span<const Bytes> runs, const std::function<void(std::string_view)>& sink);

}  // namespace tonnx
