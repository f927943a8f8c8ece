// crc32.h - the checksum of zip files, as fast as the machine can.
#pragma once
#include <cstdint>
#include <string_view>

namespace tonnx {

/// Goes on from the checksum of what was in front; 0 at the beginning.
uint32_t crc32_of(std::string_view data, uint32_t crc = 0);

}  // namespace tonnx
