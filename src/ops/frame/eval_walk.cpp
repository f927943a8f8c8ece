// eval_walk.cpp - blocks of elements as numbers and back, for all number types.
#include "ops/frame/eval_walk.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/half.h"
#include "ops/frame/eval.h"

namespace tonnx {

Walk::Walk(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, int64_t offset)
    : offset_(offset), count_(count_of(dims)) {
  for (size_t i = 0; i < dims.size() && count_ > 0; ++i) {
    if (dims[i] == 1) continue;
    if (!dims_.empty() && strides_.back() == strides[i] * dims[i]) {
      dims_.back() *= dims[i];
      strides_.back() = strides[i];
    } else {
      dims_.push_back(dims[i]);
      strides_.push_back(strides[i]);
    }
  }
  if (dims_.empty()) {
    dims_.push_back(1);
    strides_.push_back(0);
  }
}

namespace {

template <class T>
T converted(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  }
}

/// What each of the 256 codes of a small float type means.
const std::array<double, 256>& codes_of(DType dtype) {
  static const auto tables = [] {
    std::array<std::array<double, 256>, kDTypeCount> all{};
    for (int type = 0; type < kDTypeCount; ++type) {
      const auto each = static_cast<DType>(type);
      if (!is_float(each) || info(each).bits > 8) continue;
      std::vector<uint8_t> bytes(256);
      for (size_t i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
      Tensor x{.dtype = each, .dims = {256}, .data = Bytes::own(std::move(bytes))};
      for (int64_t i = 0; i < 256; ++i) {
        const auto bits = info(each).bits;
        if (bits == 8) {
          all[static_cast<size_t>(type)][static_cast<size_t>(i)] = element_as_double(x, i);
        } else if (i < (1 << bits)) {
          Tensor one{.dtype = each, .dims = {1}, .data = Bytes::own(std::vector{static_cast<uint8_t>(i)})};
          all[static_cast<size_t>(type)][static_cast<size_t>(i)] = element_as_double(one, 0);
        }
      }
    }
    return all;
  }();
  return tables[static_cast<size_t>(dtype)];
}

template <class From, class T, class Convert>
void load_as(const uint8_t* __restrict from, int64_t step, int64_t count, T* __restrict into, Convert convert) {
  const auto one = [&](int64_t i) {
    From value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    return convert(value);
  };
  if (step == 0) {
    std::fill(into, into + count, one(0));
  } else if (step == 1) {
    for (; count >= kBlock; count -= kBlock, into += kBlock, from += kBlock * static_cast<int64_t>(sizeof(From)))
      for (int64_t i = 0; i < kBlock; ++i) into[i] = one(i);
    for (int64_t i = 0; i < count; ++i) into[i] = one(i);
  } else {
    for (int64_t i = 0; i < count; ++i) into[i] = one(i * step);
  }
}

template <class To, class T, class Convert>
void store_as(uint8_t* __restrict to, int64_t count, const T* __restrict from, Convert convert) {
  const auto one = [&](int64_t i) {
    const To value = convert(from[i]);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(To)), &value, sizeof(To));
  };
  for (; count >= kBlock; count -= kBlock, from += kBlock, to += kBlock * static_cast<int64_t>(sizeof(To)))
    for (int64_t i = 0; i < kBlock; ++i) one(i);
  for (int64_t i = 0; i < count; ++i) one(i);
}

}  // namespace

template <class T>
void load_numbers(const Tensor& x, int64_t at, int64_t step, int64_t count, T* into) {
  if (count <= 0) return;
  const int bits = info(x.dtype).bits;
  const auto plain = [](auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)> && !std::is_floating_point_v<T>)
      return converted<T>(static_cast<double>(value));
    else
      return static_cast<T>(value);
  };
  if (bits < 8) {
    const auto load = [&](auto get) {
      for (int64_t i = 0; i < count; ++i) into[i] = get(element_bits(x, at + i * step));
    };
    if (is_float(x.dtype)) return load([&](uint64_t code) { return converted<T>(codes_of(x.dtype)[code]); });
    const uint64_t sign = is_signed_int(x.dtype) ? uint64_t{1} << (bits - 1) : 0;
    return load(
        [&](uint64_t code) { return static_cast<T>(static_cast<int64_t>(code ^ sign) - static_cast<int64_t>(sign)); });
  }
  const uint8_t* from = x.data.data() + at * (bits / 8);
  switch (x.dtype) {
    case DType::Float32: return load_as<float>(from, step, count, into, plain);
    case DType::Float64: return load_as<double>(from, step, count, into, plain);
    case DType::Float16:
      return load_as<uint16_t>(from, step, count, into, [&](uint16_t half) { return plain(widened_half(half)); });
    case DType::BFloat16:
      return load_as<uint16_t>(from, step, count, into, [&](uint16_t half) { return plain(widened_bfloat(half)); });
    case DType::Bool:
    case DType::UInt8: return load_as<uint8_t>(from, step, count, into, plain);
    case DType::Int8: return load_as<int8_t>(from, step, count, into, plain);
    case DType::UInt16: return load_as<uint16_t>(from, step, count, into, plain);
    case DType::Int16: return load_as<int16_t>(from, step, count, into, plain);
    case DType::UInt32: return load_as<uint32_t>(from, step, count, into, plain);
    case DType::Int32: return load_as<int32_t>(from, step, count, into, plain);
    case DType::UInt64: return load_as<uint64_t>(from, step, count, into, plain);
    case DType::Int64: return load_as<int64_t>(from, step, count, into, plain);
    default: break;
  }
  const auto& codes = codes_of(x.dtype);
  load_as<uint8_t>(from, step, count, into, [&](uint8_t code) { return converted<T>(codes[code]); });
}

template <class T>
void store_numbers(DType dtype, uint8_t* data, int64_t at, int64_t count, const T* from) {
  const int bits = info(dtype).bits;
  const auto plain = [&]<class To>(To) {
    store_as<To>(data + at * (bits / 8), count, from, [](T value) {
      if constexpr (std::is_floating_point_v<T> && !std::is_floating_point_v<To>)
        return static_cast<To>(converted<int64_t>(static_cast<double>(value)));
      else
        return static_cast<To>(value);
    });
  };
  const auto half = [&](auto narrow) {
    store_as<uint16_t>(data + at * 2, count, from, [&](T value) {
      if constexpr (std::is_same_v<T, float>)
        return narrow(value);
      else
        return narrow(odd_float(static_cast<double>(value)));
    });
  };
  switch (dtype) {
    case DType::Float32: return plain(float{});
    case DType::Float64: return plain(double{});
    case DType::Float16: return half(narrowed_half);
    case DType::BFloat16: return half(narrowed_bfloat);
    case DType::Bool: return store_as<uint8_t>(data + at, count, from, [](T value) { return uint8_t{value != 0}; });
    case DType::UInt8: return plain(uint8_t{});
    case DType::Int8: return plain(int8_t{});
    case DType::UInt16: return plain(uint16_t{});
    case DType::Int16: return plain(int16_t{});
    case DType::UInt32: return plain(uint32_t{});
    case DType::Int32: return plain(int32_t{});
    case DType::Int64: return plain(int64_t{});
    case DType::UInt64:
      return store_as<uint64_t>(data + at * 8, count, from, [](T value) {
        if constexpr (std::is_floating_point_v<T>)
          return value < 0 ? static_cast<uint64_t>(converted<int64_t>(static_cast<double>(value)))
                           : converted<uint64_t>(static_cast<double>(value));
        else
          return static_cast<uint64_t>(value);
      });
    default: break;
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t code = std::is_floating_point_v<T> || is_float(dtype) ? bits_of(dtype, static_cast<double>(from[i]))
                                                                         : static_cast<uint64_t>(from[i]);
    set_element_bits(dtype, data, at + i, code);
  }
}

template void load_numbers(const Tensor&, int64_t, int64_t, int64_t, float*);
template void load_numbers(const Tensor&, int64_t, int64_t, int64_t, double*);
template void load_numbers(const Tensor&, int64_t, int64_t, int64_t, int64_t*);
template void load_numbers(const Tensor&, int64_t, int64_t, int64_t, uint64_t*);
template void store_numbers(DType, uint8_t*, int64_t, int64_t, const float*);
template void store_numbers(DType, uint8_t*, int64_t, int64_t, const double*);
template void store_numbers(DType, uint8_t*, int64_t, int64_t, const int64_t*);
template void store_numbers(DType, uint8_t*, int64_t, int64_t, const uint64_t*);

std::vector<double> numbers_of(const Tensor& x) {
  std::vector<double> numbers(static_cast<size_t>(x.count()));
  load_numbers(x, 0, 1, x.count(), numbers.data());
  return numbers;
}

TensorPtr tensor_of(DType dtype, std::vector<int64_t> dims, const std::vector<double>& numbers) {
  NewTensor result(dtype, std::move(dims));
  store_numbers(dtype, result.data(), 0, std::min(result.count(), static_cast<int64_t>(numbers.size())),
                numbers.data());
  return result.done();
}

}  // namespace tonnx
