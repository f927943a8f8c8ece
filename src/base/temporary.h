// temporary.h - names of files and folders that must not outlive the program, even where a signal ends it.
#pragma once
#include <string>
#include <string_view>

namespace tonnx {

/// A name that nobody can foresee, for a file in that folder: `folder/.tonnx-0123456789abcdef.tmp`.
std::string unforeseen_name(const std::string& folder);

/// Notes the path of a file or folder, as long as the object lives, for remove_temporaries. Removes nothing itself.
class TemporaryPath {
 public:
  TemporaryPath() = default;
  explicit TemporaryPath(std::string path);
  TemporaryPath(TemporaryPath&& other) noexcept;
  TemporaryPath& operator=(TemporaryPath&& other) noexcept;
  ~TemporaryPath() { forget(); }

  const std::string& path() const { return path_; }
  bool empty() const { return path_.empty(); }
  void forget() noexcept;

 private:
  std::string path_;
  int slot_ = -1;  // none where there are more of them than places
};

/// A folder of our own; it goes away with the files in it.
class TemporaryFolder {
 public:
  /// In the folder that is given, or in that which the system has for such things. Throws BadFile.
  explicit TemporaryFolder(const std::string& parent = "");
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  std::string file(std::string_view name) const { return place_.path() + "/" + std::string(name); }

 private:
  TemporaryPath place_;
};

/// Removes what is noted: files, and folders with the files in them. May be called by a signal handler.
void remove_temporaries() noexcept;

}  // namespace tonnx
