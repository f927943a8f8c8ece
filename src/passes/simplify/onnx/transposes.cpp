// transposes.cpp - orders of axes, and the Transposes that have them.
#include "passes/simplify/onnx/transposes.h"

#include <algorithm>

namespace tonnx {

std::optional<Perm> perm_of(const Node& node) {
  static const Symbol kTranspose("Transpose");
  const Value* x = node.input(0);
  if (!is_onnx(node, kTranspose) || x == nullptr || node.output(0) == nullptr) return std::nullopt;
  auto perm = ints_of(node, "perm");
  if (!perm) {
    if (!x->type.shape) return std::nullopt;
    perm.emplace();
    for (size_t i = x->type.shape->size(); i-- > 0;) perm->push_back(static_cast<int64_t>(i));
  }
  const auto sorted = axes_from_front(*perm, static_cast<int64_t>(perm->size()));
  if (!sorted || std::any_of(perm->begin(), perm->end(), [](int64_t axis) { return axis < 0; })) return std::nullopt;
  return perm;
}

Perm combined(const Perm& first, const Perm& then) {
  Perm result;
  for (const int64_t axis : then) result.push_back(first[static_cast<size_t>(axis)]);
  return result;
}

Perm inverse_of(const Perm& perm) {
  Perm result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return result;
}

bool is_identity(const Perm& perm) { return std::is_sorted(perm.begin(), perm.end()); }

}  // namespace tonnx
