// json_test.cpp - what is read exactly, and what is refused.
#include "base/json.h"

#include <cmath>

#include "checks.h"

namespace tonnx {
namespace {

using namespace std::string_literals;

TEST(Json, ReadsExactly) {
  const auto document = parse_json(R"({"a": [1, -9223372036854775808, 18446744073709551615, true, null],
                                       "b": 0.1, "c": "é\u0041\u0000z", "d": [NaN, Infinity, -Infinity]})",
                                   "x");
  EXPECT_EQ(document["a"][1].GetInt64(), INT64_MIN);
  EXPECT_EQ(document["a"][2].GetUint64(), UINT64_MAX);
  EXPECT_EQ(document["b"].GetDouble(), 0.1);
  EXPECT_EQ(std::string(document["c"].GetString(), document["c"].GetStringLength()), "éA\0z"s);
  EXPECT_TRUE(std::isnan(document["d"][0].GetDouble()));
  EXPECT_EQ(document["d"][2].GetDouble(), -HUGE_VAL);
  EXPECT_EQ(parse_json("0.3049812345678901234", "x").GetDouble(), 0.3049812345678901234);
}

TEST(Json, RefusesWhatIsNoJson) {
  for (const char* const text : {"", "{", "[1,]", "{\"a\" 1}", "[1] [2]", "'a'", "1e999", "[1e]", "\"\\x\"", "\"\n"}) {
    EXPECT_ERROR(BadFile, "the table is not valid JSON", parse_json(text, "the table"));
  }
  EXPECT_ERROR(BadFile, "zero byte at byte 2", parse_json("{}\0{}"s, "x"));
  EXPECT_ERROR(BadFile, "not valid JSON", parse_json("\"\xff\"", "x"));
  EXPECT_ERROR(BadFile, "not valid JSON", parse_json("\"\xc3\"", "x"));
}

TEST(Json, EncodingIsCheckedWhereverItIs) {
  for (size_t before = 0; before < 20; ++before) {
    const std::string start = "\"" + std::string(before, 'a');
    const std::string text = start + "é\U0001F600" + std::string(9, 'b');
    EXPECT_EQ(parse_json(text + "\"", "x").GetString(), text.substr(1));
    for (const char* const bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80"}) {
      EXPECT_ERROR(BadFile, "x is not valid JSON: Invalid encoding in string", parse_json(start + bad + "\"", "x"));
      EXPECT_ERROR(BadFile, "Invalid encoding in string", parse_json(text + bad + "bbbbbbbbb\"", "x"));
    }
  }
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(256), "x").IsArray());
  EXPECT_ERROR(BadFile, "x nests deeper than 256 levels", parse_json(nested(257), "x"));
  EXPECT_ERROR(BadFile, "nests deeper", parse_json(nested(10'000'000), "x"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_ERROR(BadFile, "nests deeper", parse_json(objects, "x"));
  // many side by side are fine
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[[]],";
  EXPECT_EQ(parse_json(wide + "0]", "x").Size(), 1001U);
}

}  // namespace
}  // namespace tonnx
