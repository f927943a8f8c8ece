// places.cpp - makes paths of names, and keeps them apart.
#include "modules/places.h"

#include <algorithm>
#include <cctype>

#include "base/identifier.h"
#include "base/join.h"

namespace tonnx {
namespace {

constexpr size_t kDeepest = 24;  // parts of a path; more are one name

/// `block1-0`: no attribute, but a name that a module may have.
bool is_dashed(std::string_view part) {
  return part.find('-') != std::string_view::npos && part.find("__") == std::string_view::npos && part.size() < 64 &&
         std::all_of(part.begin(), part.end(),
                     [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_' || c == '-'); });
}

/// Words that are taken as variables may be attributes: `self.self`.
std::string attribute_name(std::string_view part) {
  std::string name = python::identifier(part);
  if (name.size() > 1 && name.back() == '_' && part.back() != '_') {
    std::string bare = name.substr(0, name.size() - 1);
    if (bare == part && !is_python_keyword(bare)) return bare;
  }
  return name;
}

}  // namespace

void join_from(Path& path, size_t first) {
  std::string words, numbers;
  for (size_t i = first; i < path.size(); ++i) {
    const size_t line = i + 1 < path.size() && is_index(path[i]) ? 0 : path[i].rfind('_');
    const bool is_numbered = i + 1 < path.size() && line != std::string::npos &&
                             (line == 0 || (line > 0 && is_index(std::string_view(path[i]).substr(line + 1))));
    const std::string word = is_numbered ? path[i].substr(0, line) : path[i];
    if (is_numbered) numbers += "_" + path[i].substr(line == 0 ? 0 : line + 1);
    if (!word.empty()) words += (words.empty() ? "" : "_") + word;
  }
  path.resize(first);
  path.push_back(python::identifier(words + numbers));
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string within(const std::string& place, const std::string& name) {
  return place.empty() ? name : place + "." + name;
}

std::string kind_of_place(const std::string& path) {
  std::string kind;
  for (const std::string& part : path_of_name(path)) kind += is_index(part) ? "#." : part + ".";
  return kind;
}

bool is_index(std::string_view part) {
  return !part.empty() && part.size() < 7 && (part == "0" || part[0] != '0') &&
         std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::string stem_of(const std::string& name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); }

int number_of(const std::string& name) {
  const std::string digits = name.substr(stem_of(name).size());
  return is_index(digits) ? std::stoi(digits) : -1;
}

bool is_attribute(std::string_view part) { return !is_index(part) && part.find('-') == std::string_view::npos; }

Path path_of_name(std::string_view name) {
  Path path;
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find_first_of("./", start), name.size());
    const std::string_view part = name.substr(start, end - start);
    std::string text = is_index(part) || is_dashed(part) ? std::string(part) : attribute_name(part);
    if (!text.empty()) path.push_back(std::move(text));
    start = end + 1;
  }
  if (path.size() > kDeepest) join_from(path, kDeepest - 1);
  return path;
}

std::string name_within(const std::string& place, std::string_view node_name, size_t outer_parts) {
  Path path = path_of_name(python::path_of_node(node_name));
  path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(std::min(path.size(), outer_parts)));
  const auto parts = place.empty() ? 0 : static_cast<size_t>(std::count(place.begin(), place.end(), '.')) + 1;
  if (path.size() <= parts) return "";
  std::string name = std::move(path[parts]);
  path.resize(parts);
  return joined(path, ".") == place ? name : "";
}

Places::Places() { is_scope_[""] = true; }

python::NameSet& Places::names_in(const std::string& scope) {
  const auto [at, fresh] = names_.try_emplace(scope);
  if (fresh) at->second.reserve_module_attributes();
  return at->second;
}

bool Places::is_scope(const Path& path) const {
  const auto known = is_scope_.find(joined(path, "."));
  return known != is_scope_.end() && known->second;
}

Path Places::within_known(Path path) const {
  std::string scope;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    std::string next = scope.empty() ? path[i] : scope + "." + path[i];
    const auto known = is_scope_.find(next);
    if (known == is_scope_.end() || !known->second) {
      join_from(path, i);
      break;
    }
    scope = std::move(next);
  }
  return path;
}

Path Places::add(Path path) {
  std::string scope;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    std::string next = scope.empty() ? path[i] : scope + "." + path[i];
    const auto known = is_scope_.find(next);
    const bool is_free = known == is_scope_.end() && !names_in(scope).contains(path[i]);
    if (!is_free && (known == is_scope_.end() || !known->second)) {  // somebody has that name: the rest is one name
      join_from(path, i);
      break;
    }
    if (is_free) {
      names_in(scope).reserve(path[i]);
      is_scope_[next] = true;
    }
    scope = std::move(next);
  }
  path.back() = names_in(scope).add(path.back());
  is_scope_[scope.empty() ? path.back() : scope + "." + path.back()] = false;
  return path;
}

}  // namespace tonnx
