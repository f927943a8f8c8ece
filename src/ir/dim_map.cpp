// dim_map.cpp - replaces symbols in expressions, and finds out which stand for the same size.
#include "ir/dim_map.h"

#include <algorithm>

namespace tonnx {
namespace {

bool has_symbol(const Dim& dim, std::string_view name) {
  for (const auto& [product, coefficient] : dim.terms()) {
    for (const Dim::AtomPtr& atom : product) {
      if (atom->kind == 's' ? atom->text == name : has_symbol(atom->a, name) || has_symbol(atom->b, name)) return true;
    }
  }
  return false;
}

Dim substituted(const Dim::Atom& atom, const DimMap& map) {
  if (atom.kind == 's') {
    const auto at = map.find(atom.text);
    return at == map.end() ? Dim::symbol(atom.text) : at->second;
  }
  const Dim a = substituted(atom.a, map), b = substituted(atom.b, map);
  switch (atom.kind) {
    case '/': return floor_div(a, b);
    case '%': return mod(a, b);
    case '>': return max(a, b);
    default: return min(a, b);
  }
}

}  // namespace

Dim substituted(const Dim& dim, const DimMap& map) {
  if (map.empty() || dim.is_constant()) return dim;
  Dim result = dim.constant_term();
  for (const auto& [product, coefficient] : dim.terms()) {
    Dim term = coefficient;
    for (const Dim::AtomPtr& atom : product) term = term * substituted(*atom, map);
    result = result + term;
  }
  return result;
}

Type substituted(Type type, const DimMap& map) {
  if (type.shape) {
    for (Dim& dim : *type.shape) dim = substituted(dim, map);
  }
  for (Type& element : type.elements) element = substituted(std::move(element), map);
  return type;
}

DimMap solve_equal(const std::vector<std::pair<Dim, Dim>>& pairs, bool (*is_made)(std::string_view)) {
  DimMap map;
  for (const auto& [first, second] : pairs) {
    Dim a = substituted(first, map), b = substituted(second, map);
    if (a == b) continue;
    // a symbol goes away for the other side: one that was made up rather than one of the file
    const auto name_a = a.symbol_name(), name_b = b.symbol_name();
    const bool drops_b = name_b && !(name_a && is_made(*name_a) && !is_made(*name_b));
    if (!drops_b && !name_a) continue;
    const std::string name = drops_b ? *name_b : *name_a;
    const Dim by = drops_b ? a : b;
    if (has_symbol(by, name)) continue;
    for (auto& [known, size] : map) size = substituted(size, {{name, by}});
    map.emplace(name, by);
  }
  return map;
}

}  // namespace tonnx
