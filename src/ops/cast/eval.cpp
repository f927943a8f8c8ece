// eval.cpp - evaluation of Cast, CastLike and BitCast, in all types.
#include "ops/cast/eval.h"

#include <charconv>
#include <cmath>

#include "base/made_bytes.h"
#include "ir/cast_numbers.h"
#include "ops/frame/eval_map.h"

namespace tonnx {
namespace {

/// What is past the largest number of a float type of 8 bits.
struct Border {
  double past;     // the number half-way to the one that the type does not have
  bool inclusive;  // whether that one is past too: the last number is odd
  uint64_t largest, nan;
  bool keeps_sign;  // of NaN
};

Border border_of(DType dtype) {
  switch (dtype) {
    case DType::Float8E4M3FN: return {464, false, 0x7e, 0x7f, true};
    case DType::Float8E4M3FNUZ: return {248, true, 0x7f, 0x80, false};
    case DType::Float8E5M2: return {61440, true, 0x7b, 0x7e, true};
    default: return {61440, true, 0x7f, 0x80, false};
  }
}

}  // namespace

uint64_t small_float_bits(DType dtype, double value, bool saturate) {
  if (!contains(kFloat8, dtype)) {
    // these have no NaN: the negative zero stands for it
    return std::isnan(value) ? uint64_t{1} << (info(dtype).bits - 1) : bits_of(dtype, value);
  }
  const Border border = border_of(dtype);
  const uint64_t sign = std::signbit(value) ? 0x80 : 0;
  const uint64_t nan = border.keeps_sign ? border.nan | sign : border.nan;
  if (std::isnan(value)) return nan;
  const double magnitude = std::fabs(value);
  if (magnitude < border.past || (magnitude == border.past && !border.inclusive)) return bits_of(dtype, value);
  if (saturate) return border.largest | sign;
  return dtype == DType::Float8E5M2 ? 0x7c | sign : nan;
}

namespace {

/// Nothing for what the spec leaves open: negative numbers.
std::optional<uint64_t> e8m0_bits(double value, bool saturate, std::string_view round_mode) {
  constexpr uint64_t kNaN = 255, kLargest = 254;
  if (std::isnan(value)) return kNaN;
  if (std::signbit(value)) return std::nullopt;
  if (value == 0) return saturate ? 0 : kNaN;
  if (std::isinf(value)) return saturate ? kLargest : kNaN;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  exponent += 126;
  if (round_mode == "up" ? fraction > 0.5 : round_mode == "nearest" && fraction >= 0.75) ++exponent;
  if (exponent < 0) return saturate ? 0 : kNaN;
  if (exponent > static_cast<int>(kLargest)) return saturate ? kLargest : kNaN;
  return static_cast<uint64_t>(exponent);
}

template <class Code>
TensorPtr coded(const Tensor& x, DType to, const Code& code) {
  NewTensor result(to, x.dims);
  double numbers[kBlock];
  for (int64_t i = 0; i < result.count(); i += kBlock) {
    const int64_t count = std::min(kBlock, result.count() - i);
    load_numbers(x, i, 1, count, numbers);
    for (int64_t k = 0; k < count; ++k) {
      const std::optional<uint64_t> bits = code(numbers[k]);
      if (!bits) return nullptr;
      set_element_bits(to, result.data(), i + k, *bits);
    }
  }
  return result.done();
}

/// Whether every float is a number of that integer type once it is cut; beyond the spec says nothing.
bool fits(const Tensor& x, DType to) {
  const int bits = info(to).bits - (is_signed_int(to) ? 1 : 0);
  const double above = std::ldexp(1.0, bits), below = is_signed_int(to) ? -above - 1 : -1;
  bool result = true;
  double numbers[kBlock];
  for (int64_t i = 0; i < x.count() && result; i += kBlock) {
    const int64_t count = std::min(kBlock, x.count() - i);
    load_numbers(x, i, 1, count, numbers);
    for (int64_t k = 0; k < count; ++k) {
      const bool inside =
          bits == 63 ? numbers[k] >= -above && numbers[k] < above : numbers[k] > below && numbers[k] < above;
      result = result && inside;
    }
  }
  return result;
}

std::optional<double> parsed_float(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Only texts that are numbers of the type.
TensorPtr parsed(const Tensor& x, DType to) {
  NewTensor result(to, x.dims);
  for (int64_t i = 0; i < result.count(); ++i) {
    const std::string& text = x.strings[static_cast<size_t>(i)];
    if (is_float(to)) {
      const auto value = parsed_float(text);
      if (!value) return nullptr;
      if (to == DType::Float32) {  // rounded once
        float single = 0;
        const size_t skip = text.front() == '+' ? 1 : 0;
        const auto [end, error] = std::from_chars(text.data() + skip, text.data() + text.size(), single);
        if (error != std::errc()) return nullptr;
        result.set(i, static_cast<double>(single));
      } else {
        result.set(i, *value);
      }
      continue;
    }
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool inside = info(to).bits == 64 ? is_signed_int(to) || value >= 0
                                            : value < int64_t{1} << (info(to).bits - is_signed_int(to)) &&
                                                  value >= -(is_signed_int(to) ? int64_t{1} << (info(to).bits - 1) : 0);
    if (error != std::errc() || end != text.data() + text.size() || !inside) return nullptr;
    result.set(i, value);
  }
  return result.done();
}

/// Only of integers, whose text is not in doubt.
TensorPtr printed(const Tensor& x) {
  if (!is_integer(x.dtype)) return nullptr;
  auto result = std::make_shared<Tensor>();
  result->dtype = DType::String;
  result->dims = x.dims;
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t value = element_as_int(x, i);
    result->strings.push_back(is_unsigned(x.dtype) ? std::to_string(static_cast<uint64_t>(value))
                                                   : std::to_string(value));
  }
  return result;
}

/// Floats of any type as others: of weights there are many.
template <class T>
TensorPtr cast_any_floats(const Tensor& x, DType to) {
  auto result = std::make_shared<Tensor>();
  result->dtype = to;
  result->dims = x.dims;
  const auto width = static_cast<size_t>(info(to).bits / 8);
  const bool is_usual = contains(kCastFloats, x.dtype) && contains(kCastFloats, to);
  const auto make = [&](size_t offset, uint8_t* into, size_t size) {
    const auto first = static_cast<int64_t>(offset / width), end = static_cast<int64_t>((offset + size) / width);
    if (is_usual) {
      const uint8_t* from = x.data.data() + first * (info(x.dtype).bits / 8);
      return cast_floats(x.dtype, from, to, into, end - first);
    }
    T numbers[kBlock];
    for (int64_t i = first; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      load_numbers(x, i, 1, count, numbers);
      store_numbers(to, into, i - first, count, numbers);
    }
  };
  result->data = made_bytes(static_cast<size_t>(byte_size(to, x.count())), make);
  return result;
}

/// Whether nobody but those who write the result will look at it: then it need not be held until they do.
bool is_only_written(const Node& node, DType from) {
  constexpr int64_t kLarge = int64_t{1} << 20;
  const Value& result = *node.output(0);
  const DType to = result.type.dtype;
  if (!contains(kCastFloats, from) || !contains(kCastFloats, to) || from == to || result.uses.empty()) return false;
  if (byte_size(to, node.input(0)->constant->count()) < kLarge) return false;
  return std::all_of(result.uses.begin(), result.uses.end(), [](const Use& use) {
    return use.user != nullptr && use.index == 1 && has_trait(*use.user, kForwardsWeight);
  });
}

TensorPtr cast_tensor(const TensorPtr& x, DType to, bool saturate, const std::string& round_mode) {
  constexpr DTypeSet kFromText = dtype_set(DType::Float32, DType::Float64) | kAllInts;
  const char kind = info(x->dtype).kind;
  if (to == x->dtype) return x;
  if (x->dtype == DType::String) return contains(kFromText, to) ? parsed(*x, to) : nullptr;
  if (kind == 'c' || kind == '?' || info(to).kind == 'c' || to == DType::Undefined) return nullptr;
  if (to == DType::String) return printed(*x);
  if (contains(kFloat8 | kFloat4 | kFloat6, to))
    return coded(*x, to, [&](double value) { return std::optional(small_float_bits(to, value, saturate)); });
  if (to == DType::Float8E8M0) {
    if (round_mode != "up" && round_mode != "down" && round_mode != "nearest") return nullptr;
    return coded(*x, to, [&](double value) { return e8m0_bits(value, saturate, round_mode); });
  }
  const auto same = [](auto value) { return value; };
  if (is_float(x->dtype)) {
    if (to == DType::Bool) return mapped<double>(*x, to, [](double value) { return static_cast<int64_t>(value != 0); });
    if (is_float(to))
      return x->dtype == DType::Float64 ? cast_any_floats<double>(*x, to) : cast_any_floats<float>(*x, to);
    // types of a few bits take the lowest of the number's
    if (!fits(*x, is_sub_byte(to) ? DType::Int32 : to)) return nullptr;
    return to == DType::UInt64 ? mapped<uint64_t>(*x, to, same) : mapped<int64_t>(*x, to, same);
  }
  if (to == DType::Bool) return mapped<int64_t>(*x, to, [](int64_t value) { return static_cast<int64_t>(value != 0); });
  if (is_unsigned(x->dtype)) return mapped<uint64_t>(*x, to, same);
  return mapped<int64_t>(*x, to, same);
}

}  // namespace

Results eval_cast(const NodeView& n) {
  const Tensor& x = *n.node().input(0)->constant;
  if (is_only_written(n.node(), x.dtype)) return cast_when_written(x, n.node().output(0)->type.dtype);
  TensorPtr result =
      cast_tensor(n.node().input(0)->constant, n.node().output(0)->type.dtype, n.flag("saturate"), n.s("round_mode"));
  return result ? Results(result) : Results();
}

Results eval_bit_cast(const NodeView& n) {
  const TensorPtr x = n.node().input(0)->constant;
  const DType to = n.node().output(0)->type.dtype;
  if (info(to).bits != info(x->dtype).bits || info(to).bits == 0) return {};
  auto result = std::make_shared<Tensor>(*x);
  result->dtype = to;
  result->source = {};
  if (to == DType::Bool) {
    for (int64_t i = 0; i < x->count(); ++i) {
      if (element_bits(*x, i) > 1) return {};
    }
  }
  return TensorPtr(result);
}

}  // namespace tonnx
