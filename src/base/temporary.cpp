// temporary.cpp - notes the names of temporary files where a signal handler can read them.
#include "base/temporary.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace tonnx {
namespace {

constexpr size_t kSlots = 256;
constexpr size_t kLongestPath = 4096;  // of a path, as the system has it

enum SlotState { kFree, kReserved, kNoted };
struct Slot {
  std::atomic<int> state{kFree};
  char path[kLongestPath] = {};
};
constinit Slot slots[kSlots];  // no memory is asked for where a signal handler looks, and none is touched before

int note(const std::string& path) {
  if (path.size() >= kLongestPath) return -1;
  for (size_t i = 0; i < kSlots; ++i) {
    int free = kFree;
    if (!slots[i].state.compare_exchange_strong(free, kReserved)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].state = kNoted;
    return static_cast<int>(i);
  }
  return -1;
}

/// The files of a folder, by calls that a signal handler may make: opendir asks for memory.
void empty_folder(int folder) noexcept {
  struct Entry {
    ino64_t inode;
    off64_t next;
    uint16_t size;
    uint8_t type;
    char name[1];
  };
  alignas(Entry) char buffer[4096];
  for (int64_t rounds = 0; rounds < 1000; ++rounds) {  // of those that removing may have moved
    const int64_t size = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (size <= 0) return;
    for (int64_t at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const Entry*>(buffer + at);
      unlinkat(folder, entry->name, 0);  // . and .. are no files
      at += entry->size;
    }
  }
}

void remove_path(const char* path) noexcept {
  if (unlink(path) == 0) return;
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  empty_folder(folder);
  close(folder);
  rmdir(path);
}

}  // namespace

std::string unforeseen_name(const std::string& folder) {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
    fail(ErrorKind::BadFile, "the system has no random numbers: {}", std::strerror(errno));
  return fmt::format("{}/.tonnx-{:016x}.tmp", folder.empty() ? "." : folder, bits);
}

TemporaryPath::TemporaryPath(std::string path) : path_(std::move(path)), slot_(note(path_)) {}

TemporaryPath::TemporaryPath(TemporaryPath&& other) noexcept
    : path_(std::exchange(other.path_, {})), slot_(std::exchange(other.slot_, -1)) {}

TemporaryPath& TemporaryPath::operator=(TemporaryPath&& other) noexcept {
  if (this == &other) return *this;
  forget();
  path_ = std::exchange(other.path_, {});
  slot_ = std::exchange(other.slot_, -1);
  return *this;
}

void TemporaryPath::forget() noexcept {
  if (slot_ >= 0) slots[slot_].state = kFree;
  slot_ = -1;
  path_.clear();
}

TemporaryFolder::TemporaryFolder(const std::string& parent) {
  std::error_code error;
  const std::string place = parent.empty() ? std::filesystem::temp_directory_path(error).string() : parent;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    place_ = TemporaryPath(unforeseen_name(place));
    if (mkdir(place_.path().c_str(), 0700) == 0) return;
    const int problem = errno;
    place_.forget();  // it may be somebody else's
    if (problem != EEXIST) fail(ErrorKind::BadFile, "cannot make a folder in '{}': {}", place, std::strerror(problem));
  }
  fail(ErrorKind::BadFile, "cannot make a folder in '{}'", place);
}

TemporaryFolder::~TemporaryFolder() { remove_path(place_.path().c_str()); }

void remove_temporaries() noexcept {
  for (const Slot& slot : slots) {
    if (slot.state == kNoted) remove_path(slot.path);
  }
}

}  // namespace tonnx
