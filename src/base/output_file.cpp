// output_file.cpp - writes a file beside its target and renames it when it is whole.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/computed.h"
#include "base/error.h"

namespace tonnx {
namespace {

constexpr size_t kBufferSize = 1 << 16;
constexpr size_t kWindow = size_t{1} << 20;
constexpr uint64_t kPage = 4096;
constexpr size_t kKernelCopySize = 1 << 16;  // below this a plain write is as fast

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}-{}.tmp", path, getpid(), counter++);
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), temporary_(temporary_name(path_)) {
  struct stat info {};
  if (stat(path_.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    fail(ErrorKind::BadFile, "cannot write '{}': it is a directory", path_);
  }
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) fail(ErrorKind::BadFile, "cannot write '{}': {}", path_, std::strerror(errno));
  buffer_.reserve(kBufferSize);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      position_(other.position_),
      buffer_(std::move(other.buffer_)) {
  other.temporary_.clear();
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::fail_write(int error) const {
  fail(ErrorKind::BadFile, "cannot write '{}': {}", path_, std::strerror(error));
}

void OutputFile::write_through(const uint8_t* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd_, data, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      fail_write(errno);
    }
    data += n;
    size -= static_cast<size_t>(n);
  }
}

void OutputFile::flush() {
  write_through(reinterpret_cast<const uint8_t*>(buffer_.data()), buffer_.size());
  buffer_.clear();
}

void OutputFile::write(std::string_view data) {
  position_ += data.size();
  if (buffer_.size() + data.size() > kBufferSize) flush();
  if (data.size() > kBufferSize) {
    write_through(reinterpret_cast<const uint8_t*>(data.data()), data.size());
  } else {
    buffer_.append(data);
  }
}

void OutputFile::write(const Bytes& data) {
  const int source = data.owner() ? data.owner()->fd() : -1;
  if (source < 0 || data.size() < kKernelCopySize)
    return for_each_piece(data, [this](std::string_view piece) { write(piece); });
  flush();
  auto offset = static_cast<off_t>(data.data() - data.owner()->begin());
  size_t left = data.size();
  // the kernel copies whole pages best; a file system may even share them
  const bool is_aligned = static_cast<uint64_t>(offset) % kPage == position_ % kPage;
  while (is_aligned && left > 0) {
    const ssize_t n = copy_file_range(source, &offset, fd_, nullptr, left, 0);
    if (n <= 0) break;  // another file system, or a kernel that cannot
    left -= static_cast<size_t>(n);
  }
  if (left > kKernelCopySize) left = copy_through(source, offset, left);
  write_through(data.data() + (data.size() - left), left);  // where it cannot be read, the mapping serves as well
  position_ += data.size();
}

/// Copies from a file by a window of memory, which is quicker than through its mapping, whose pages would have to be
/// found one by one. Returns how many bytes are left.
size_t OutputFile::copy_through(int source, off_t offset, size_t left) {
  std::vector<uint8_t> window(std::min(kWindow, left));
  while (left > 0) {
    const ssize_t n = pread(source, window.data(), std::min(window.size(), left), offset);
    if (n <= 0) break;
    write_through(window.data(), static_cast<size_t>(n));
    offset += n;
    left -= static_cast<size_t>(n);
  }
  return left;
}

void OutputFile::pad_to(uint64_t alignment, char filler) {
  const uint64_t rest = position_ % alignment;
  if (rest != 0) write(std::string(alignment - rest, filler));
}

void OutputFile::finish() {
  if (fd_ < 0) return;
  flush();
  if (close(std::exchange(fd_, -1)) != 0) fail_write(errno);
}

void OutputFile::commit() {
  finish();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(errno);
  temporary_.clear();
}

void commit_all(std::vector<OutputFile>& files) {
  for (OutputFile& file : files) file.finish();
  for (OutputFile& file : files) file.commit();
}

}  // namespace tonnx
