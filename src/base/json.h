// json.h - JSON texts as RapidJSON documents, safe against what a file may hold.
#pragma once
#include <rapidjson/document.h>

#include <string_view>

namespace tonnx {

/// Exact numbers, copied strings; NaN and Infinity are read as Python writes them. Throws BadFile, naming `what`, where
/// the text is not JSON, is not UTF-8, or nests too deep for code that recurses over the result.
rapidjson::Document parse_json(std::string_view text, std::string_view what);

}  // namespace tonnx
