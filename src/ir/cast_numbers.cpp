// cast_numbers.cpp - turns floats of one type into those of another, a vector at a time.
#include "ir/cast_numbers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/made_bytes.h"
#include "base/wide_vectors.h"
#include "ir/float_formats.h"
#include "ir/origins.h"

namespace tonnx {
namespace {

// Vectors of numbers: in 16 bits, and as floats or their bits. The compiler makes none of loops over numbers of two
// sizes, hence these.
constexpr int64_t kAtOnce = 8;
typedef uint16_t Halves __attribute__((vector_size(kAtOnce * 2)));  // NOLINT: `using` knows no such sizes
typedef uint32_t Words __attribute__((vector_size(kAtOnce * 4)));   // NOLINT
typedef int32_t Signed __attribute__((vector_size(kAtOnce * 4)));   // NOLINT: machines compare only these
typedef float Floats __attribute__((vector_size(kAtOnce * 4)));     // NOLINT

// What half.h does to one number, done to the bits of many.

[[gnu::always_inline]] inline void widen(Half, Words& bits) {
  const Words sign = (bits & 0x8000U) << 16U, rest = bits & 0x7fffU, shifted = rest << 13U;
  const Floats tiny = (Floats)(shifted + (113U << 23U)) - std::bit_cast<float>(113U << 23U);  // NOLINT: as bits
  const Words normal =
      shifted + ((Signed)rest >= 0x7c00 ? Words{} + (224U << 23U) : Words{} + (112U << 23U));  // NOLINT
  bits = ((Signed)rest < 0x400 ? (Words)tiny : normal) | sign;                                 // NOLINT
}
[[gnu::always_inline]] inline void narrow(Half, Words& bits) {
  const Words sign = (bits >> 16U) & 0x8000U, rest = bits & 0x7fffffffU;
  const Words tiny = (Words)((Floats)rest + 0.5F) - 0x3f000000U;  // NOLINT
  const Words normal = (rest - 0x38000000U + 0xfffU + ((rest >> 13U) & 1U)) >> 13U;
  const Words past = (Signed)rest > 0x7f800000 ? Words{} + 0x7e00U : Words{} + 0x7c00U;  // NOLINT
  const Words finite = (Signed)rest < 0x38800000 ? tiny : normal;                        // NOLINT
  bits = sign | ((Signed)rest >= 0x47800000 ? past : finite);                            // NOLINT
}
[[gnu::always_inline]] inline void widen(BrainFloat, Words& bits) { bits <<= 16U; }
[[gnu::always_inline]] inline void narrow(BrainFloat, Words& bits) {
  const Words near = bits + 0x7fffU + ((bits >> 16U) & 1U), none = bits | 0x400000U;
  bits = ((Signed)(bits & 0x7fffffffU) > 0x7f800000 ? none : near) >> 16U;  // NOLINT
}
[[gnu::always_inline]] inline void widen(Plain<float>, Words&) {}
[[gnu::always_inline]] inline void narrow(Plain<float>, Words&) {}

template <class From, class To>
[[gnu::always_inline]] inline void cast_vector(const uint8_t* numbers, uint8_t* into) {
  Words bits;
  Halves halves;
  if constexpr (sizeof(typename From::Stored) == 2) {
    std::memcpy(&halves, numbers, sizeof(halves));
    bits = __builtin_convertvector(halves, Words);
  } else {
    std::memcpy(&bits, numbers, sizeof(bits));
  }
  widen(From{}, bits);
  narrow(To{}, bits);
  if constexpr (sizeof(typename To::Stored) == 2) {
    halves = __builtin_convertvector(bits, Halves);
    std::memcpy(into, &halves, sizeof(halves));
  } else {
    std::memcpy(into, &bits, sizeof(bits));
  }
}

template <class From, class To>
[[gnu::always_inline]] inline void cast_run(const uint8_t* numbers, uint8_t* into, int64_t count) {
  using Before = typename From::Stored;
  using After = typename To::Stored;
  if constexpr (sizeof(Before) < sizeof(double) && sizeof(After) < sizeof(double)) {
    for (; count >= kAtOnce; count -= kAtOnce) {
      cast_vector<From, To>(numbers, into);
      numbers += kAtOnce * sizeof(Before);
      into += kAtOnce * sizeof(After);
    }
  }
  for (; count > 0; --count, numbers += sizeof(Before), into += sizeof(After)) {
    Before before;
    std::memcpy(&before, numbers, sizeof(before));
    const After after = To::narrowed(From::widened(before));
    std::memcpy(into, &after, sizeof(after));
  }
}

template <class From, class To>
TONNX_WIDE void cast_run_widely(const uint8_t* numbers, uint8_t* into, int64_t count) {
  cast_run<From, To>(numbers, into, count);
}

}  // namespace

void cast_floats(DType from, const uint8_t* numbers, DType to, uint8_t* into, int64_t count) {
  with_format(from, [&]<class From>(From) {
    with_format(to, [&]<class To>(To) {
      if (has_wide_vectors())
        cast_run_widely<From, To>(numbers, into, count);
      else
        cast_run<From, To>(numbers, into, count);
    });
  });
}

CastNumbers::CastNumbers(Tensor numbers, DType to)
    : numbers_(std::move(numbers)),
      to_(to),
      from_width_(static_cast<size_t>(info(numbers_.dtype).bits / 8)),
      to_width_(static_cast<size_t>(info(to).bits / 8)),
      addresses_(numbers_.data.size() / from_width_ * to_width_) {}

/// As many as suit what makes the numbers themselves, if they are made as well.
size_t CastNumbers::best_piece() const {
  const auto* made = dynamic_cast<const ComputedBytes*>(numbers_.data.owner().get());
  return made != nullptr ? made->best_piece() / from_width_ * to_width_ : ComputedBytes::best_piece();
}

void CastNumbers::compute(size_t offset, uint8_t* into, size_t size) const {
  const Bytes part = numbers_.data.slice(offset / to_width_ * from_width_, size / to_width_ * from_width_);
  const auto cast = [&](const uint8_t* from, size_t done, size_t bytes) {
    const auto count = static_cast<int64_t>(bytes / from_width_);
    cast_floats(numbers_.dtype, from, to_, into + done / from_width_ * to_width_, count);
  };
  if (is_computed(part)) {
    const auto made = std::make_unique_for_overwrite<uint8_t[]>(part.size());
    compute_into(part, made.get());
    return cast(made.get(), 0, part.size());
  }
  if (!part.owner() || part.owner()->fd() < 0) return cast(part.data(), 0, part.size());
  uint8_t window[size_t{1} << 14];  // read, and not its pages: to find them takes longer, and they hold memory
  for (size_t done = 0; done < part.size(); done += sizeof(window)) {
    const Bytes piece = part.slice(done, std::min(sizeof(window), part.size() - done));
    copy_bytes(piece, window);
    cast(window, done, piece.size());
  }
}

const CastNumbers* find_cast(const Tensor& tensor) {
  const auto* cast = dynamic_cast<const CastNumbers*>(tensor.data.owner().get());
  return cast != nullptr && cast->size() == tensor.data.size() ? cast : nullptr;
}

TensorPtr cast_when_written(const Tensor& tensor, DType to) {
  Tensor numbers;
  numbers.dtype = tensor.dtype;
  numbers.dims = tensor.dims;
  numbers.data = tensor.data;
  const auto owner = std::make_shared<const CastNumbers>(std::move(numbers), to);
  auto result = std::make_shared<Tensor>();
  result->dtype = to;
  result->dims = tensor.dims;
  result->data = Bytes(owner, owner->begin(), owner->size());
  return result;
}

TensorPtr with_cast_made(const TensorPtr& tensor) {
  const CastNumbers* cast = find_cast(*tensor);
  if (cast == nullptr) return tensor;
  auto result = std::make_shared<Tensor>(*tensor);
  result->data =
      made_bytes(cast->size(), [&](size_t offset, uint8_t* into, size_t size) { cast->compute(offset, into, size); });
  note_cast(result, std::make_shared<Tensor>(cast->numbers()));
  return result;
}

}  // namespace tonnx
