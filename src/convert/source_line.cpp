// source_line.cpp - the line of a person's code that a node comes from, without the folders of that person's machine.
#include "convert/source_line.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace tonnx {
namespace {

bool is_absolute(std::string_view path) {
  return path.starts_with('/') || (path.size() > 1 && path[1] == ':');  // C:/Users
}

std::string current_folder() {
  std::error_code error;
  std::string folder = std::filesystem::current_path(error).generic_string();
  if (!folder.ends_with('/')) folder += '/';
  return error ? std::string() : folder;
}

/// What is behind the folder that the file was imported from; nothing where it is not known.
std::optional<std::string_view> imported_path(std::string_view path, std::string_view current) {
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    if (const size_t at = path.rfind(packages); at != std::string_view::npos) return path.substr(at + packages.size());
  }
  if (!current.empty() && path.starts_with(current)) return path.substr(current.size());
  if (!is_absolute(path) && path.find("..") == std::string_view::npos) return path;
  return std::nullopt;
}

}  // namespace

std::string source_line(std::string_view trace) {
  const std::string current = current_folder();
  std::string result;
  for (size_t at = trace.find("File \""); at != std::string_view::npos; at = trace.find("File \"", at + 1)) {
    const size_t start = at + 6, end = trace.find('"', start);
    if (end == std::string_view::npos) break;
    constexpr std::string_view kLine = ", line ";
    if (trace.substr(end + 1, kLine.size()) != kLine) continue;
    const size_t digits = end + 1 + kLine.size();
    const size_t stop = trace.find_first_not_of("0123456789", digits);
    std::string file(trace.substr(start, end - start));
    std::replace(file.begin(), file.end(), '\\', '/');
    const auto imported = imported_path(file, current);
    const std::string_view shown = imported ? *imported : std::string_view(file).substr(file.rfind('/') + 1);
    const bool is_of_torch = imported ? shown.starts_with("torch/") : file.find("/torch/") != std::string::npos;
    if ((!is_of_torch && !file.starts_with('<')) || result.empty())
      result = std::string(shown) + ":" + std::string(trace.substr(digits, stop - digits));
  }
  return result;
}

}  // namespace tonnx
