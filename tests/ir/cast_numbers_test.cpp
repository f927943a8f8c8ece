// cast_numbers_test.cpp - floats become those of another type as the definition of the types says, whenever they are
// made.
#include "ir/cast_numbers.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/temporary.h"
#include "checks.h"
#include "ir/transposed.h"

namespace tonnx {
namespace {

constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

/// A float type by its definition: bits of the fraction, and the largest exponent.
struct Definition {
  int bits, fraction, largest;
};

Definition definition_of(DType dtype) {
  switch (dtype) {
    case DType::Float16: return {16, 10, 15};
    case DType::BFloat16: return {16, 7, 127};
    case DType::Float32: return {32, 23, 127};
    default: return {64, 52, 1023};
  }
}

/// The number that bits mean: every one of these types is a part of double.
double meaning(DType dtype, uint64_t bits) {
  const Definition d = definition_of(dtype);
  const uint64_t fraction = bits & ((uint64_t{1} << d.fraction) - 1);
  const auto exponent = static_cast<int>(bits >> d.fraction & static_cast<uint64_t>(2 * d.largest + 1));
  const double sign = (bits >> (d.bits - 1) & 1) != 0 ? -1 : 1;
  if (exponent == 2 * d.largest + 1)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  const double significand = std::ldexp(static_cast<double>(fraction), -d.fraction) + (exponent > 0 ? 1 : 0);
  return sign * std::ldexp(significand, std::max(exponent, 1) - d.largest);
}

/// The bits of the number of the type that is nearest, by rounding a multiple of its last place.
uint64_t nearest(DType dtype, double number) {
  const Definition d = definition_of(dtype);
  const uint64_t sign = static_cast<uint64_t>(std::signbit(number)) << (d.bits - 1);
  const uint64_t infinity = static_cast<uint64_t>(2 * d.largest + 1) << d.fraction;
  if (std::isinf(number)) return sign | infinity;
  if (number == 0) return sign;
  const int exponent = std::max(std::ilogb(number), 1 - d.largest);
  const double places = std::nearbyint(std::ldexp(std::fabs(number), d.fraction - exponent));
  // a carry out of the fraction goes to the exponent, as it should; without a hidden bit the exponent is 0
  const auto whole = static_cast<uint64_t>(places);
  const uint64_t bits = (static_cast<uint64_t>(exponent + d.largest - 1) << d.fraction) + whole;
  return sign | std::min(bits, infinity);
}

uint64_t bits_at(const uint8_t* from, DType dtype, int64_t index) {
  const auto width = static_cast<size_t>(info(dtype).bits / 8);
  uint64_t bits = 0;
  std::memcpy(&bits, from + static_cast<size_t>(index) * width, width);
  return bits;
}

Tensor tensor_of(DType dtype, const std::vector<uint64_t>& codes) {
  const auto width = static_cast<size_t>(info(dtype).bits / 8);
  std::vector<uint8_t> bytes(codes.size() * width);
  for (size_t i = 0; i < codes.size(); ++i) std::memcpy(bytes.data() + i * width, &codes[i], width);
  Tensor result;
  result.dtype = dtype;
  result.dims = {static_cast<int64_t>(codes.size())};
  result.data = Bytes::own(std::move(bytes));
  return result;
}

/// All codes of a type of 16 bits; of the others what lies at, between and around the numbers of all smaller types, and
/// the codes at the borders of exponents.
Tensor numbers_to_cast(DType from) {
  const Definition d = definition_of(from);
  std::vector<uint64_t> codes;
  if (d.bits == 16) {
    for (uint64_t code = 0; code < 0x10000; ++code) codes.push_back(code);
    return tensor_of(from, codes);
  }
  for (const DType small : {DType::Float16, DType::BFloat16, DType::Float32}) {
    if (info(small).bits >= d.bits) continue;
    const int step_bits = std::max(definition_of(small).bits - 16, 0);
    for (uint64_t code = 0; code < 0x10000; ++code) {
      const uint64_t one = code << step_bits | (code * 0x9e37 & ((uint64_t{1} << step_bits) - 1));
      const double number = meaning(small, one), next = meaning(small, one + 1);
      if (!std::isfinite(number)) continue;
      const double middle = std::isfinite(next) ? number / 2 + next / 2 : number;
      for (const double each : {number, middle}) {
        const uint64_t bits = nearest(from, each);
        for (const uint64_t near : {bits - 1, bits, bits + 1}) codes.push_back(near);
      }
    }
  }
  for (uint64_t exponent = 0; exponent <= static_cast<uint64_t>(2 * d.largest + 1); ++exponent) {
    const uint64_t at = exponent << d.fraction;
    for (const uint64_t code : {at, at + 1, at + (uint64_t{1} << (d.fraction - 1)), at - 1}) {
      codes.push_back(code);
      codes.push_back(code ^ uint64_t{1} << (d.bits - 1));
    }
  }
  for (uint64_t& code : codes) {
    if (d.bits == 32) code &= 0xffffffffU;
  }
  return tensor_of(from, codes);
}

bool is_nan(DType dtype, uint64_t bits) { return std::isnan(meaning(dtype, bits)); }

TEST(CastNumbers, EveryNumberBecomesTheNearest) {
  for (const DType from : kTypes) {
    const Tensor numbers = numbers_to_cast(from);
    ASSERT_GT(numbers.count(), 60000);
    for (const DType to : kTypes) {
      if (from == to) continue;
      std::vector<uint8_t> got(static_cast<size_t>(byte_size(to, numbers.count())));
      cast_floats(from, numbers.data.data(), to, got.data(), numbers.count());
      for (int64_t i = 0; i < numbers.count(); ++i) {
        const uint64_t before = bits_at(numbers.data.data(), from, i), after = bits_at(got.data(), to, i);
        if (is_nan(from, before)) {
          ASSERT_TRUE(is_nan(to, after)) << name_of(from) << " to " << name_of(to) << " " << before;
          const int shift = info(from).bits - 1, other = info(to).bits - 1;
          ASSERT_EQ(before >> shift & 1, after >> other & 1) << "the sign of no number";
        } else {
          ASSERT_EQ(after, nearest(to, meaning(from, before)))
              << name_of(from) << " to " << name_of(to) << " " << before;
        }
      }
    }
  }
}

/// Vectors take blocks, and the rest goes one by one: nobody can tell where.
TEST(CastNumbers, AnyPartIsAPartOfTheWhole) {
  for (const DType from : kTypes) {
    const Tensor numbers = numbers_to_cast(from);
    for (const DType to : kTypes) {
      if (from == to) continue;
      const TensorPtr cast = cast_when_written(numbers, to);
      const auto width = static_cast<size_t>(info(to).bits / 8);
      std::vector<uint8_t> whole(cast->data.size()), part(300 * width);
      compute_into(cast->data, whole.data());
      for (size_t first = 0; first < 40; ++first) {
        for (const size_t count : {size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{97}, size_t{300}}) {
          compute_into(cast->data.slice(first * width, count * width), part.data());
          ASSERT_EQ(std::memcmp(part.data(), whole.data() + first * width, count * width), 0);
        }
      }
      EXPECT_EQ(with_cast_made(cast)->data.view(),
                std::string_view(reinterpret_cast<const char*>(whole.data()), whole.size()));
    }
  }
}

std::string written(const Bytes& bytes) {
  std::string result;
  for_each_piece(bytes, [&](std::string_view piece) { result += piece; });
  return result;
}

/// Numbers in a file, in memory, and swapped on the way: what is written is the same.
TEST(CastNumbers, FilesMemoryAndSwappedMatrices) {
  constexpr int64_t kRows = 517, kColumns = 2051;
  std::vector<uint64_t> codes(static_cast<size_t>(kRows * kColumns));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = i * 40503 % 0x10000;
  Tensor matrix = tensor_of(DType::Float16, codes);
  matrix.dims = {kRows, kColumns};
  const std::string in_memory = written(cast_when_written(matrix, DType::Float32)->data);
  const auto* bytes = reinterpret_cast<const uint8_t*>(in_memory.data());
  ASSERT_EQ(in_memory.size(), codes.size() * 4);

  const TemporaryFolder folder;
  std::ofstream(folder.file("numbers"), std::ios::binary) << "odd" << matrix.data.view();
  const Bytes file = map_file(folder.file("numbers"));
  matrix.data = file.slice(3, file.size() - 3);  // at an address that no number has
  const TensorPtr cast = cast_when_written(matrix, DType::Float32);
  EXPECT_EQ(written(cast->data), in_memory);

  const std::string swapped = written(bytes_to_write(*cast, true));
  ASSERT_EQ(swapped.size(), in_memory.size());
  const auto* swapped_bytes = reinterpret_cast<const uint8_t*>(swapped.data());
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c)
      ASSERT_EQ(bits_at(swapped_bytes, DType::Float32, c * kRows + r),
                bits_at(bytes, DType::Float32, r * kColumns + c));
  }
}

TEST(CastNumbers, NothingIsNothing) {
  EXPECT_EQ(written(cast_when_written(tensor_of(DType::Float16, {}), DType::Float32)->data), "");
}

}  // namespace
}  // namespace tonnx
