// word_paths.cpp - finds out which beginnings of names are modules.
#include "modules/word_paths.h"

#include <cctype>

namespace tonnx {
namespace {

constexpr size_t kFewest = 2;     // layers of a module
constexpr size_t kLongest = 256;  // names

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Where words with a number end that are followed by one without.
std::vector<size_t> numbered_ends(const std::string& name) {
  std::vector<size_t> ends;
  if (name.size() > kLongest) return ends;
  for (size_t i = 1; i + 1 < name.size(); ++i) {
    if (name[i] == '_' && is_digit(name[i - 1]) && std::isalpha(static_cast<unsigned char>(name[i + 1])) != 0)
      ends.push_back(i);
  }
  return ends;
}

}  // namespace

WordPaths::WordPaths(const std::vector<std::string>& names) {
  std::map<std::string, size_t> layers;
  for (const std::string& name : names) {
    for (const size_t end : numbered_ends(name)) ++layers[name.substr(0, end)];
  }
  std::map<std::string, size_t> heads;
  for (const auto& [module, count] : layers) {
    if (count < kFewest) continue;
    modules_.insert(module);
    if (const size_t line = module.rfind('_'); line != std::string::npos && !is_digit(module[line - 1]))
      ++heads[module.substr(0, line)];
  }
  for (const auto& [head, count] : heads) {
    if (count >= kFewest && !modules_.contains(head)) heads_.insert(head);
  }
}

std::vector<size_t> WordPaths::ends_of(const std::string& name) const {
  std::vector<size_t> ends;
  if (name.size() > kLongest) return ends;
  for (size_t i = 1; i + 1 < name.size(); ++i) {
    if (name[i] != '_') continue;
    const std::string_view front = std::string_view(name).substr(0, i);
    if (modules_.contains(front) || heads_.contains(front)) ends.push_back(i);
  }
  return ends;
}

Path WordPaths::split(const std::string& name) const {
  Path path;
  size_t start = 0;
  for (const size_t end : ends_of(name)) {
    path.push_back(name.substr(start, end - start));
    start = end + 1;
  }
  path.push_back(name.substr(start));
  return path;
}

std::optional<Path> WordPaths::place_of(const std::string& name) const {
  Path path = split(name);
  path.pop_back();
  return path.empty() ? std::nullopt : std::optional(std::move(path));
}

}  // namespace tonnx
