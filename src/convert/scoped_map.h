// scoped_map.h - a map that forgets what was put into it since a scope was entered.
#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tonnx {

template <class Key, class T>
class ScopedMap {
 public:
  const T* find(const Key& key) const {
    const auto at = map_.find(key);
    return at == map_.end() ? nullptr : &at->second;
  }
  void set(const Key& key, T value) {
    const auto at = map_.find(key);
    if (!scopes_.empty()) undo_.emplace_back(key, at == map_.end() ? std::nullopt : std::optional<T>(at->second));
    map_.insert_or_assign(key, std::move(value));
  }
  void enter() { scopes_.push_back(undo_.size()); }
  void leave() {
    for (; undo_.size() > scopes_.back(); undo_.pop_back()) {
      auto& [key, old] = undo_.back();
      if (old) {
        map_.insert_or_assign(key, std::move(*old));
      } else {
        map_.erase(key);
      }
    }
    scopes_.pop_back();
  }

 private:
  std::map<Key, T> map_;
  std::vector<std::pair<Key, std::optional<T>>> undo_;
  std::vector<size_t> scopes_;
};

}  // namespace tonnx
