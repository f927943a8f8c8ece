// zip_writer_test.cpp - what is written is read again, checksums are those of zlib, and data is aligned.
#include "base/zip_writer.h"

#include <zlib.h>

#include <cstdio>
#include <filesystem>

#include "base/crc32.h"
#include "base/zip.h"
#include "checks.h"

namespace tonnx {
namespace {

std::string noise(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 12345;
  for (char& c : bytes) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return bytes;
}

TEST(Crc32, IsThatOfZlibAtAnyLengthAndFromAnyStart) {
  const std::string bytes = noise(1000);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string_view part = std::string_view(bytes).substr(size % 7, size - std::min(size, size % 7));
    const uLong expected = crc32_z(99, reinterpret_cast<const Bytef*>(part.data()), part.size());
    EXPECT_EQ(crc32_of(part, 99), expected) << size;
  }
}

TEST(ZipWriter, EntriesAreReadAgainAndAligned) {
  std::string bytes;
  ZipWriter zip(bytes);
  zip.add("r/empty", "");
  zip.add("r/text", "abc");
  zip.begin("r/parts");
  zip.write(std::string_view("one "));
  zip.write(Bytes::own(std::string("two")));
  zip.end();
  zip.finish();
  ZipFile read(Bytes::own(bytes));
  ASSERT_EQ(read.entries().size(), 3U);
  const auto content = [&](std::string_view name) { return std::string(read.read(*read.find(name)).view()); };
  EXPECT_EQ(content("r/empty"), "");
  EXPECT_EQ(content("r/text"), "abc");
  EXPECT_EQ(content("r/parts"), "one two");
  for (const ZipEntry& entry : read.entries()) {
    const std::string_view text = entry.packed.view();
    EXPECT_EQ(entry.crc, crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
    const auto whole = reinterpret_cast<uintptr_t>(read.entries()[0].packed.data());
    EXPECT_EQ((reinterpret_cast<uintptr_t>(text.data()) - whole) % 64, 0U) << entry.name;
  }
}

TEST(ZipWriter, MappedBytesGoFromFileToFile) {
  const std::string folder = testing::TempDir() + "zip_writer";
  std::filesystem::create_directories(folder);
  const std::string source = folder + "/source", target = folder + "/target.zip", bytes = noise(3'000'000);
  {
    OutputFile file(source);
    file.write(std::string_view(bytes));
    file.commit();
  }
  {
    const Bytes mapped = map_file(source);
    OutputFile file(target);
    ZipWriter zip(file);
    zip.begin("r/large");
    zip.write(mapped.slice(1001, 2'500'000));
    zip.end();
    zip.finish();
    file.commit();
  }
  ZipFile read(map_file(target));
  EXPECT_TRUE(read.read(read.entries()[0]).view() == std::string_view(bytes).substr(1001, 2'500'000));
  EXPECT_EQ(read.entries()[0].crc, crc32_of(std::string_view(bytes).substr(1001, 2'500'000)));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tonnx
