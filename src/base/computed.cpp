// computed.cpp - makes pieces of bytes on all cores, and hands them over in order.
#include "base/computed.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"

namespace tonnx {
namespace {

constexpr size_t kSmall = size_t{1} << 16;         // of what lies in a file: below this its mapping is as fast
constexpr size_t kReadPiece = size_t{1} << 18;     // few enough bytes to stay in a cache until they are handed over
constexpr size_t kWorthThreads = size_t{1} << 21;  // below this they are made sooner than a thread

/// Windows that threads fill in turn, and that go to the sink in order. Whoever hands over helps where it would have to
/// wait.
class Pipeline {
 public:
  /// Fills memory with that many bytes, from an offset on.
  using Make = std::function<void(size_t offset, uint8_t* into, size_t size)>;

  Pipeline(Make make, size_t size, size_t piece)
      : make_(std::move(make)), size_(size), piece_(piece), count_((size + piece - 1) / piece) {
    const size_t threads = size < kWorthThreads ? 0 : std::min(thread_count(), count_) - 1;
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
      make_(number * piece_, window.bytes.get(), size_of(number));
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

  Make make_;
  size_t size_, piece_, count_;
  size_t claimed_ = 0, handed_ = 0;
  std::vector<Window> windows_;
  std::exception_ptr problem_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
};

/// Not through the mapping: a file that was cut short has no pages there, and reading it says so.
void read_into(const Bytes& bytes, uint8_t* into) {
  const auto first = static_cast<off_t>(bytes.data() - bytes.owner()->begin());
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = pread(bytes.owner()->fd(), into + done, bytes.size() - done, first + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::BadFile, "a file cannot be read any more: {}", std::strerror(errno));
    if (n == 0) fail(ErrorKind::BadFile, "a file became shorter while it was read");
    done += static_cast<size_t>(n);
  }
}

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
  const bool is_in_file = bytes.owner() && bytes.owner()->fd() >= 0;
  if (computed == nullptr && (!is_in_file || bytes.size() < kSmall)) return sink(bytes.view());
  if (bytes.empty()) return;
  const auto make = [&](size_t offset, uint8_t* into, size_t size) {
    const Bytes part = bytes.slice(offset, size);
    return computed != nullptr ? compute_into(part, into) : read_into(part, into);
  };
  Pipeline(make, bytes.size(), computed != nullptr ? computed->best_piece() : kReadPiece).hand_over(sink);
}

}  // namespace tonnx
