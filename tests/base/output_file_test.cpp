// output_file_test.cpp - files appear whole or not at all.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <set>

#include "base/temporary.h"
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

TEST(OutputFile, TakesNoMoreRoomThanItsContent) {
  const TempFolder folder;
  const std::string content(5 << 20, 'x');
  write_file(folder / "in", content);
  const Bytes source = map_file(folder / "in");
  const Bytes runs[] = {Bytes::own(std::string("head")), source.slice(0, 3 << 20), source.slice(1, 100)};
  OutputFile file(folder / "out");
  file.write(runs);
  file.write(source.slice(0, 2 << 20));
  file.commit();
  EXPECT_EQ(content_of(folder / "out"), "head" + content + std::string(100, 'x'));
  struct stat info {};
  ASSERT_EQ(stat((folder / "out").c_str(), &info), 0);
  EXPECT_EQ(info.st_size, (5 << 20) + 104);
  EXPECT_LE(info.st_blocks * 512, info.st_size + (1 << 18));
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

unsigned mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

void write_out(const std::string& path, std::string_view text = "new") {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

TEST(OutputFile, HasNoNameBeforeItsCommit) {
  const TempFolder folder;
  OutputFile file(folder / "out");
  file.write(std::string(1 << 20, 'x'));
  if (folder.file_count() != 0) GTEST_SKIP() << "this file system has no files without names";
  file.commit();
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(OutputFile, KeepsThePermissionsOfWhatItReplaces) {
  const TempFolder folder;
  const mode_t before = umask(027);
  write_out(folder / "new");
  EXPECT_EQ(mode_of(folder / "new"), 0640U);
  for (const unsigned mode : {0600U, 0644U, 0666U, 0755U}) {
    write_file(folder / "old", "old");
    ASSERT_EQ(chmod((folder / "old").c_str(), mode), 0);
    write_out(folder / "old");
    EXPECT_EQ(content_of(folder / "old"), "new");
    EXPECT_EQ(mode_of(folder / "old"), mode);
  }
  umask(before);
}

TEST(OutputFile, ReplacesALinkAndLeavesAloneWhatItLeadsTo) {
  const TempFolder folder;
  write_file(folder / "precious", "old");
  std::filesystem::create_symlink(folder / "precious", folder / "soft");
  std::filesystem::create_symlink(folder / "nowhere", folder / "dangling");
  std::filesystem::create_hard_link(folder / "precious", folder / "hard");
  for (const char* const name : {"soft", "dangling", "hard"}) {
    write_out(folder / name);
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / name))) << name;
    EXPECT_EQ(content_of(folder / name), "new");
  }
  EXPECT_EQ(content_of(folder / "precious"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
}

TEST(OutputFile, WritesToDevicesAndPipesAndLeavesThemThere) {
  const TempFolder folder;
  write_out("/dev/null");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_ERROR(BadFile, "cannot write", write_out(folder / "pipe"));  // nobody reads, and we do not wait
  const int reader = open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_out(folder / "pipe");
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 3);
  close(reader);
  EXPECT_EQ(std::string(text), "new");
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_ERROR(BadFile, "it is a directory", write_out(folder / "."));
}

TEST(OutputFile, AddsToAFileThatIsOpenAlready) {
  const TempFolder folder;
  const int fd = open((folder / "out").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(write(fd, "head ", 5), 5);
  write_out(fmt::format("/proc/self/fd/{}", fd));  // as /dev/stdout is one
  close(fd);
  EXPECT_EQ(content_of(folder / "out"), "head new");
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(OutputFile, AFinishedFileIsPutInItsPlace) {
  const TempFolder folder;
  write_file(folder / "old", "old");
  ASSERT_EQ(chmod((folder / "old").c_str(), 0600), 0);
  {
    const TemporaryFolder apart(folder / "");
    write_file(apart.file("a"), "new");
    write_file(apart.file("b"), "left over");
    OutputFile(folder / "old", apart.file("a")).commit();
  }
  EXPECT_EQ(content_of(folder / "old"), "new");
  EXPECT_EQ(mode_of(folder / "old"), 0600U);
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(OutputFile, TwoWritersOfOneTargetLeaveOneWholeFile) {
  const TempFolder folder;
  OutputFile first(folder / "out"), second(folder / "out");
  first.write(std::string(100000, '1'));
  second.write(std::string(100000, '2'));
  second.commit();
  first.commit();
  EXPECT_EQ(content_of(folder / "out"), std::string(100000, '1'));
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(Temporary, NamesAreNeverTheSame) {
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) names.insert(unforeseen_name("x"));
  EXPECT_EQ(names.size(), 1000U);
}

TEST(Temporary, WhatIsNotedGoesAndNothingElse) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "noted");
  for (int i = 0; i < 300; ++i) write_file(folder / fmt::format("noted/{}", i), "");
  for (const char* const name : {"one", "two", "kept"}) write_file(folder / name, "");
  const TemporaryPath one(folder / "one"), inner(folder / "noted");
  TemporaryPath moved(folder / "two");
  const TemporaryPath two(std::move(moved));
  { const TemporaryPath forgotten(folder / "kept"); }
  remove_temporaries();
  EXPECT_EQ(folder.file_count(), 1U);
  EXPECT_TRUE(std::filesystem::exists(folder / "kept"));
}

TEST(Temporary, MoreThanThereAreSlotsDoNoHarm) {
  const TempFolder folder;
  std::vector<TemporaryPath> many;
  for (int i = 0; i < 1000; ++i) many.emplace_back(folder / fmt::format("{}", i));
  EXPECT_EQ(many.back().path(), folder / "999");
}

}  // namespace
}  // namespace tonnx
