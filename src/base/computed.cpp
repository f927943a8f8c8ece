// computed.cpp - makes pieces of bytes on all cores, and hands them over in order.
#include "base/computed.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace tonnx {
namespace {

/// Windows that threads fill in turn, and that go to the sink in order. Whoever hands over helps where it would have to
/// wait.
class Pipeline {
 public:
  Pipeline(const ComputedBytes& computed, size_t offset, size_t size, size_t piece)
      : computed_(computed), offset_(offset), size_(size), piece_(piece), count_((size + piece - 1) / piece) {
    const size_t threads = std::min(thread_count(), count_) - 1;
    windows_.resize(std::min(threads + 2, count_));
    try {
      while (threads_.size() < threads) threads_.emplace_back([this] { make_pieces(); });
    } catch (const std::system_error&) {
      // no more threads are to be had: who hands over makes the rest
    }
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline() {
    {
      const std::lock_guard lock(mutex_);
      claimed_ = count_;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void hand_over(const std::function<void(std::string_view)>& sink) {
    std::unique_lock lock(mutex_);
    for (; handed_ < count_;) {
      Window& window = windows_[handed_ % windows_.size()];
      while (!window.is_made && !problem_) {
        if (is_room()) {
          make_next(lock);
        } else {
          changed_.wait(lock);
        }
      }
      if (problem_) std::rethrow_exception(problem_);
      lock.unlock();
      sink(std::string_view(reinterpret_cast<const char*>(window.bytes.get()), size_of(handed_)));
      lock.lock();
      window.is_made = false;
      ++handed_;
      changed_.notify_all();
    }
  }

 private:
  struct Window {
    std::unique_ptr<uint8_t[]> bytes;
    bool is_made = false;
  };

  size_t size_of(size_t number) const { return std::min(piece_, size_ - number * piece_); }
  bool is_room() const { return claimed_ < count_ && claimed_ < handed_ + windows_.size(); }

  /// Makes one piece while others have the lock.
  void make_next(std::unique_lock<std::mutex>& lock) {
    const size_t number = claimed_++;
    Window& window = windows_[number % windows_.size()];
    lock.unlock();
    std::exception_ptr problem;
    try {
      if (!window.bytes) window.bytes = std::make_unique_for_overwrite<uint8_t[]>(std::min(piece_, size_));
      computed_.compute(offset_ + number * piece_, window.bytes.get(), size_of(number));
    } catch (...) {
      problem = std::current_exception();
    }
    lock.lock();
    if (problem) problem_ = problem;
    window.is_made = true;
    changed_.notify_all();
  }

  void make_pieces() {
    std::unique_lock lock(mutex_);
    while (claimed_ < count_) {
      if (is_room()) {
        make_next(lock);
      } else {
        changed_.wait(lock);
      }
    }
  }

  const ComputedBytes& computed_;
  size_t offset_, size_, piece_, count_;
  size_t claimed_ = 0, handed_ = 0;
  std::vector<Window> windows_;
  std::exception_ptr problem_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
};

}  // namespace

void compute_into(const Bytes& bytes, uint8_t* into) {
  if (bytes.empty()) return;
  const auto* computed = dynamic_cast<const ComputedBytes*>(bytes.owner().get());
  if (computed == nullptr) {
    std::memcpy(into, bytes.data(), bytes.size());
  } else {
    computed->compute(static_cast<size_t>(bytes.data() - computed->begin()), into, bytes.size());
  }
}

void for_each_piece(const Bytes& bytes, const std::function<void(std::string_view)>& sink) {
  const auto* computed = dynamic_cast<const ComputedBytes*>(bytes.owner().get());
  if (computed == nullptr) return sink(bytes.view());
  if (bytes.empty()) return;
  const auto first = static_cast<size_t>(bytes.data() - computed->begin());
  Pipeline(*computed, first, bytes.size(), computed->best_piece()).hand_over(sink);
}

}  // namespace tonnx
