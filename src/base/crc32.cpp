// crc32.cpp - CRC-32 by carry-less multiplication where the processor has it, else as zlib does it.
#include "base/crc32.h"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tonnx {

#if defined(__x86_64__)
namespace {

// Remainders of powers of x by the polynomial of CRC-32, bits reversed: to carry 64 bytes, 16 bytes and 8 bytes along.
constexpr long long kBy64Low = 0x0154442bd4, kBy64High = 0x01c6e41596;
constexpr long long kBy16Low = 0x01751997d0, kBy16High = 0x00ccaa009e;
constexpr long long kBy8 = 0x0163cd6124;
constexpr long long kPolynomial = 0x01db710641, kInverse = 0x01f7011641;

constexpr size_t kStep = 64;

#define TONNX_CLMUL __attribute__((target("pclmul,sse4.1")))

TONNX_CLMUL __m128i load(const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

/// `sum`, carried along by as many bytes as `by` says, plus what stands there.
TONNX_CLMUL __m128i folded(__m128i sum, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(sum, by, 0x00), high = _mm_clmulepi64_si128(sum, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/// `data` is of at least 64 bytes, and of a multiple of 16; `crc` and the result are inverted.
TONNX_CLMUL uint32_t fold(std::string_view data, uint32_t crc) {
  const char* at = data.data();
  const char* end = at + data.size();
  __m128i sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = load(at + 16 * i);
  sum[0] = _mm_xor_si128(sum[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  at += kStep;
  const __m128i by64 = _mm_set_epi64x(kBy64High, kBy64Low), by16 = _mm_set_epi64x(kBy16High, kBy16Low);
  for (; end - at >= static_cast<std::ptrdiff_t>(kStep); at += kStep) {
    for (int i = 0; i < 4; ++i) sum[i] = folded(sum[i], by64, load(at + 16 * i));
  }
  __m128i all = sum[0];
  for (int i = 1; i < 4; ++i) all = folded(all, by16, sum[i]);
  for (; at < end; at += 16) all = folded(all, by16, load(at));

  const __m128i words = _mm_setr_epi32(~0, 0, ~0, 0);
  all = _mm_xor_si128(_mm_srli_si128(all, 8), _mm_clmulepi64_si128(all, by16, 0x10));
  all = _mm_xor_si128(_mm_srli_si128(all, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(all, words), _mm_set_epi64x(0, kBy8), 0x00));
  const __m128i divisor = _mm_set_epi64x(kInverse, kPolynomial);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(all, words), divisor, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, words), divisor, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(all, quotient), 1));
}

}  // namespace
#endif

uint32_t crc32_of(std::string_view data, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (has_clmul && data.size() >= kStep) {
    const std::string_view head = data.substr(0, data.size() / 16 * 16);
    crc = ~fold(head, ~crc);
    data.remove_prefix(head.size());
  }
#endif
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

}  // namespace tonnx
