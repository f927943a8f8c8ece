// quote_test.cpp - names and texts in quotes.
#include "base/quote.h"

#include "checks.h"

namespace tonnx {
namespace {

TEST(Quoted, EscapesWhatWouldBreakTheLine) {
  EXPECT_EQ(quoted("plain text"), "\"plain text\"");
  EXPECT_EQ(quoted("a\"b\\c\nd\te"), R"("a\"b\\c\nd\te")");
  EXPECT_EQ(quoted(std::string_view("\0\x1b\x7f\r", 4)), R"("\x00\x1b\x7f\x0d")");
}

TEST(Quoted, KeepsValidUtf8AndEscapesTheRest) {
  EXPECT_EQ(quoted("größe 尺寸 🙂"), "\"größe 尺寸 🙂\"");
  EXPECT_EQ(quoted("\xff\xfe"), R"("\xff\xfe")");
  EXPECT_EQ(quoted("\xc3"), R"("\xc3")");                  // cut off
  EXPECT_EQ(quoted("\xc0\xaf"), R"("\xc0\xaf")");          // too long for what it says
  EXPECT_EQ(quoted("\xed\xa0\x80"), R"("\xed\xa0\x80")");  // half of a surrogate pair
  EXPECT_EQ(quoted("\xc2\x9b"), R"("\xc2\x9b")");          // a control character of terminals
}

TEST(IsWord, PartsJoinedByDots) {
  for (const char* word : {"a", "_", "com.microsoft", "pkg.torch.2.1", "_0"}) EXPECT_TRUE(is_word(word)) << word;
  for (const char* other : {"", "0a", ".a", "a.", "a..b", "a-b", "a b", "größe"}) EXPECT_FALSE(is_word(other)) << other;
}

}  // namespace
}  // namespace tonnx
