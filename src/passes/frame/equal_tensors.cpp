// equal_tensors.cpp - compares and hashes the bytes of constants.
#include "passes/frame/equal_tensors.h"

#include <cstring>
#include <string_view>

#include "ir/cast_numbers.h"
#include "ir/origins.h"

namespace tonnx {
namespace {

constexpr int kMostTried = 8;  // of those that look alike

/// What can be looked at: of numbers that are cast when they are written, those before.
const Tensor& looked_at(const Tensor& tensor) {
  const CastNumbers* cast = find_cast(tensor);
  return cast != nullptr ? cast->numbers() : tensor;
}

bool are_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.dims != b.dims || a.strings != b.strings || a.data.size() != b.data.size()) return false;
  const Tensor &x = looked_at(a), &y = looked_at(b);
  if (x.dtype != y.dtype) return false;
  return x.data.data() == y.data.data() || std::memcmp(x.data.data(), y.data.data(), x.data.size()) == 0;
}

/// Of type, sizes and the first and last bytes: weights of equal sizes mostly differ there, so that few are read whole.
size_t hash_of(const Tensor& tensor) {
  constexpr size_t kLooked = 64;
  const std::string_view bytes = looked_at(tensor).data.view();
  size_t hash = static_cast<size_t>(tensor.dtype) * 31 + bytes.size();
  for (const int64_t dim : tensor.dims) hash = hash * 1000003 + static_cast<size_t>(dim);
  hash = hash * 31 + std::hash<std::string_view>()(bytes.substr(0, kLooked));
  if (bytes.size() > kLooked) hash = hash * 31 + std::hash<std::string_view>()(bytes.substr(bytes.size() - kLooked));
  for (const std::string& text : tensor.strings) hash = hash * 31 + std::hash<std::string>()(text);
  return hash;
}

}  // namespace

Value* EqualTensors::find_or_add(Value* value) {
  const size_t hash = hash_of(*value->constant);
  for (const EqualTensors* scope = this; scope != nullptr; scope = scope->around_) {
    auto [at, end] = scope->known_.equal_range(hash);
    for (int tried = 0; at != end && tried < kMostTried; ++at, ++tried) {
      if (!are_equal(*at->second->constant, *value->constant)) continue;
      note_equal(at->second->constant, value->constant);
      return at->second;
    }
  }
  known_.emplace(hash, value);
  return nullptr;
}

}  // namespace tonnx
