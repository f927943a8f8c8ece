// zip_format.h - the marks and sizes of the records of zip files, as reader and writer have them.
#pragma once
#include <cstdint>

namespace tonnx {

inline constexpr uint32_t kLocalHeader = 0x04034b50;
inline constexpr uint32_t kCentralHeader = 0x02014b50;
inline constexpr uint32_t kDescriptor = 0x08074b50;
inline constexpr uint32_t kEndRecord = 0x06054b50;
inline constexpr uint32_t kEndRecord64 = 0x06064b50;
inline constexpr uint32_t kEndLocator64 = 0x07064b50;
inline constexpr uint64_t kLocalHeaderSize = 30;
inline constexpr uint64_t kCentralHeaderSize = 46;
inline constexpr uint64_t kEndRecordSize = 22;
inline constexpr uint64_t kEndRecord64Size = 56;
inline constexpr uint64_t kEndLocator64Size = 20;
inline constexpr uint64_t kIn64 = 0xFFFFFFFF;  // the value is in the 64-bit form instead
inline constexpr uint64_t kIn64Short = 0xFFFF;

}  // namespace tonnx
