// zip_builder.cpp - writes zip files from the words of the specification.
#include "base/zip_builder.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace tonnx {
namespace {

template <class T>
void add(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string deflated(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

struct Written {
  uint32_t crc = 0;
  uint64_t packed_size = 0;
  uint64_t offset = 0;
};

/// What both kinds of header have in common, from the version to the length of the name.
void add_fields(std::string& zip, const ZipPart& part, const Written& written, bool hide_sizes) {
  add<uint16_t>(zip, part.wide ? 45 : 20);
  add<uint16_t>(zip, part.flags | (part.sizes_follow ? 8 : 0));
  add<uint16_t>(zip, part.deflate ? 8 : 0);
  add<uint32_t>(zip, 0);  // time and date
  add<uint32_t>(zip, hide_sizes ? 0 : written.crc);
  for (const uint64_t size : {written.packed_size, static_cast<uint64_t>(part.content.size())}) {
    add<uint32_t>(zip, hide_sizes ? 0 : part.wide ? UINT32_MAX : static_cast<uint32_t>(size));
  }
  add<uint16_t>(zip, static_cast<uint16_t>(part.name.size()));
}

void add_local(std::string& zip, const ZipPart& part, Written& written) {
  const std::string packed = part.deflate ? deflated(part.content) : part.content;
  written.crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(part.content.data()), static_cast<uInt>(part.content.size())));
  written.packed_size = packed.size();
  written.offset = zip.size();
  zip += "PK\3\4";
  add_fields(zip, part, written, part.sizes_follow);
  const bool has_wide = part.wide && !part.sizes_follow;
  add<uint16_t>(zip, static_cast<uint16_t>((has_wide ? 20 : 0) + (part.padding != 0 ? 4 + part.padding : 0)));
  zip += part.name;
  if (part.padding != 0) {
    zip += "FB";
    add<uint16_t>(zip, part.padding);
    zip.append(part.padding, 'Z');
  }
  if (has_wide) {
    add<uint16_t>(zip, 1);
    add<uint16_t>(zip, 16);
    add<uint64_t>(zip, part.content.size());
    add<uint64_t>(zip, packed.size());
  }
  zip += packed;
  if (part.sizes_follow) {
    zip += "PK\7\10";
    add<uint32_t>(zip, written.crc);
    add<uint32_t>(zip, static_cast<uint32_t>(packed.size()));
    add<uint32_t>(zip, static_cast<uint32_t>(part.content.size()));
  }
}

void add_central(std::string& zip, const ZipPart& part, const Written& written) {
  zip += "PK\1\2";
  add<uint16_t>(zip, 0);
  add_fields(zip, part, written, false);
  add<uint16_t>(zip, part.wide ? 28 : 0);
  add<uint16_t>(zip, 0);  // comment
  add<uint16_t>(zip, 0);  // disk
  add<uint16_t>(zip, 0);
  add<uint32_t>(zip, 0);
  add<uint32_t>(zip, part.wide ? UINT32_MAX : static_cast<uint32_t>(written.offset));
  zip += part.name;
  if (part.wide) {
    add<uint16_t>(zip, 1);
    add<uint16_t>(zip, 24);
    add<uint64_t>(zip, part.content.size());
    add<uint64_t>(zip, written.packed_size);
    add<uint64_t>(zip, written.offset);
  }
}

size_t header_of(const std::string& zip, std::string_view name, std::string_view mark, size_t size) {
  for (size_t at = zip.find(mark); at != std::string::npos; at = zip.find(mark, at + 1)) {
    if (std::string_view(zip).substr(at + size, name.size()) == name) return at;
  }
  ADD_FAILURE() << "no entry " << name;
  return 0;
}

}  // namespace

std::string make_zip(const std::vector<ZipPart>& parts, bool wide_end, const std::string& comment) {
  std::string zip;
  std::vector<Written> written(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) add_local(zip, parts[i], written[i]);
  const size_t begin = zip.size();
  for (size_t i = 0; i < parts.size(); ++i) add_central(zip, parts[i], written[i]);
  const size_t end = zip.size();
  if (wide_end) {
    zip += "PK\6\6";
    add<uint64_t>(zip, 44);
    add<uint32_t>(zip, 45);
    add<uint32_t>(zip, 0);
    add<uint32_t>(zip, 0);
    add<uint64_t>(zip, parts.size());
    add<uint64_t>(zip, parts.size());
    add<uint64_t>(zip, end - begin);
    add<uint64_t>(zip, begin);
    zip += "PK\6\7";
    add<uint32_t>(zip, 0);
    add<uint64_t>(zip, end);
    add<uint32_t>(zip, 1);
  }
  zip += "PK\5\6";
  add<uint32_t>(zip, 0);
  for (int i = 0; i < 2; ++i) add<uint16_t>(zip, wide_end ? UINT16_MAX : static_cast<uint16_t>(parts.size()));
  add<uint32_t>(zip, wide_end ? UINT32_MAX : static_cast<uint32_t>(end - begin));
  add<uint32_t>(zip, wide_end ? UINT32_MAX : static_cast<uint32_t>(begin));
  add<uint16_t>(zip, static_cast<uint16_t>(comment.size()));
  return zip + comment;
}

size_t local_header_of(const std::string& zip, std::string_view name) { return header_of(zip, name, "PK\3\4", 30); }
size_t central_header_of(const std::string& zip, std::string_view name) { return header_of(zip, name, "PK\1\2", 46); }

}  // namespace tonnx
