// output_file.h - files that appear whole or not at all: written beside their target, and renamed at the end.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tonnx {

class OutputFile {
 public:
  /// Opens a new file beside `path`. Throws BadFile.
  explicit OutputFile(std::string path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;
  /// Removes the unfinished file, unless commit() was called.
  ~OutputFile();

  void write(std::string_view data);
  /// Large runs of a mapped file are copied from file to file by the kernel, without passing through our memory.
  void write(const Bytes& data);
  void pad_to(uint64_t alignment, char filler = '\0');
  uint64_t position() const { return position_; }
  const std::string& path() const { return path_; }

  /// Everything is on its way to the disk; what remains is the renaming.
  void finish();
  /// Puts the file in its place. Throws BadFile.
  void commit();

 private:
  void flush();
  size_t copy_through(int source, off_t offset, size_t left);
  void write_through(const uint8_t* data, size_t size);
  [[noreturn]] void fail_write(int error) const;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  uint64_t position_ = 0;
  std::string buffer_;
};

/// Finishes all files first and then renames each, so that a full disk leaves none of them behind.
void commit_all(std::vector<OutputFile>& files);

}  // namespace tonnx
