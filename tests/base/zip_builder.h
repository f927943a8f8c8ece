// zip_builder.h - makes small zip files for tests, in the forms that PyTorch, Python and others write.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx {

struct ZipPart {
  std::string name;
  std::string content;
  bool deflate = false;
  bool sizes_follow = false;  // sizes are zero in the local header and come after the data
  bool wide = false;          // sizes and position in the 64-bit form
  uint16_t flags = 0;
  uint16_t padding = 0;  // bytes of an extra field, in the local header only
};

std::string make_zip(const std::vector<ZipPart>& parts, bool wide_end = false, const std::string& comment = {});

/// Where the headers of an entry begin.
size_t local_header_of(const std::string& zip, std::string_view name);
size_t central_header_of(const std::string& zip, std::string_view name);

template <class T>
void put_number(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

}  // namespace tonnx
