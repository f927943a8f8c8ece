// stable_store.h - objects that stay where they are, side by side as they were made.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace tonnx {

/// Grows, and moves nothing. Unlike a deque, whose pieces hold one or two objects of some hundred bytes, it keeps many
/// of them together: a walk over them in their order is what memory is quick at.
template <class T>
class StableStore {
 public:
  StableStore() = default;
  StableStore(const StableStore&) = delete;
  StableStore& operator=(const StableStore&) = delete;
  ~StableStore() {
    for (Piece& piece : pieces_) {
      std::destroy_n(piece.objects, piece.count);
      std::allocator<T>().deallocate(piece.objects, piece.room);
    }
  }

  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (pieces_.empty() || pieces_.back().count == pieces_.back().room) {
      const size_t room = pieces_.empty() ? kFewest : std::min(2 * pieces_.back().room, kMost);
      Piece& piece = pieces_.emplace_back();
      piece.objects = std::allocator<T>().allocate(room);
      piece.room = room;
    }
    Piece& piece = pieces_.back();
    T* object = std::construct_at(piece.objects + piece.count, std::forward<Arguments>(arguments)...);
    ++piece.count;
    return *object;
  }

 private:
  static constexpr size_t kFewest = 4, kMost = 256;
  struct Piece {
    T* objects = nullptr;
    size_t count = 0, room = 0;
  };
  std::vector<Piece> pieces_;
};

}  // namespace tonnx
