// computed.h - bytes that are made when they are written, so that nobody has to hold them.
#pragma once
#include <algorithm>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tonnx {

/// Owns bytes that do not exist: what lies at its addresses is what they are made from. Only those who write bytes to a
/// file, or copy them, can have them; whoever looks at elements of weights asks is_computed first.
class ComputedBytes : public ByteOwner {
 public:
  /// The bytes from `offset` on. Offsets and sizes are multiples of 8, but for the last.
  virtual void compute(size_t offset, uint8_t* into, size_t size) const = 0;

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

/// Hands the bytes over in pieces, made where they must be.
template <class Sink>
void for_each_piece(const Bytes& bytes, Sink&& sink) {
  const auto* computed = dynamic_cast<const ComputedBytes*>(bytes.owner().get());
  if (computed == nullptr) return sink(bytes.view());
  constexpr size_t kPiece = size_t{1} << 18;
  std::vector<uint8_t> piece(std::min(kPiece, bytes.size()));
  const auto first = static_cast<size_t>(bytes.data() - computed->begin());
  for (size_t done = 0; done < bytes.size(); done += kPiece) {
    const size_t size = std::min(kPiece, bytes.size() - done);
    computed->compute(first + done, piece.data(), size);
    sink(std::string_view(reinterpret_cast<const char*>(piece.data()), size));
  }
}

}  // namespace tonnx
