// checked_int.h - sums and products of sizes that come from files; none of them wraps around.
#pragma once
#include <cstdint>

namespace tonnx {

/// Throws InvalidModel: a size that the file asks for does not fit into 64 bits.
[[noreturn]] void fail_overflow();

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
    fail_overflow();
  return sum;
}

inline int64_t checked_sub(int64_t a, int64_t b) {
  int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) [[unlikely]]
    fail_overflow();
  return difference;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) [[unlikely]]
    fail_overflow();
  return product;
}

}  // namespace tonnx
