// wide_vectors.h - functions that are compiled once more, for machines with vectors of 32 bytes.
#pragma once
#include <cstddef>

namespace tonnx {

#if defined(__x86_64__) && defined(__GNUC__)
/// Marks a function that may run only where has_wide_vectors().
#define TONNX_WIDE __attribute__((target("avx2")))
constexpr size_t kWideVector = 32;
inline bool has_wide_vectors() { return __builtin_cpu_supports("avx2") != 0; }
#else
#define TONNX_WIDE
constexpr size_t kWideVector = 16;
inline bool has_wide_vectors() { return false; }
#endif

}  // namespace tonnx
