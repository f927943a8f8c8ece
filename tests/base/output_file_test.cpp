// output_file_test.cpp - files appear whole or not at all.
#include "base/output_file.h"

#include "checks.h"

namespace tonnx {
namespace {

TEST(OutputFile, AppearsWithItsCommit) {
  const TempFolder folder;
  OutputFile file(folder / "out");
  file.write("abc");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  file.commit();
  EXPECT_EQ(content_of(folder / "out"), "abc");
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(OutputFile, LeavesNothingBehindWithoutCommit) {
  const TempFolder folder;
  { OutputFile(folder / "out").write(std::string(1 << 20, 'x')); }
  EXPECT_EQ(folder.file_count(), 0U);
}

TEST(OutputFile, LeavesTheOldFileWithoutCommit) {
  const TempFolder folder;
  write_file(folder / "out", "old");
  { OutputFile(folder / "out").write("new"); }
  EXPECT_EQ(content_of(folder / "out"), "old");
  OutputFile file(folder / "out");
  file.write("new");
  file.commit();
  EXPECT_EQ(content_of(folder / "out"), "new");
}

TEST(OutputFile, ReplacesTheVeryFileThatItCopiesFrom) {
  const TempFolder folder;
  std::string content(300000, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  write_file(folder / "m", content);
  const Bytes source = map_file(folder / "m");
  OutputFile file(folder / "m");
  file.write("head");
  file.write(source.slice(100, 200000));  // long enough to go from file to file
  file.write(source.slice(0, 10));
  EXPECT_EQ(file.position(), 200014U);
  file.commit();
  EXPECT_EQ(content_of(folder / "m"), "head" + content.substr(100, 200000) + content.substr(0, 10));
}

TEST(OutputFile, PadsToTheNextMultiple) {
  const TempFolder folder;
  OutputFile file(folder / "out");
  file.pad_to(8);
  EXPECT_EQ(file.position(), 0U);
  file.write("abc");
  file.pad_to(8, '.');
  file.pad_to(8, '.');
  file.commit();
  EXPECT_EQ(content_of(folder / "out"), "abc.....");
}

TEST(OutputFile, LongAndShortWritesKeepTheirOrder) {
  const TempFolder folder;
  OutputFile file(folder / "out");
  std::string expected;
  for (const size_t size :
       {size_t{10}, size_t{70000}, size_t{1}, size_t{65536}, size_t{65535}, size_t{2}, size_t{200000}}) {
    const std::string part(size, static_cast<char>('a' + expected.size() % 26));
    file.write(part);
    expected += part;
  }
  file.commit();
  EXPECT_EQ(content_of(folder / "out"), expected);
}

TEST(OutputFile, RefusesWhereItCannotWrite) {
  const TempFolder folder;
  EXPECT_ERROR(BadFile, "No such file or directory", OutputFile(folder / "missing/out"));
  EXPECT_ERROR(BadFile, "it is a directory", OutputFile(folder / ""));
}

TEST(CommitAll, AllAppearTogether) {
  const TempFolder folder;
  std::vector<OutputFile> files;
  files.emplace_back(folder / "a");
  files.emplace_back(folder / "b");
  files[0].write("1");
  files[1].write("2");
  commit_all(files);
  EXPECT_EQ(content_of(folder / "a") + content_of(folder / "b"), "12");
  EXPECT_EQ(folder.file_count(), 2U);
}

}  // namespace
}  // namespace tonnx
