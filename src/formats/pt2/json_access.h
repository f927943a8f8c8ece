// json_access.h - fields of the JSON of a program, each checked for what it should be.
#pragma once
#include <rapidjson/document.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace tonnx::pt2 {

using Json = rapidjson::Value;

inline std::string_view text_of(const Json& json, const char* what) {
  require(json.IsString(), "{} is not a text", what);
  return {json.GetString(), json.GetStringLength()};
}

inline const Json* find(const Json& json, const char* key) {
  if (!json.IsObject()) return nullptr;
  const auto at = json.FindMember(key);
  return at == json.MemberEnd() || at->value.IsNull() ? nullptr : &at->value;
}

inline const Json& get(const Json& json, const char* key) {
  const Json* found = find(json, key);
  require(found != nullptr, "'{}' is missing", key);
  return *found;
}

inline const Json& get_list(const Json& json, const char* key) {
  const Json& found = get(json, key);
  require(found.IsArray(), "'{}' is not a list", key);
  return found;
}

inline int64_t int_of(const Json& json, const char* what) {
  require(json.IsInt64(), "{} is not an integer", what);
  return json.GetInt64();
}

inline double float_of(const Json& json) {
  if (json.IsString()) {
    const std::string_view text = text_of(json, "a number");
    if (text == "Infinity") return HUGE_VAL;
    if (text == "-Infinity") return -HUGE_VAL;
    if (text == "NaN") return std::nan("");
    fail_invalid("'{}' is not a number", text);
  }
  require(json.IsNumber(), "a number is neither a number nor a text");
  return json.GetDouble();
}

/// A union is an object of one key.
inline std::pair<std::string_view, const Json*> variant_of(const Json& json) {
  require(json.IsObject() && json.MemberCount() == 1, "an argument is not an object of one key");
  const auto member = json.MemberBegin();
  return {{member->name.GetString(), member->name.GetStringLength()}, &member->value};
}

}  // namespace tonnx::pt2
