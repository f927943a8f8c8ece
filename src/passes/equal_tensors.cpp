// equal_tensors.cpp - compares and hashes the bytes of constants.
#include "passes/equal_tensors.h"

#include <cstring>
#include <string_view>

namespace tonnx {
namespace {

constexpr int kMostTried = 8;  // of those that look alike

bool are_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.dims != b.dims || a.strings != b.strings || a.data.size() != b.data.size()) return false;
  return a.data.data() == b.data.data() || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0;
}

/// Of type, sizes and the first and last bytes: weights of equal sizes mostly differ there, so that few are read whole.
size_t hash_of(const Tensor& tensor) {
  constexpr size_t kLooked = 64;
  const std::string_view bytes = tensor.data.view();
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
      if (are_equal(*at->second->constant, *value->constant)) return at->second;
    }
  }
  known_.emplace(hash, value);
  return nullptr;
}

}  // namespace tonnx
