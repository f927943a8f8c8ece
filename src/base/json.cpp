// json.cpp - reads JSON without recursion, and refuses bad encoding and deep nesting.
#include "base/json.h"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/utf8.h"

namespace tonnx {
namespace {

constexpr int kMaxDepth = 256;
constexpr unsigned kFlags =
    rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;

/// Passes all events on to the document, and stops where they nest too deep.
class DepthCheck {
 public:
  explicit DepthCheck(rapidjson::Document& target) : target_(target) {}
  bool too_deep() const { return depth_ > kMaxDepth; }

  bool Null() { return target_.Null(); }
  bool Bool(bool value) { return target_.Bool(value); }
  bool Int(int value) { return target_.Int(value); }
  bool Uint(unsigned value) { return target_.Uint(value); }
  bool Int64(int64_t value) { return target_.Int64(value); }
  bool Uint64(uint64_t value) { return target_.Uint64(value); }
  bool Double(double value) { return target_.Double(value); }
  /// Numbers come as they stand in the text: RapidJSON's own conversion has assertions that long ones fail.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const char* const end = text + size;
    const auto is_all = [&](std::from_chars_result result) { return result.ec == std::errc() && result.ptr == end; };
    if (int64_t whole = 0; is_all(std::from_chars(text, end, whole))) return target_.Int64(whole);
    if (uint64_t large = 0; is_all(std::from_chars(text, end, large))) return target_.Uint64(large);
    double real = 0;
    const std::from_chars_result result = std::from_chars(text, end, real);
    if (is_all(result)) return target_.Double(real);
    // too near to zero, or too far from it
    real =
        result.ec == std::errc::result_out_of_range ? std::strtod(std::string(text, size).c_str(), nullptr) : HUGE_VAL;
    return std::abs(real) < 1 && target_.Double(real);
  }
  bool String(const char* text, rapidjson::SizeType size, bool copy) { return target_.String(text, size, copy); }
  bool Key(const char* text, rapidjson::SizeType size, bool copy) { return target_.Key(text, size, copy); }
  bool StartObject() { return ++depth_ <= kMaxDepth && target_.StartObject(); }
  bool StartArray() { return ++depth_ <= kMaxDepth && target_.StartArray(); }
  bool EndObject(rapidjson::SizeType count) {
    --depth_;
    return target_.EndObject(count);
  }
  bool EndArray(rapidjson::SizeType count) {
    --depth_;
    return target_.EndArray(count);
  }

 private:
  rapidjson::Document& target_;
  int depth_ = 0;
};

}  // namespace

rapidjson::Document parse_json(std::string_view text, std::string_view what) {
  // the reader takes a zero byte for the end of the text
  if (const size_t at = text.find('\0'); at != std::string_view::npos) {
    fail(ErrorKind::BadFile, "{} is not valid JSON: a zero byte at byte {}", what, at);
  }
  rapidjson::Document document;
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::ParseResult result;
  bool too_deep = false;
  const bool is_valid = is_utf8(text);  // the reader looks byte by byte: only where it has something to say
  auto fill = [&](rapidjson::Document& target) {
    DepthCheck check(target);
    if (is_valid)
      result = reader.Parse<kFlags>(stream, check);
    else
      result = reader.Parse<kFlags | rapidjson::kParseValidateEncodingFlag>(stream, check);
    too_deep = check.too_deep();
    return !result.IsError();
  };
  document.Populate(fill);
  if (too_deep) fail(ErrorKind::BadFile, "{} nests deeper than {} levels at byte {}", what, kMaxDepth, result.Offset());
  if (result.IsError()) {
    fail(ErrorKind::BadFile, "{} is not valid JSON: {} (byte {})", what,
         std::string_view(rapidjson::GetParseError_En(result.Code())), result.Offset());
  }
  return document;
}

}  // namespace tonnx
