// scope.h - what a graph and those around it have, by a text that says what it is.
#pragma once
#include <string>
#include <unordered_map>

namespace tonnx {

/// Found is a pointer; the innermost graph's counts.
template <class Found>
struct Scope {
  const Scope* around = nullptr;
  std::unordered_map<std::string, Found> own;

  Found find(const std::string& key) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around) {
      if (const auto at = scope->own.find(key); at != scope->own.end()) return at->second;
    }
    return nullptr;
  }
};

}  // namespace tonnx
