// class_names.cpp - makes the names of classes out of places.
#include "formats/python/naming/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "modules/places.h"
#include "ops/frame/python_names.h"

namespace tonnx::python {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Where the words end and a number begins, which may have a letter behind it.
size_t end_of_words(const std::string& text) {
  size_t end = text.size();
  if (end > 1 && std::islower(static_cast<unsigned char>(text[end - 1])) && is_digit(text[end - 2])) --end;
  while (end > 0 && (is_digit(text[end - 1]) || text[end - 1] == '_')) --end;
  return end;
}

/// `layer.2` before `layer.10`.
bool comes_before(const std::string& a, const std::string& b) {
  size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      const size_t first = a.find_first_not_of("0123456789", i), second = b.find_first_not_of("0123456789", k);
      const std::string x = a.substr(i, first - i), y = b.substr(k, second - k);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
      i = std::min(first, a.size());
      k = std::min(second, b.size());
    } else if (a[i] != b[k]) {
      return a[i] < b[k];
    } else {
      ++i;
      ++k;
    }
  }
  return a.size() - i < b.size() - k;
}

}  // namespace

std::string class_word(const std::string& path) {
  std::string word;
  bool is_numbered = false;  // of blocks that have numbers in places that have numbers
  for (size_t end = path.size(); word.empty() && end != std::string::npos;) {
    const size_t dot = end == 0 ? std::string::npos : path.rfind('.', end - 1);
    const size_t start = dot == std::string::npos ? 0 : dot + 1;
    const std::string part = path.substr(start, end - start);
    if (!is_index(part)) word = is_numbered && std::isdigit(static_cast<unsigned char>(part.back())) ? "block" : part;
    is_numbered = true;
    end = dot;
  }
  word.resize(end_of_words(word));
  std::string name;
  bool begins = true;
  for (const char c : word) {
    if (c == '_') {
      begins = true;
      continue;
    }
    name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = false;
  }
  const std::string plain = identifier(name);
  return plain.size() < 3 || plain != name ? "Block" : name;
}

std::string places_text(std::vector<std::string> paths) {
  if (paths.size() == 1) return paths[0];
  std::sort(paths.begin(), paths.end(), comes_before);
  const std::string& a = paths.front();
  const std::string& b = paths.back();
  size_t prefix = 0;
  while (prefix < std::min(a.size(), b.size()) && a[prefix] == b[prefix]) ++prefix;
  while (prefix > 0 && std::isdigit(static_cast<unsigned char>(a[prefix - 1]))) --prefix;
  size_t suffix = 0;
  while (suffix < std::min(a.size(), b.size()) - prefix && a[a.size() - 1 - suffix] == b[b.size() - 1 - suffix])
    ++suffix;
  while (suffix > 0 && std::isdigit(static_cast<unsigned char>(a[a.size() - suffix]))) --suffix;
  const std::string low = a.substr(prefix, a.size() - prefix - suffix),
                    high = b.substr(prefix, b.size() - prefix - suffix);
  if (is_index(low) && is_index(high)) {
    const std::string rest = a.substr(a.size() - suffix);
    return fmt::format("{}{} to {}{}", a.substr(0, prefix), low, high, rest.empty() ? "" : ": " + rest.substr(1));
  }
  return fmt::format("{}, {}{}", paths[0], paths.size() > 2 ? "... " : "", paths.back());
}

}  // namespace tonnx::python
