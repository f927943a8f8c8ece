// output_file.cpp - writes a file without a name, and puts it in the place of its target when it is whole.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/computed.h"
#include "base/error.h"

namespace tonnx {
namespace {

constexpr size_t kBufferSize = 1 << 16;
constexpr uint64_t kPage = 4096;
constexpr size_t kKernelCopySize = 1 << 16;  // below this a plain write is as fast
constexpr uint64_t kWorthRoom = 1 << 20;     // below this the system finds room sooner than it is asked for

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

/// /dev/stdout and its like: links that the system follows to what is open already.
bool is_link_of_system(const std::string& path) { return path.starts_with("/dev/") || path.starts_with("/proc/"); }

/// How a file without a name is reached.
std::string path_of(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  look_at_target();
  if (is_stream_) {
    open_stream();
  } else {
    open_new();
  }
  buffer_.reserve(kBufferSize);
}

OutputFile::OutputFile(std::string path, const std::string& finished) : path_(std::move(path)) {
  look_at_target();
  if (is_stream_) {
    open_stream();
    write(map_file(finished));
    return;
  }
  fd_ = open(finished.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (fd_ < 0) fail_write(errno);
  temporary_ = TemporaryPath(finished);
}

void OutputFile::look_at_target() {
  struct stat link {
  }, file{};
  const bool is_there = lstat(path_.c_str(), &link) == 0;
  const bool is_link = is_there && S_ISLNK(link.st_mode);
  const bool leads_on = is_there && (!is_link || stat(path_.c_str(), &file) == 0);
  if (!is_link) file = link;
  if (leads_on && S_ISDIR(file.st_mode)) fail(ErrorKind::BadFile, "cannot write '{}': it is a directory", path_);
  if (leads_on && S_ISBLK(file.st_mode)) fail(ErrorKind::BadFile, "cannot write '{}': it is a disk", path_);
  is_stream_ = leads_on && (!S_ISREG(file.st_mode) || (is_link && is_link_of_system(path_)));
  is_replacing_ = is_there;
  if (is_stream_ || !is_there || is_link) return;
  // renaming would not ask
  if (faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail_write(errno);
  kept_ = Attributes{link.st_mode & 0777, link.st_uid, link.st_gid};
}

void OutputFile::open_stream() {
  // a pipe that nobody reads must not keep us waiting; what was printed before stays
  fd_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd_ < 0) fail_write(errno);
  const int flags = fcntl(fd_, F_GETFL);
  if (flags < 0 || fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    const int error = errno;
    close(std::exchange(fd_, -1));
    fail_write(error);
  }
}

/// Without a name where the file system can: then nothing is left behind, however we end.
void OutputFile::open_new() {
  static const bool has_proc = access("/proc/self/fd", X_OK) == 0;
  const mode_t mode = kept_ ? kept_->mode & ~mode_t{S_IRWXG | S_IRWXO} : 0666;  // the rest of theirs comes at the end
  const std::string folder = folder_of(path_);
  if (has_proc) fd_ = open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  constexpr int kTries = 100;
  for (int i = 0; fd_ < 0 && i < kTries; ++i) {
    temporary_ = TemporaryPath(unforeseen_name(folder));
    fd_ = open(temporary_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd_ >= 0) return;
    const int error = errno;
    temporary_.forget();  // it may be somebody else's
    if (error != EEXIST) fail_write(error);
  }
  if (fd_ < 0) fail_write(EEXIST);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      kept_(other.kept_),
      is_replacing_(other.is_replacing_),
      is_stream_(other.is_stream_),
      fd_(std::exchange(other.fd_, -1)),
      position_(other.position_),
      buffer_(std::move(other.buffer_)),
      memory_(other.memory_) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.path().c_str());
}

void OutputFile::fail_write(int error) const {
  // the system could not read what we gave it: the mapping of a file that was cut short meanwhile
  if (error == EFAULT)
    fail(ErrorKind::BadFile, "cannot write '{}': what it is made of became shorter meanwhile", path_);
  fail(ErrorKind::BadFile, "cannot write '{}': {}", path_, std::strerror(error));
}

/// What is in the buffer, and then these bytes.
void OutputFile::write_through(std::string_view data) {
  if (memory_ != nullptr) {
    for (const std::string_view part : {std::string_view(buffer_), data}) {
      const auto* first = reinterpret_cast<const std::byte*>(part.data());
      memory_->insert(memory_->end(), first, first + part.size());
    }
    buffer_.clear();
    return;
  }
  iovec parts[2] = {{buffer_.data(), buffer_.size()}, {const_cast<char*>(data.data()), data.size()}};
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    const ssize_t n = writev(fd_, parts, 2);
    if (n < 0) {
      if (errno == EINTR) continue;
      fail_write(errno);
    }
    auto done = static_cast<size_t>(n);
    for (iovec& part : parts) {
      const size_t of_part = std::min(done, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + of_part;
      part.iov_len -= of_part;
      done -= of_part;
    }
  }
  buffer_.clear();
}

/// Room for as much as follows. Found all at once, it costs a system that keeps a list of blocks a third less than
/// piece by piece; one that has no such call, or too little room, says what it has to say when the bytes are written.
void OutputFile::reserve(uint64_t size) const {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  if (fd_ < 0 || is_stream_ || size < kWorthRoom || size > kMost - position_) return;
  [[maybe_unused]] const int ignored =
      fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(position_), static_cast<off_t>(size));
}

void OutputFile::flush() {
  if (!buffer_.empty()) write_through({});
}

/// Whole pages are written at once; what is behind the last of them waits for what follows.
void OutputFile::write(std::string_view data) {
  position_ += data.size();
  if (buffer_.size() + data.size() <= kBufferSize) {
    buffer_.append(data);
    return;
  }
  const size_t rest = std::min<size_t>(position_ % kPage, data.size());
  write_through(data.substr(0, data.size() - rest));
  buffer_.append(data.substr(data.size() - rest));
}

void OutputFile::write(const Bytes& data) {
  reserve(data.size());
  write_pieces(data);
}

void OutputFile::write_pieces(const Bytes& data) {
  const size_t done = copy_by_kernel(data);
  if (done < data.size())
    for_each_piece(data.slice(done, data.size() - done), [this](std::string_view piece) { write(piece); });
}

void OutputFile::write(std::span<const Bytes> runs) {
  size_t begin = 0;
  uint64_t position = position_, total = 0;
  for (const Bytes& run : runs) total += run.size();
  reserve(total);
  const auto write_until = [&](size_t end) {
    for_each_piece(runs.subspan(begin, end - begin), [this](std::string_view piece) { write(piece); });
    begin = end;
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_kernels = can_copy_by_kernel(runs[i], position);
    position += runs[i].size();
    if (!is_kernels) continue;
    write_until(i);
    write_pieces(runs[i]);
    begin = i + 1;
  }
  write_until(runs.size());
}

/// The kernel copies whole pages best; a file system may even share them.
bool OutputFile::can_copy_by_kernel(const Bytes& data, uint64_t position) const {
  const int source = data.owner() ? data.owner()->fd() : -1;
  if (source < 0 || data.size() < kKernelCopySize || memory_ != nullptr) return false;
  return static_cast<uint64_t>(data.data() - data.owner()->begin()) % kPage == position % kPage;
}

/// Returns how many bytes were copied.
size_t OutputFile::copy_by_kernel(const Bytes& data) {
  if (!can_copy_by_kernel(data, position_)) return 0;
  const int source = data.owner()->fd();
  auto offset = static_cast<off_t>(data.data() - data.owner()->begin());
  flush();
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t n = copy_file_range(source, &offset, fd_, nullptr, data.size() - done, 0);
    if (n <= 0) break;  // another file system, or a kernel that cannot
    done += static_cast<size_t>(n);
  }
  position_ += done;
  return done;
}

void OutputFile::pad_to(uint64_t alignment, char filler) {
  const uint64_t rest = position_ % alignment;
  if (rest != 0) write(std::string(alignment - rest, filler));
}

void OutputFile::finish() { flush(); }

/// The permissions of the file that is replaced; nobody else may read more than before.
void OutputFile::keep_attributes() const {
  if (!kept_) return;
  unsigned mode = kept_->mode;
  struct stat info {};
  if (fstat(fd_, &info) != 0) fail_write(errno);
  const bool is_same = info.st_uid == kept_->user && info.st_gid == kept_->group;
  if (!is_same && fchown(fd_, kept_->user, kept_->group) != 0 && info.st_gid != kept_->group &&
      fchown(fd_, static_cast<uid_t>(-1), kept_->group) != 0) {
    mode &= ~static_cast<unsigned>(S_IRWXG);  // they were those of another group
  }
  if ((info.st_mode & 0777) != mode && fchmod(fd_, mode) != 0) fail_write(errno);
}

void OutputFile::put_in_place() {
  if (temporary_.empty()) {
    const std::string unnamed = path_of(fd_);
    if (!is_replacing_) {
      if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
      if (errno != EEXIST) fail_write(errno);
    }
    TemporaryPath name(unforeseen_name(folder_of(path_)));  // a link replaces nothing, a renaming does
    if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name.path().c_str(), AT_SYMLINK_FOLLOW) != 0) fail_write(errno);
    temporary_ = std::move(name);
  }
  if (rename(temporary_.path().c_str(), path_.c_str()) != 0) fail_write(errno);
  temporary_.forget();
}

void OutputFile::commit() {
  if (memory_ != nullptr) flush();
  if (fd_ < 0) return;
  flush();
  if (!is_stream_) {
    keep_attributes();
    // what a remote disk has to say, it says when the file is closed
    const bool is_named = !temporary_.empty();
    if (is_named && close(std::exchange(fd_, -1)) != 0) fail_write(errno);
    put_in_place();
  }
  if (fd_ >= 0 && close(std::exchange(fd_, -1)) != 0) fail_write(errno);
}

void commit_all(std::vector<OutputFile>& files) {
  for (OutputFile& file : files) file.finish();
  for (OutputFile& file : files) file.commit();
}

}  // namespace tonnx
