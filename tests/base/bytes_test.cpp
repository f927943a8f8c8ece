// bytes_test.cpp - runs of bytes and their owners.
#include "base/bytes.h"

#include "checks.h"

namespace tonnx {
namespace {

TEST(Bytes, ASliceKeepsTheOwnerAlive) {
  Bytes part;
  {
    const Bytes all = Bytes::own(std::string("hello world"));
    part = all.slice(6, 5);
  }
  EXPECT_EQ(part.view(), "world");
}

TEST(Bytes, ASliceByView) {
  const Bytes all = Bytes::own(std::vector<uint8_t>{1, 2, 3, 4});
  const Bytes part = all.slice(all.view().substr(1, 2));
  ASSERT_EQ(part.size(), 2U);
  EXPECT_EQ(part.data()[0], 2);
  EXPECT_EQ(part.owner(), all.owner());
}

TEST(Bytes, NothingIsEmpty) {
  EXPECT_TRUE(Bytes().empty());
  EXPECT_EQ(Bytes().view(), "");
  EXPECT_TRUE(Bytes::own(std::string()).empty());
}

TEST(MapFile, ShowsTheContentAndWhereItCameFrom) {
  const TempFolder folder;
  write_file(folder / "a", "some bytes");
  const Bytes mapped = map_file(folder / "a");
  EXPECT_EQ(mapped.view(), "some bytes");
  EXPECT_GE(mapped.owner()->fd(), 0);
  EXPECT_EQ(mapped.owner()->begin(), mapped.data());
}

TEST(MapFile, APageThatIsWrittenToLeavesTheFileAsItIs) {
  const TempFolder folder;
  write_file(folder / "a", "some bytes");
  const Bytes mapped = map_file(folder / "a");
  const_cast<uint8_t*>(mapped.data())[0] = 'S';
  EXPECT_EQ(mapped.view(), "Some bytes");
  EXPECT_EQ(content_of(folder / "a"), "some bytes");
}

TEST(MapFile, AnEmptyFileIsEmpty) {
  const TempFolder folder;
  write_file(folder / "a", "");
  EXPECT_TRUE(map_file(folder / "a").empty());
}

TEST(MapFile, RefusesWhatIsNoFile) {
  const TempFolder folder;
  EXPECT_ERROR(BadFile, "No such file", map_file(folder / "missing"));
  EXPECT_ERROR(BadFile, "not a regular file", map_file(folder / ""));
  EXPECT_ERROR(BadFile, "not a regular file", map_file("/dev/null"));
}

}  // namespace
}  // namespace tonnx
