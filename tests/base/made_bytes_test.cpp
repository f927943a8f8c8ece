// made_bytes_test.cpp - results that are made in pieces are whole, in memory and in a temporary file.
#include "base/made_bytes.h"

#include "checks.h"

namespace tonnx {
namespace {

uint8_t byte_at(size_t at) { return static_cast<uint8_t>(at * 2654435761U >> 24U); }

TEST(MadeBytes, AreWholeInMemoryAndInAFile) {
  constexpr size_t kPastMemory = (size_t{1} << 26) + 1003;  // more than large results may take of it
  for (const size_t size : {size_t{0}, size_t{1000}, (size_t{1} << 21) + 5, kPastMemory}) {
    const Bytes bytes = made_bytes(size, [](size_t offset, uint8_t* into, size_t count) {
      for (size_t i = 0; i < count; ++i) into[i] = byte_at(offset + i);
    });
    ASSERT_EQ(bytes.size(), size);
    size_t wrong = 0;
    for (size_t i = 0; i < size; ++i) wrong += bytes.data()[i] != byte_at(i) ? 1 : 0;
    EXPECT_EQ(wrong, 0U) << size;
  }
}

}  // namespace
}  // namespace tonnx
