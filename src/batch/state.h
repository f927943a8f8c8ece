// state.h - what earlier runs of a batch made of what, so that a later one can leave it alone.
#pragma once
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "batch/batch.h"

namespace tonnx {

/// A file as it was when it was read.
struct FileStamp {
  std::string path;
  int64_t size = 0;
  int64_t changed = 0;  // nanoseconds

  bool operator==(const FileStamp&) const = default;
};

/// Lies beside the YAML file, as its name with .state behind it: a line of JSON for each target, the last one counts.
/// A file that cannot be read or written is as good as none: the work is done again.
class BatchState {
 public:
  explicit BatchState(const BatchConfig& config);

  /// The target is there, and neither the options nor the files that it was made of have changed.
  bool is_unchanged(const BatchJob& job) const;
  /// `files` are those that the target was made of.
  void note_done(const BatchJob& job, const std::vector<FileStamp>& files);
  void note_begun(const BatchJob& job);
  /// Drops lines that newer ones have replaced.
  void compact();

 private:
  struct Entry {
    std::string options;
    std::vector<FileStamp> files;
  };
  static std::string line_of(const std::string& target, const Entry& entry);
  void append(const std::string& line);

  std::string path_;
  size_t lines_ = 0;
  std::map<std::string, Entry> entries_;  // by target
  std::mutex mutex_;
};

/// Throws BadFile where the file is not there.
FileStamp stamp_of(const std::string& path);
/// The files that weights of the model lie in, beside its own.
std::vector<FileStamp> external_files(const Model& model);

}  // namespace tonnx
