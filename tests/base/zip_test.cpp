// zip_test.cpp - zip files in all forms that are read, and one hostile file for each thing that is refused.
#include "base/zip.h"

#include <fcntl.h>

#include <random>

#include "base/zip_builder.h"
#include "checks.h"

namespace tonnx {
namespace {

using namespace std::string_literals;

std::string content_of(ZipFile& zip, std::string_view name) {
  const ZipEntry* const entry = zip.find(name);
  if (entry == nullptr) return "(missing)";
  return std::string(zip.read(*entry).view());
}

void expect_refused(ErrorKind kind, std::string_view part, const std::string& bytes) {
  const Error error = error_of([&] { ZipFile zip(Bytes::own(bytes)); });
  EXPECT_EQ(error.kind(), kind) << error.what();
  EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
}

const std::string kLong(5000, 'x');
const std::string kTwo = make_zip({{"r/a", "first"}, {"r/b", "second"}});

TEST(Zip, ReadsEveryForm) {
  for (const bool wide_end : {false, true}) {
    ZipFile zip(Bytes::own(make_zip({{"r/stored", "abc"},
                                     {"r/deflated", kLong, true},
                                     {"r/follow", "sizes come later", false, true},
                                     {"r/both", kLong, true, true},
                                     {"r/wide", "64 bits", false, false, true},
                                     {"r/wide_follow", "64 bits", false, true, true},
                                     {"r/padded", "aligned", false, false, false, 0x800, 17},
                                     {"r/folder/", ""},
                                     {"r/empty", ""},
                                     {"r/empty_deflated", "", true}},
                                    wide_end, "a comment")));
    EXPECT_EQ(zip.entries().size(), 9U);
    EXPECT_EQ(content_of(zip, "r/stored"), "abc");
    EXPECT_EQ(content_of(zip, "r/deflated"), kLong);
    EXPECT_EQ(content_of(zip, "r/follow"), "sizes come later");
    EXPECT_EQ(content_of(zip, "r/both"), kLong);
    EXPECT_EQ(content_of(zip, "r/wide"), "64 bits");
    EXPECT_EQ(content_of(zip, "r/wide_follow"), "64 bits");
    EXPECT_EQ(content_of(zip, "r/padded"), "aligned");
    EXPECT_EQ(content_of(zip, "r/empty"), "");
    EXPECT_EQ(content_of(zip, "r/empty_deflated"), "");
    EXPECT_EQ(zip.find("r/folder/"), nullptr);
    EXPECT_EQ(zip.find("stored"), nullptr);
  }
  EXPECT_TRUE(ZipFile(Bytes::own(make_zip({}))).entries().empty());
}

TEST(Zip, StoredEntriesAreNotCopied) {
  const Bytes bytes = Bytes::own(kTwo);
  ZipFile zip(bytes);
  const Bytes content = zip.read(*zip.find("r/b"));
  EXPECT_GE(content.data(), bytes.data());
  EXPECT_LE(content.data() + content.size(), bytes.data() + bytes.size());
  EXPECT_EQ(content.owner(), bytes.owner());
}

TEST(Zip, ReadsPastFourGiB) {
  const TempFolder folder;
  const std::string path = folder / "large.zip";
  // a hole of 5 GiB takes no space: the first entry is that hole, the second begins behind it
  constexpr uint64_t kHole = uint64_t{5} << 30;
  std::string head = make_zip({{"r/hole", "", false, false, true}, {"r/behind", "here", false, false, true}});
  const size_t split = local_header_of(head, "r/behind");
  const size_t directory = central_header_of(head, "r/hole");
  put_number<uint64_t>(head, split - 16, kHole);
  put_number<uint64_t>(head, split - 8, kHole);
  const size_t first_extra = directory + 46 + 6 + 4;
  put_number<uint64_t>(head, first_extra, kHole);
  put_number<uint64_t>(head, first_extra + 8, kHole);
  const size_t second_extra = central_header_of(head, "r/behind") + 46 + 8 + 4;
  put_number<uint64_t>(head, second_extra + 16, split + kHole);
  const size_t end = head.size() - 22;
  std::string tail = head.substr(split, end - split);
  const auto append = [&tail](auto value) { tail.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  tail += "PK\6\6"s;
  append(uint64_t{44});
  append(uint32_t{45});
  append(uint64_t{0});
  append(uint64_t{2});
  append(uint64_t{2});
  append(uint64_t{end - directory});
  append(uint64_t{directory + kHole});
  tail += "PK\6\7"s;
  append(uint32_t{0});
  append(uint64_t{end + kHole});
  append(uint32_t{1});
  tail += "PK\5\6\0\0\0\0"s + std::string(12, '\xff') + "\0\0"s;

  const int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(fd, 0);
  const bool written =
      pwrite(fd, head.data(), split, 0) == static_cast<ssize_t>(split) &&
      pwrite(fd, tail.data(), tail.size(), static_cast<off_t>(split + kHole)) == static_cast<ssize_t>(tail.size());
  close(fd);
  if (!written) GTEST_SKIP() << "no files with holes here";
  ZipFile zip(map_file(path));
  EXPECT_EQ(zip.find("r/hole")->size, kHole);
  EXPECT_EQ(content_of(zip, "r/behind"), "here");
}

TEST(Zip, EveryTruncationIsRefused) {
  for (size_t size = 0; size < kTwo.size(); ++size) {
    expect_refused(ErrorKind::BadFile, "bad zip file", kTwo.substr(0, size));
  }
}

TEST(Zip, RefusesNamesThatLeaveTheArchive) {
  for (const char* const name : {"/etc/passwd", "\\windows", "C:\\x", "C:/x"}) {
    expect_refused(ErrorKind::BadFile, "absolute name", make_zip({{name, ""}}));
  }
  for (const char* const name : {"..", "../x", "a/../b", "a/..", "a\\..\\b"}) {
    expect_refused(ErrorKind::BadFile, "points outside", make_zip({{name, ""}}));
  }
  expect_refused(ErrorKind::BadFile, "no proper name", make_zip({{"", ""}}));
  expect_refused(ErrorKind::BadFile, "no proper name", make_zip({{"a\0b"s, ""}}));
  EXPECT_EQ(ZipFile(Bytes::own(make_zip({{"a..b/...", ""}, {"a:b", ""}}))).entries().size(), 2U);
}

TEST(Zip, RefusesWhatIsAmbiguous) {
  expect_refused(ErrorKind::BadFile, "two entries 'a'", make_zip({{"a", "1"}, {"b", "2"}, {"a", "3"}}));
  expect_refused(ErrorKind::BadFile, "has content", make_zip({{"a/", "1"}}));

  std::string zip = kTwo;  // both names at one place
  put_number<uint32_t>(zip, central_header_of(zip, "r/b") + 42, 0);
  expect_refused(ErrorKind::BadFile, "another one in its own header", zip);

  zip = kTwo;  // the first reaches into the second
  for (const size_t header : {local_header_of(zip, "r/a") + 18, central_header_of(zip, "r/a") + 20}) {
    put_number<uint32_t>(zip, header, 20);
    put_number<uint32_t>(zip, header + 4, 20);
  }
  expect_refused(ErrorKind::BadFile, "'r/a' and 'r/b' overlap", zip);

  zip = kTwo;
  put_number<uint32_t>(zip, local_header_of(zip, "r/a") + 22, 4);
  expect_refused(ErrorKind::BadFile, "two different sizes", zip);

  zip = kTwo;
  put_number<uint32_t>(zip, central_header_of(zip, "r/a") + 24, 4);
  expect_refused(ErrorKind::BadFile, "cannot have 4 bytes in 5", zip);

  zip = kTwo;
  zip[local_header_of(zip, "r/a") + 32] = 'x';
  expect_refused(ErrorKind::BadFile, "another one in its own header", zip);
}

TEST(Zip, RefusesWhatLiesOutside) {
  std::string zip = kTwo;
  put_number<uint32_t>(zip, central_header_of(zip, "r/b") + 42, 1U << 30);
  expect_refused(ErrorKind::BadFile, "not where the directory says", zip);

  zip = kTwo;
  for (const size_t header : {local_header_of(zip, "r/b") + 18, central_header_of(zip, "r/b") + 20}) {
    put_number<uint32_t>(zip, header, 1U << 30);
    put_number<uint32_t>(zip, header + 4, 1U << 30);
  }
  expect_refused(ErrorKind::BadFile, "past the end", zip);

  zip = kTwo;
  put_number<uint32_t>(zip, zip.size() - 6, 1U << 30);
  expect_refused(ErrorKind::BadFile, "outside the file", zip);

  zip = make_zip({{"a", "1", false, false, true}});
  put_number<uint64_t>(zip, central_header_of(zip, "a") + 46 + 1 + 4 + 16, UINT64_MAX - 10);
  expect_refused(ErrorKind::BadFile, "not where the directory says", zip);

  zip = make_zip({{"a", "1"}}, true);
  put_number<uint64_t>(zip, zip.size() - 22 - 12, UINT64_MAX - 3);
  expect_refused(ErrorKind::BadFile, "64-bit end record", zip);
}

TEST(Zip, RefusesCountsThatCannotBe) {
  std::string zip = kTwo;
  put_number<uint16_t>(zip, zip.size() - 14, 60000);
  put_number<uint16_t>(zip, zip.size() - 12, 60000);
  expect_refused(ErrorKind::BadFile, "60000 entries", zip);

  zip = kTwo;
  put_number<uint16_t>(zip, zip.size() - 14, 1);
  put_number<uint16_t>(zip, zip.size() - 12, 1);
  expect_refused(ErrorKind::BadFile, "more entries than it says", zip);

  zip = kTwo;
  put_number<uint16_t>(zip, zip.size() - 14, 1);
  expect_refused(ErrorKind::BadFile, "one part of several", zip);

  zip = make_zip({{"a", "1"}}, true);
  put_number<uint64_t>(zip, zip.size() - 22 - 20 - 56 + 24, UINT64_MAX);
  put_number<uint64_t>(zip, zip.size() - 22 - 20 - 56 + 32, UINT64_MAX);
  expect_refused(ErrorKind::BadFile, "entries cannot be", zip);
}

TEST(Zip, SaysWhatItDoesNotRead) {
  expect_refused(ErrorKind::Unsupported, "'a' of the zip file is encrypted",
                 make_zip({{"a", "1", false, false, false, 1}}));
  std::string zip = make_zip({{"a", "1"}});
  put_number<uint16_t>(zip, central_header_of(zip, "a") + 10, 12);
  expect_refused(ErrorKind::Unsupported, "method 12", zip);
}

TEST(Zip, DamagedDeflateIsRefused) {
  const auto refused = [](std::string bytes) {
    ZipFile zip(Bytes::own(std::move(bytes)));
    return std::string(error_of([&] { zip.read(zip.entries().front()); }).what());
  };
  std::string zip = make_zip({{"a", kLong, true}});
  put_number<uint32_t>(zip, central_header_of(zip, "a") + 16, 1);
  EXPECT_EQ(refused(zip), "bad zip file: the checksum of entry 'a' is wrong");

  zip = make_zip({{"a", kLong, true}});
  zip[local_header_of(zip, "a") + 31] = '\x07';
  EXPECT_EQ(refused(zip), "bad zip file: entry 'a' does not inflate");

  for (const uint32_t size : {4999U, 5001U, 100U, 20000U}) {  // more or less than is there
    zip = make_zip({{"a", kLong, true}});
    put_number<uint32_t>(zip, central_header_of(zip, "a") + 24, size);
    put_number<uint32_t>(zip, local_header_of(zip, "a") + 22, size);
    EXPECT_EQ(refused(zip), "bad zip file: entry 'a' does not inflate");
  }
}

TEST(Zip, BombsAreRefused) {
  std::string zip = make_zip({{"a", kLong, true}});
  put_number<uint32_t>(zip, central_header_of(zip, "a") + 24, UINT32_MAX - 1);
  put_number<uint32_t>(zip, local_header_of(zip, "a") + 22, UINT32_MAX - 1);
  expect_refused(ErrorKind::BadFile, "cannot have 4294967294 bytes", zip);

  // noise of 600 kB that could be 20 MB by its size alone: each try counts, though nothing comes out
  std::string noise(600'000, '\0');
  std::mt19937 random(1);
  for (char& c : noise) c = static_cast<char>(random());
  zip = make_zip({{"a", noise, true}});
  put_number<uint32_t>(zip, central_header_of(zip, "a") + 24, 20'000'000);
  put_number<uint32_t>(zip, local_header_of(zip, "a") + 22, 20'000'000);
  ZipFile many(Bytes::own(zip));
  EXPECT_ERROR(BadFile, "does not inflate", many.read(many.entries().front()));
  EXPECT_ERROR(BadFile, "which is absurd", many.read(many.entries().front()));
}

TEST(Zip, WhatIsParsedMayGrowLess) {
  const std::string text(4'000'000, ' ');
  ZipFile zip(Bytes::own(make_zip({{"deflated", text, true}, {"small", kLong, true}})));
  EXPECT_EQ(zip.read(*zip.find("deflated")).size(), text.size());
  EXPECT_ERROR(BadFile, "to be parsed, which is absurd", zip.read_document(*zip.find("deflated")));
  EXPECT_EQ(zip.read_document(*zip.find("small")).view(), kLong);
  ZipFile stored(Bytes::own(make_zip({{"stored", text}})));
  EXPECT_EQ(stored.read_document(*stored.find("stored")).size(), text.size());
}

TEST(Zip, BombsInsideOfOthersAreRefused) {
  const std::string zeros(6'000'000, '\0');
  const std::string inner = make_zip({{"a", zeros, true}, {"b", zeros, true}});
  ZipFile outer(Bytes::own(make_zip({{"inner", inner, true}, {"c", zeros, true}})));
  const Bytes content = outer.read(*outer.find("inner"));
  ZipFile nested(content, outer);
  EXPECT_EQ(nested.read(*nested.find("a")).size(), zeros.size());  // within what the outer one may
  EXPECT_ERROR(BadFile, "which is absurd", nested.read(*nested.find("b")));
}

TEST(Zip, AnEndRecordInACommentIsNoOther) {
  // the last record counts, and its directory must end before it: that of the comment is none
  std::string zip = make_zip({{"r/a", "first"}}, false, make_zip({{"r/b", "second"}}));
  expect_refused(ErrorKind::BadFile, "", zip);
  ZipFile kept(Bytes::own(make_zip({{"r/a", "first"}}, false, "PK\5\6 is no record")));
  EXPECT_EQ(content_of(kept, "r/a"), "first");
}

TEST(Zip, LiesOfThe64BitForms) {
  const std::string wide = make_zip({{"a", "1"}}, true);
  const size_t record = wide.size() - 22 - 20 - 56;
  for (const auto& [at, value] : std::initializer_list<std::pair<size_t, uint64_t>>{
           {record + 48, UINT64_MAX},                // where the directory begins
           {record + 48, uint64_t{1} << 63},         //
           {record + 40, UINT64_MAX},                // how long it is
           {record + 40, UINT64_MAX - 40},           // so that begin and length together wrap
           {record + 24, 7},                         // entries on this disk
           {record + 32, uint64_t{1} << 62},         // entries in all
           {wide.size() - 22 - 20 + 8, UINT64_MAX},  // where the record is
           {wide.size() - 22 - 20 + 8, record + 1}}) {
    std::string zip = wide;
    put_number<uint64_t>(zip, at, value);
    expect_refused(ErrorKind::BadFile, "bad zip file", zip);
  }
  const std::string entry = make_zip({{"a", "1", false, false, true}});
  for (const uint64_t value : {UINT64_MAX, uint64_t{1} << 63, uint64_t{2}}) {
    for (const size_t field : {4U, 12U, 20U}) {  // size, packed size and place in the extra field of the directory
      std::string zip = entry;
      put_number<uint64_t>(zip, central_header_of(zip, "a") + 46 + 1 + field, value);
      expect_refused(ErrorKind::BadFile, "bad zip file", zip);
    }
  }
}

TEST(Zip, ManyEntriesAreFoundQuickly) {
  std::vector<ZipPart> parts;
  for (int i = 0; i < 20'000; ++i) parts.push_back({fmt::format("r/{}", i), ""});
  ZipFile zip(Bytes::own(make_zip(parts)));
  for (const ZipPart& part : parts) ASSERT_NE(zip.find(part.name), nullptr);
  EXPECT_EQ(zip.find("r/20000"), nullptr);
  EXPECT_EQ(zip.find(""), nullptr);
  EXPECT_EQ(zip.find("z"), nullptr);
}

}  // namespace
}  // namespace tonnx
