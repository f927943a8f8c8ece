// scratch.cpp - room for large results in temporary files.
#include "base/scratch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>

#include "base/made_bytes.h"
#include "base/parallel.h"

namespace tonnx {
namespace {

constexpr size_t kLarge = size_t{1} << 20;
constexpr size_t kMemory = size_t{1} << 26;  // that all large results together may take
constexpr size_t kHugePage = size_t{1} << 21;
std::atomic<size_t> in_memory = 0;

struct Free {
  void operator()(uint8_t* data) const { std::free(data); }  // NOLINT: what calloc and aligned_alloc gave
};

/// A large result that is still small enough to stay in memory: in huge pages, where the system has some, since to find
/// small ones takes longer than to fill them.
class ScratchBuffer : public ByteOwner {
 public:
  explicit ScratchBuffer(size_t size)
      : data_(static_cast<uint8_t*>(std::aligned_alloc(unit_of(size), rounded_up(size)))), size_(size) {
    if (!data_) {
      in_memory -= size;
      throw std::bad_alloc();
    }
    if (size >= kHugePage) madvise(data_.get(), rounded_up(size), MADV_HUGEPAGE);
  }
  ScratchBuffer(const ScratchBuffer&) = delete;
  ScratchBuffer& operator=(const ScratchBuffer&) = delete;
  ~ScratchBuffer() override { in_memory -= size_; }
  const uint8_t* begin() const override { return data_.get(); }
  size_t size() const override { return size_; }
  uint8_t* writable() const { return data_.get(); }

 private:
  static size_t unit_of(size_t size) { return size >= kHugePage ? kHugePage : 64; }
  static size_t rounded_up(size_t size) { return (size + unit_of(size) - 1) / unit_of(size) * unit_of(size); }
  std::unique_ptr<uint8_t, Free> data_;
  size_t size_;
};

/// A small result, or a large one where there is no room elsewhere. The system has pages that are zero already.
class ZeroBuffer : public ByteOwner {
 public:
  explicit ZeroBuffer(size_t size)
      : data_(static_cast<uint8_t*>(std::calloc(std::max<size_t>(size, 1), 1))), size_(size) {
    if (!data_) throw std::bad_alloc();
  }
  bool is_own() const override { return true; }
  const uint8_t* begin() const override { return data_.get(); }
  size_t size() const override { return size_; }
  uint8_t* writable() const { return data_.get(); }

 private:
  std::unique_ptr<uint8_t, Free> data_;
  size_t size_;
};

class ScratchFile : public ByteOwner {
 public:
  ScratchFile(int fd, void* data, size_t size) : fd_(fd), data_(data), size_(size) {}
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() override {
    munmap(data_, size_);
    close(fd_);
  }
  int fd() const override { return fd_; }
  const uint8_t* begin() const override { return static_cast<const uint8_t*>(data_); }
  size_t size() const override { return size_; }
  uint8_t* writable() const { return static_cast<uint8_t*>(data_); }

 private:
  int fd_;
  void* data_;
  size_t size_;
};

/// A file that goes away with us; -1 where there is none to be had.
int open_unnamed() {
  const char* given = std::getenv("TMPDIR");
  for (const std::string folder : {given ? given : "", "/var/tmp", "/tmp"}) {
    if (folder.empty()) continue;
    const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    std::string name = folder + "/tonnx-XXXXXX";
    const int named = mkostemp(name.data(), O_CLOEXEC);
    if (named < 0) continue;
    unlink(name.c_str());
    return named;
  }
  return -1;
}

std::shared_ptr<const ScratchFile> find_file(size_t size) {
  const int fd = open_unnamed();
  if (fd < 0) return nullptr;
  // a full disk is to be found out now, and not by a write to the mapping
  if (posix_fallocate(fd, 0, static_cast<off_t>(size)) == 0) {
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data != MAP_FAILED) return std::make_shared<const ScratchFile>(fd, data, size);
  }
  close(fd);
  return nullptr;
}

}  // namespace

Scratch::Scratch(size_t size) : size_(size) {
  if (size >= kLarge) {
    if ((in_memory += size) <= kMemory) {
      const auto memory = std::make_shared<const ScratchBuffer>(size);
      data_ = memory->writable();
      owner_ = memory;
      return;
    }
    in_memory -= size;
    if (const auto file = find_file(size)) {
      data_ = file->writable();
      owner_ = file;
      return;
    }
  }
  const auto zeros = std::make_shared<const ZeroBuffer>(size);
  data_ = zeros->writable();
  owner_ = zeros;
}

namespace {

constexpr size_t kPiece = size_t{1} << 18;

/// False where the disk does not take all of it.
bool write_at(int fd, const uint8_t* from, size_t size, size_t offset) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = pwrite(fd, from + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

Bytes made_bytes(size_t size, const MakeBytes& make) {
  Scratch result(size);
  const int fd = result.fd();
  const auto pieces = static_cast<int64_t>((size + kPiece - 1) / kPiece);
  const auto make_some = [&](int64_t first, int64_t end) {
    std::unique_ptr<uint8_t[]> window(fd >= 0 ? new (std::nothrow) uint8_t[kPiece] : nullptr);
    for (int64_t i = first; i < end; ++i) {
      const size_t offset = static_cast<size_t>(i) * kPiece, count = std::min(kPiece, size - offset);
      if (window) make(offset, window.get(), count);
      if (!window || !write_at(fd, window.get(), count, offset)) make(offset, result.data() + offset, count);
    }
  };
  in_parallel(pieces, make_some, static_cast<int64_t>(kPiece));
  return result.done();
}

Bytes Scratch::done() {
  const uint8_t* begin = owner_->begin();
  return Bytes(std::move(owner_), begin, size_);
}

}  // namespace tonnx
