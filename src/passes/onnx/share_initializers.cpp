// share_initializers.cpp - constants that are equal are one.
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "base/computed.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

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

struct ConstantScope {
  const ConstantScope* around = nullptr;
  std::unordered_multimap<size_t, Value*> constants;

  Value* find(size_t hash, const Tensor& tensor) const {
    constexpr int kMostTried = 8;  // of those that look alike
    for (const ConstantScope* scope = this; scope != nullptr; scope = scope->around) {
      auto [at, end] = scope->constants.equal_range(hash);
      for (int tried = 0; at != end && tried < kMostTried; ++at, ++tried) {
        if (are_equal(*at->second->constant, tensor)) return at->second;
      }
    }
    return nullptr;
  }
};

bool share_constants(Graph& graph, const ConstantScope* around) {
  ConstantScope scope{around, {}};
  bool is_changed = false;
  for (Value* value : graph.initializers()) {
    if (!value->constant || value->sparse || is_graph_output(value) || is_computed(value->constant->data)) continue;
    const size_t hash = hash_of(*value->constant);
    // 1. An equal constant of this graph or one around it stands for both.
    if (Value* same = scope.find(hash, *value->constant)) {
      is_changed |= !value->uses.empty();
      graph.replace_uses(value, same);
    } else {
      scope.constants.emplace(hash, value);
    }
  }
  for (const Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) is_changed |= share_constants(*subgraph, &scope);
  }
  return is_changed;
}

}  // namespace

bool share_initializers(Graph& graph, Rewriter&) { return share_constants(graph, nullptr); }

}  // namespace tonnx
