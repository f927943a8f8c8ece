// symbol.cpp - the table of interned names.
#include "ir/symbol.h"

#include <mutex>
#include <unordered_set>

namespace tonnx {

Symbol::Symbol(std::string_view text) {
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  static auto& table = *new std::unordered_set<std::string, Hash, std::equal_to<>>();  // outlives every symbol
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto at = table.find(text);
  text_ = at != table.end() ? &*at : &*table.emplace(text).first;
}

Symbol::Symbol() {
  static const std::string* const empty = Symbol(std::string_view()).text_;
  text_ = empty;
}

}  // namespace tonnx
