// computed.cpp - makes pieces of bytes on all cores, and hands them over in order.
#include "base/computed.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
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

/// One run of bytes that are made, or read from a file, in pieces; `first` is the number of its first piece among all.
struct MadeRun {
  Bytes bytes;
  bool is_computed;
  size_t piece, first = 0;
  size_t count() const { return (bytes.size() + piece - 1) / piece; }
  Bytes part(size_t number) const {
    const size_t offset = (number - first) * piece;
    return bytes.slice(offset, std::min(piece, bytes.size() - offset));
  }
};

/// Nothing where the bytes may be taken as they are.
std::optional<MadeRun> find_made(const Bytes& bytes) {
  const auto* computed = dynamic_cast<const ComputedBytes*>(bytes.owner().get());
  const bool is_in_file = bytes.owner() && bytes.owner()->fd() >= 0;
  if (bytes.empty() || (computed == nullptr && (!is_in_file || bytes.size() < kSmall))) return std::nullopt;
  return MadeRun{bytes, computed != nullptr, computed != nullptr ? computed->best_piece() : kReadPiece};
}

/// Windows that threads fill in turn, and that are taken in order. Whoever takes them helps where it would have to
/// wait.
class Pipeline {
 public:
  explicit Pipeline(std::vector<MadeRun> runs) : runs_(std::move(runs)) {
    size_t size = 0;
    for (MadeRun& run : runs_) {
      run.first = count_;
      count_ += run.count();
      size += run.bytes.size();
      room_ = std::max(room_, std::min(run.piece, run.bytes.size()));
    }
    const size_t threads = size < kWorthThreads ? 0 : std::min(thread_count(), count_) - 1;
    windows_.resize(std::min(threads + 2, count_));
    try {
      while (threads_.size() < threads) threads_.emplace_back([this] { make_pieces(); });
    } catch (const std::system_error&) {
      // no more threads are to be had: who takes them makes the rest
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

  /// Hands over the next piece.
  void hand_over(const std::function<void(std::string_view)>& sink) {
    std::unique_lock lock(mutex_);
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
    sink(std::string_view(reinterpret_cast<const char*>(window.bytes.get()), window.size));
    lock.lock();
    window.is_made = false;
    ++handed_;
    lock.unlock();  // who wakes up would wait for it
    changed_.notify_all();
  }

 private:
  struct Window {
    std::unique_ptr<uint8_t[]> bytes;
    size_t size = 0;
    bool is_made = false;
  };

  bool is_room() const { return claimed_ < count_ && claimed_ < handed_ + windows_.size(); }

  /// Pieces are claimed in order, so that the run is the one before's or one that follows it.
  Bytes claim(size_t& number) {
    number = claimed_++;
    while (number >= runs_[claimed_run_].first + runs_[claimed_run_].count()) ++claimed_run_;
    return runs_[claimed_run_].part(number);
  }

  /// Makes one piece while others have the lock.
  void make_next(std::unique_lock<std::mutex>& lock) {
    size_t number = 0;
    const Bytes part = claim(number);
    const bool is_computed = runs_[claimed_run_].is_computed;
    Window& window = windows_[number % windows_.size()];
    lock.unlock();
    std::exception_ptr problem;
    try {
      if (!window.bytes) window.bytes = std::make_unique_for_overwrite<uint8_t[]>(room_);
      if (is_computed)
        compute_into(part, window.bytes.get());
      else
        read_into(part, window.bytes.get());
    } catch (...) {
      problem = std::current_exception();
    }
    lock.lock();
    if (problem) problem_ = problem;
    window.size = part.size();
    window.is_made = true;
    lock.unlock();
    changed_.notify_all();
    lock.lock();
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

  std::vector<MadeRun> runs_;
  size_t count_ = 0, room_ = 0;
  size_t claimed_ = 0, claimed_run_ = 0, handed_ = 0;
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
    copy_bytes(bytes, into);
  } else {
    computed->compute(static_cast<size_t>(bytes.data() - computed->begin()), into, bytes.size());
  }
}

void for_each_piece(std::span<const Bytes> runs, const std::function<void(std::string_view)>& sink) {
  std::vector<MadeRun> made;
  for (const Bytes& run : runs) {
    if (auto found = find_made(run)) made.push_back(std::move(*found));
  }
  std::optional<Pipeline> pipeline;
  if (!made.empty()) pipeline.emplace(std::move(made));
  for (const Bytes& run : runs) {
    const auto found = find_made(run);
    if (!found && !run.empty()) sink(run.view());
    for (size_t i = 0; found && i < found->count(); ++i) pipeline->hand_over(sink);
  }
}

void for_each_piece(const Bytes& bytes, const std::function<void(std::string_view)>& sink) {
  for_each_piece(std::span(&bytes, 1), sink);
}

}  // namespace tonnx
