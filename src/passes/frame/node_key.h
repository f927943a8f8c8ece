// node_key.h - bytes that tell nodes apart, in no form to be read.
#pragma once
#include <string>
#include <vector>

#include "ir/attribute.h"

namespace tonnx {

template <class T>
void append_bytes(std::string& key, const T& plain) {
  key.append(reinterpret_cast<const char*>(&plain),
             sizeof(T));  // NOLINT(bugprone-sizeof-expression): a pointer is a key too
}

template <class T>
void append_list(std::string& key, const T& list) {
  append_bytes(key, list.size());
  key.append(reinterpret_cast<const char*>(list.data()),
             list.size() * sizeof(list[0]));  // NOLINT(bugprone-sizeof-expression)
}

/// A number, a text or a list of numbers, with its kind in front; false for others, whose kind alone is there then.
inline bool append_plain(std::string& key, const AttrValue& value) {
  key += static_cast<char>(value.index());
  if (const auto* i = value.get<int64_t>()) {
    append_bytes(key, *i);
  } else if (const auto* f = value.get<double>()) {
    append_bytes(key, *f);
  } else if (const auto* text = value.get<std::string>()) {
    append_list(key, *text);
  } else if (const auto* ints = value.get<std::vector<int64_t>>()) {
    append_list(key, *ints);
  } else if (const auto* floats = value.get<std::vector<double>>()) {
    append_list(key, *floats);
  } else {
    return false;
  }
  return true;
}

}  // namespace tonnx
