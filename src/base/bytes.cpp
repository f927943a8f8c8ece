// bytes.cpp - owners of bytes: mapped files and buffers.
#include "base/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tonnx {
namespace {

template <class Container>
class Buffer : public ByteOwner {
 public:
  explicit Buffer(Container data) : data_(std::move(data)) {}
  bool is_own() const override { return true; }
  const uint8_t* begin() const override { return reinterpret_cast<const uint8_t*>(data_.data()); }
  size_t size() const override { return data_.size(); }

 private:
  Container data_;
};

template <class Container>
Bytes own_buffer(Container data) {
  auto owner = std::make_shared<const Buffer<Container>>(std::move(data));
  return Bytes(owner, owner->begin(), owner->size());
}

class MappedFile : public ByteOwner {
 public:
  MappedFile(int fd, void* data, size_t size) : fd_(fd), data_(data), size_(size) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() override {
    if (size_ > 0) munmap(data_, size_);
    close(fd_);
  }
  int fd() const override { return fd_; }
  const uint8_t* begin() const override { return static_cast<const uint8_t*>(data_); }
  size_t size() const override { return size_; }

 private:
  int fd_;
  void* data_;
  size_t size_;
};

}  // namespace

Bytes Bytes::own(std::vector<uint8_t> data) { return own_buffer(std::move(data)); }
Bytes Bytes::own(std::string data) { return own_buffer(std::move(data)); }

void copy_bytes(const Bytes& from, uint8_t* into) {
  const int source = from.owner() ? from.owner()->fd() : -1;
  size_t done = 0;
  while (source >= 0 && done < from.size()) {
    const auto offset = static_cast<off_t>(from.data() - from.owner()->begin()) + static_cast<off_t>(done);
    const ssize_t n = pread(source, into + done, from.size() - done, offset);
    if (n <= 0) break;  // the mapping serves as well
    done += static_cast<size_t>(n);
  }
  if (done < from.size()) std::memcpy(into + done, from.data() + done, from.size() - done);
}

Bytes map_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not keep us waiting
  if (fd < 0) fail(ErrorKind::BadFile, "cannot open '{}': {}", path, std::strerror(errno));
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    fail(ErrorKind::BadFile, "'{}' is not a regular file", path);
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      close(fd);
      fail(ErrorKind::BadFile, "cannot map '{}': {}", path, std::strerror(error));
    }
  }
  auto owner = std::make_shared<const MappedFile>(fd, data, size);
  return Bytes(owner, owner->begin(), size);
}

}  // namespace tonnx
