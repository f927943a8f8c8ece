// json.h - JSON texts as RapidJSON documents, safe against what a file may hold.
#pragma once
#include <rapidjson/document.h>

#include <string_view>

#include "base/utf8.h"

namespace tonnx {

/// Exact numbers, copied strings; NaN and Infinity are read as Python writes them. Throws BadFile, naming `what`, where
/// the text is not JSON, is not UTF-8, or nests too deep for code that recurses over the result.
rapidjson::Document parse_json(std::string_view text, std::string_view what);

/// Writes a text, or a key, that may come from a file: JSON is UTF-8, whatever the file holds.
template <class Writer>
void write_json_text(Writer& json, std::string_view text) {
  const std::string replaced = is_utf8(text) ? std::string() : as_utf8(text);
  if (!replaced.empty()) text = replaced;
  json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

}  // namespace tonnx
