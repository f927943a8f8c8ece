// output_file.h - files that appear whole or not at all: written without a name, and put in their place at the end.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/temporary.h"

namespace tonnx {

/// The new file takes the place of the old one, which is untouched until then. It keeps the permissions of the old one,
/// and its owner where the system allows it. A symbolic link is replaced, and not followed; a file that is
/// write-protected stays; a pipe or a device, such as /dev/stdout, is written to.
class OutputFile {
 public:
  /// Opens a new file for `path`. Throws BadFile.
  explicit OutputFile(std::string path);
  /// Puts a file of ours, which is finished, in the place of `path` in the same folder or one of the same disk.
  OutputFile(std::string path, const std::string& finished);
  /// Memory of the caller's in place of a file.
  explicit OutputFile(std::vector<std::byte>& memory) : memory_(&memory) {}
  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;
  /// The unfinished file goes away, unless commit() was called.
  ~OutputFile();

  void write(std::string_view data);
  /// Large runs of a mapped file that lie alike in both are copied by the kernel, others by a window of memory.
  void write(const Bytes& data);
  /// Several runs, one behind the other: one is made or read while those before it are written.
  void write(std::span<const Bytes> runs);
  void pad_to(uint64_t alignment, char filler = '\0');
  uint64_t position() const { return position_; }
  const std::string& path() const { return path_; }

  /// Everything is on its way to the disk; what remains is its place.
  void finish();
  /// Puts the file in its place. Throws BadFile.
  void commit();

 private:
  /// What is to be kept of the file that is replaced.
  struct Attributes {
    unsigned mode, user, group;
  };
  void look_at_target();
  void open_stream();
  void open_new();
  void keep_attributes() const;
  void put_in_place();
  void reserve(uint64_t size) const;
  void write_pieces(const Bytes& data);
  void flush();
  bool can_copy_by_kernel(const Bytes& data, uint64_t position) const;
  size_t copy_by_kernel(const Bytes& data);
  void write_through(std::string_view data);
  [[noreturn]] void fail_write(int error) const;

  std::string path_;
  TemporaryPath temporary_;  // its name until it is in its place, where it has one
  std::optional<Attributes> kept_;
  bool is_replacing_ = false;
  bool is_stream_ = false;
  int fd_ = -1;
  uint64_t position_ = 0;
  std::string buffer_;
  std::vector<std::byte>* memory_ = nullptr;
};

/// Finishes all files first and then puts each in its place, so that a full disk leaves none of them behind.
void commit_all(std::vector<OutputFile>& files);

}  // namespace tonnx
