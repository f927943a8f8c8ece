// copies.h - memory of our own for bytes that lie in files, or that belong to others.
#pragma once
#include <atomic>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"

namespace tonnx {

/// Copies of bytes, made by threads of their own while the caller does something else.
class Copies {
 public:
  /// Throws bad_alloc where there is no room for all of them.
  explicit Copies(std::vector<Bytes> sources);
  /// Waits for the threads; the copies stay.
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  /// Where the copy of each source is, at a multiple of 64 bytes. Its memory is given back when nobody has it any more.
  const std::vector<Bytes>& places() const { return places_; }
  /// Where the copy of a source is, if it was one.
  std::optional<Bytes> place_of(const Bytes& source) const;
  /// Until this returns the copies are not there. Lets go of the sources.
  void wait();

 private:
  struct Piece {
    size_t source, offset, size;
  };
  void copy_pieces();

  std::vector<Bytes> sources_, places_;
  std::unordered_map<const uint8_t*, size_t> index_;  // of sources, by where they begin
  std::vector<Piece> pieces_;
  std::atomic<size_t> next_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace tonnx
