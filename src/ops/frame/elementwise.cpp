// elementwise.cpp - literals, types without kernels, and arithmetic on known integers.
#include "ops/frame/elementwise.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "ir/origins.h"
#include "ops/frame/emission.h"
#include "ops/frame/trained_scalar.h"

namespace tonnx {
namespace {

constexpr size_t kTextLimit = 256;  // of an expression over sizes: past that a file is playing with us

bool is_small(const Dim& dim) { return dim.is_constant() || dim.text().size() <= kTextLimit; }

std::optional<Dims> folded(const Dims& a, const Dims& b, DimFn fold) {
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return std::nullopt;
  const size_t count = a.size() == 1 ? b.size() : a.size();
  Dims result;
  for (size_t i = 0; i < count; ++i) {
    const Dim& x = a[a.size() == 1 ? 0 : i];
    const Dim& y = b[b.size() == 1 ? 0 : i];
    if (!is_small(x) || !is_small(y)) return std::nullopt;
    std::optional<Dim> one;
    try {
      one = fold(x, y);
    } catch (const Error& e) {  // 64 bits overflow, which tensors do silently
      if (e.kind() == ErrorKind::Internal) throw;
    }
    if (!one) return std::nullopt;
    result.push_back(*std::move(one));
  }
  return result;
}

}  // namespace

DType computed_in(DType dtype) {
  switch (dtype) {
    case DType::UInt16: return DType::Int32;
    case DType::UInt32:
    case DType::UInt64: return DType::Int64;
    default: return dtype;
  }
}

Value* cast(AtenBuilder& aten, Value* x, DType from, DType to) { return from == to ? x : aten("to.dtype", x, to); }

Value* wide_input(const OnnxNode& n, AtenBuilder& aten, std::string_view input) {
  return cast(aten, n.input(input), n.dtype(input), computed_in(n.dtype(input)));
}

Value* ordered(AtenBuilder& aten, Value* x, DType dtype) {
  Value* wide = cast(aten, x, dtype, computed_in(dtype));
  // turning the highest bit puts what int64 takes for negative behind the rest
  return dtype == DType::UInt64 ? aten("bitwise_xor.Scalar", wide, std::numeric_limits<int64_t>::min()) : wide;
}

bool is_plain_float(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Float16 || dtype == DType::BFloat16;
}

bool has_exact_text(double number) { return std::strtod(python_float(number).c_str(), nullptr) == number; }

std::optional<Arg> find_literal(const OnnxNode& n, const Value* value, const Value* other) {
  const DType dtype = value->type.dtype;
  const auto rank = value->type.rank();
  if (!rank || (*rank > 0 && *rank > other->type.rank().value_or(0))) return std::nullopt;
  if (is_integer(dtype) && value->known_ints && value->known_ints->size() == 1)
    return Arg(n.int_arg((*value->known_ints)[0]));
  if (!value->constant || value->constant->count() != 1) return std::nullopt;
  if (is_integer(dtype)) {
    const int64_t number = element_as_int(*value->constant, 0);
    if (dtype == DType::UInt64 && number < 0) return std::nullopt;
    return Arg(number);
  }
  if (!is_plain_float(dtype)) return std::nullopt;
  const bool scales_activations = other != value && other->type.rank().value_or(0) > 0;
  if (scales_activations && is_trained_scalar(*value)) return std::nullopt;
  const double number = element_as_double(*value->constant, 0);
  if (dtype == DType::Float64 && !has_exact_text(number)) return std::nullopt;
  note_number(n.node().name, number, value->constant);
  return Arg(number);
}

std::optional<Arg> find_literal(const OnnxNode& n, std::string_view input, std::string_view other) {
  return find_literal(n, n.value(input), n.value(other));
}

bool fits(const Dim& value, DType dtype) {
  const auto number = value.constant();
  if (!number || dtype == DType::Int64) return true;
  if (dtype == DType::Bool) return *number == 0 || *number == 1;
  if (!is_integer(dtype)) return false;
  const int bits = info(dtype).bits;
  if (is_unsigned(dtype)) return *number >= 0 && *number < (int64_t{1} << std::min(bits, 53));
  return *number >= -(int64_t{1} << (bits - 1)) && *number < (int64_t{1} << (bits - 1));
}

std::optional<Dims> find_ints(const Value& value) {
  auto elements = find_dims(value);
  const auto fit = [&](const Dim& element) { return fits(element, value.type.dtype); };
  return elements && std::all_of(elements->begin(), elements->end(), fit) ? elements : std::nullopt;
}

void propagate(InferNode& n, DimFn fold) {
  const Value* output = n.node().output(0);
  if (output == nullptr || output->type.rank().value_or(2) > 1) return;
  std::optional<Dims> result;
  for (const Value* input : n.node().inputs()) {
    auto elements = input ? find_ints(*input) : std::nullopt;
    if (!elements) return;
    result = result ? folded(*result, *elements, fold) : std::move(elements);
    if (!result) return;
  }
  if (!result) return;
  for (const Dim& element : *result) {
    if (!fits(element, output->type.dtype)) return;
  }
  n.set_dims(*std::move(result));
}

void fold_number(InferNode& n, NumberFn fold) {
  Value* output = n.node().output(0);
  if (output == nullptr || !output->type.shape || !is_plain_float(output->type.dtype)) return;
  double numbers[2] = {0.0, 0.0};
  const auto& inputs = n.node().inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* input = inputs[i];
    const bool is_number =
        input && input->producer && !input->trainable && input->constant && input->constant->count() == 1;
    if (i > 1 || !is_number || input->type.dtype != output->type.dtype) return;
    numbers[i] = element_as_double(*input->constant, 0);
  }
  // rounding twice is harmless: a double has more than twice the digits of the smaller types
  const std::vector<int64_t> dims(output->type.shape->size(), 1);
  output->constant = make_floats(output->type.dtype, dims, {fold(numbers[0], numbers[1])});
}

std::optional<bool> is_less(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return *a.constant() < *b.constant();
  if ((b - a - Dim(1)).is_non_negative()) return true;
  if ((a - b).is_non_negative()) return false;
  return std::nullopt;
}

std::optional<bool> is_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  if ((b - a - Dim(1)).is_non_negative() || (a - b - Dim(1)).is_non_negative()) return false;
  return std::nullopt;
}

}  // namespace tonnx
