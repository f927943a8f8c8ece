// glob.cpp - walks the folders that a pattern reaches.
#include "base/glob.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

namespace tonnx {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxDepth = 64;  // of folders that ** goes down

class Walk {
 public:
  explicit Walk(const fs::path& pattern) : parts_(pattern.begin(), pattern.end()) {}

  void visit(const fs::path& folder, size_t at, int depth) {
    if (at == parts_.size()) return;
    const std::string part = parts_[at].string();
    const bool is_last = at + 1 == parts_.size();
    if (part == "**") {
      visit(folder, at + 1, depth);
      if (depth == kMaxDepth) return;
      each_entry(folder, [&](const fs::directory_entry& entry) {
        if (is_hidden(entry) || !is_folder(entry) || is_link(entry)) return;
        visit(entry.path(), at, depth + 1);
      });
    } else if (!is_pattern(part)) {
      const fs::path next = folder / parts_[at];
      if (is_last)
        add(next);
      else
        visit(next, at + 1, depth);
    } else {
      each_entry(folder, [&](const fs::directory_entry& entry) {
        if (fnmatch(part.c_str(), entry.path().filename().c_str(), FNM_PERIOD) != 0) return;
        if (is_last)
          add(folder / entry.path().filename());
        else if (is_folder(entry))
          visit(folder / entry.path().filename(), at + 1, depth);
      });
    }
  }

  std::vector<std::string> found;

 private:
  template <class Body>
  static void each_entry(const fs::path& folder, Body&& body) {
    std::error_code error;
    fs::directory_iterator entries(folder.empty() ? fs::path(".") : folder, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) body(*entries);
  }
  static bool is_hidden(const fs::directory_entry& entry) { return entry.path().filename().string().starts_with('.'); }
  static bool is_folder(const fs::directory_entry& entry) {
    std::error_code error;
    return entry.is_directory(error);
  }
  static bool is_link(const fs::directory_entry& entry) {
    std::error_code error;
    return entry.is_symlink(error);
  }
  void add(const fs::path& path) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) found.push_back(path.lexically_normal().string());
  }

  std::vector<fs::path> parts_;
};

}  // namespace

bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

std::vector<std::string> files_matching(const std::string& pattern) {
  std::error_code error;
  if (fs::is_regular_file(pattern, error)) return {fs::path(pattern).lexically_normal().string()};
  if (!is_pattern(pattern)) return {};
  Walk walk{fs::path(pattern)};
  walk.visit("", 0, 0);
  std::sort(walk.found.begin(), walk.found.end());
  walk.found.erase(std::unique(walk.found.begin(), walk.found.end()), walk.found.end());
  return std::move(walk.found);
}

}  // namespace tonnx
