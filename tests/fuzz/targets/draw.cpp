// draw.cpp - draws what is usual, and what is odd.
#include "fuzz/targets/draw.h"

#include <cmath>
#include <limits>

namespace tonnx::fuzz {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr DType kUsualTypes[] = {DType::Float32, DType::Float32, DType::Float32, DType::Int64,
                                 DType::Bool,    DType::Float16, DType::Int32,   DType::Float64};

}  // namespace

Draw::Draw(uint32_t seed, Types types) : random_(seed), types_(types), is_small_(random_() % 2 == 0) {
  usual_ = Type::tensor(of(kUsualTypes), shape(below(6)));
}

int64_t Draw::integer() {
  constexpr int64_t kOdd[] = {kLeast,
                              kMost,
                              kLeast + 1,
                              kMost - 1,
                              int64_t{1} << 62,
                              -(int64_t{1} << 62),
                              int64_t{1} << 32,
                              -100,
                              100,
                              int64_t{1} << 31,
                              65,
                              -65,
                              1000003};
  if (one_in(6)) return of(kOdd);
  return static_cast<int64_t>(below(7)) - 2;
}

double Draw::real() {
  const double kOdd[] = {HUGE_VAL, -HUGE_VAL, std::nan(""), 1e300, -1e300, 1e-300, 9.3e18, -9.3e18, 1e10};
  if (one_in(5)) return of(kOdd);
  constexpr double kUsual[] = {0.0, 1.0, -1.0, 0.5, 2.0, 3.7, -0.0, 1e-5};
  return of(kUsual);
}

std::string Draw::text() {
  constexpr const char* kTexts[] = {
      "",     "none",   "mean",    "sum",      "constant", "reflect", "replicate",  "circular", "ij",   "xy",
      "tanh", "linear", "nearest", "bilinear", "floor",    "trunc",   "fro",        "nuc",      "left", "ij,jk->ik",
      "ii",   "...i,i", "i->",     "\xff\xfe", "linear",   "NOTSET",  "SAME_UPPER", "VALID",    "->",   "a,b,c->abc"};
  return of(kTexts);
}

DType Draw::dtype() {
  const auto any = static_cast<DType>(1 + below(kDTypeCount - 1));
  const bool is_known = types_ == Types::All || (info(any).bits >= 8 && !info(any).torch.empty());
  return one_in(2) || !is_known ? of(kUsualTypes) : any;
}

Dim Draw::size() {
  constexpr int64_t kHuge[] = {int64_t{1} << 31, int64_t{1} << 40, kMost, kMost / 2 + 1, 1000000};
  if (!is_small_ && one_in(8)) return of(kHuge);
  if (!is_small_ && one_in(4)) {
    const Dim symbol = Dim::symbol(std::string(1, static_cast<char>('n' + below(3))));
    return one_in(3) ? symbol * Dim(2) + Dim(1) : symbol;
  }
  constexpr int64_t kUsual[] = {1, 1, 2, 2, 3, 4, 6, 8};
  return one_in(12) ? Dim(0) : Dim(of(kUsual));
}

Shape Draw::shape(size_t rank) {
  Shape result;
  for (size_t i = 0; i < rank; ++i) result.push_back(size());
  return result;
}

std::vector<int64_t> Draw::integers(size_t usual) {
  const size_t count = one_in(5) ? below(9) : usual;
  std::vector<int64_t> result;
  for (size_t i = 0; i < count; ++i) result.push_back(integer());
  if (one_in(4)) {  // an order
    for (size_t i = 0; i < count; ++i) result[i] = static_cast<int64_t>(count - 1 - i);
  }
  return result;
}

Type Draw::tensor_type() {
  if (one_in(3)) return usual_;
  const DType element = one_in(4) ? dtype() : usual_.dtype;
  return Type::tensor(element, shape(one_in(3) ? below(7) : usual_rank()));
}

TensorPtr Draw::constant(const Type& type) {
  auto result = std::make_shared<Tensor>();
  result->dtype = type.dtype;
  int64_t count = 1;
  for (const Dim& dim : *type.shape) {
    const int64_t size = dim.constant().value_or(2);
    result->dims.push_back(size <= 512 && size * count <= 512 ? size : 1);
    count *= result->dims.back();
  }
  if (type.dtype == DType::String) {
    for (int64_t i = 0; i < count; ++i) result->strings.push_back(text());
    return result;
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(type.dtype, count)));
  const bool is_wild = one_in(4);
  for (int64_t i = 0; i < count && info(type.dtype).kind != 'c'; ++i) {
    const bool is_real = is_float(type.dtype);
    const uint64_t bits = is_real ? bits_of(type.dtype, is_wild ? real() : static_cast<double>(below(5)) - 1)
                                  : static_cast<uint64_t>(is_wild ? integer() : static_cast<int64_t>(below(5)) - 1);
    set_element_bits(type.dtype, bytes.data(), i, type.dtype == DType::Bool ? bits & 1 : bits);
  }
  result->data = Bytes::own(std::move(bytes));
  return result;
}

}  // namespace tonnx::fuzz
