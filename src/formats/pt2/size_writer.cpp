// size_writer.cpp - prints expressions over sizes for sympy.
#include "formats/pt2/size_writer.h"

#include <fmt/format.h>

namespace tonnx::pt2 {
namespace {

std::string integer(int64_t value) { return fmt::format("Integer({})", value); }

std::string call(std::string_view name, const std::vector<std::string>& items) {
  return items.size() == 1 ? items[0] : fmt::format("{}({})", name, fmt::join(items, ", "));
}

}  // namespace

const SizeNames::Symbol& SizeNames::symbol_of(const std::string& name, bool is_input) {
  const auto [at, fresh] = by_model_name_.try_emplace(name, symbols_.size());
  if (fresh) symbols_.push_back({is_input ? fmt::format("s{}", inputs_++) : fmt::format("u{}", unbacked_++), name});
  return symbols_[at->second];
}

void SizeNames::add_input_symbol(const std::string& name) { symbol_of(name, true); }

std::string SizeNames::text_of_atom(const Dim::Atom& atom) {
  const auto two = [&](std::string_view name) { return fmt::format("{}({}, {})", name, text(atom.a), text(atom.b)); };
  switch (atom.kind) {
    case '/': return two("FloorDiv");
    case '>': return two("Max");
    case '<': return two("Min");
    case '%': return two(atom.a.is_non_negative() ? "Mod" : "PythonMod");
    default: break;
  }
  const std::string& name = symbol_of(atom.text, false).name;
  return fmt::format("Symbol('{}', {}integer=True)", name, name[0] == 's' ? "positive=True, " : "");
}

std::string SizeNames::text(const Dim& dim) {
  if (const auto number = dim.constant()) return integer(*number);
  std::vector<std::string> sum;
  for (const auto& [product, coefficient] : dim.terms()) {
    std::vector<std::string> factors;
    if (coefficient != 1) factors.push_back(integer(coefficient));
    for (const Dim::AtomPtr& atom : product) factors.push_back(text_of_atom(*atom));
    sum.push_back(call("Mul", factors));
  }
  if (dim.constant_term() != 0) sum.push_back(integer(dim.constant_term()));
  return call("Add", sum);
}

std::vector<Dim> contiguous_strides(const Shape& shape) {
  std::vector<Dim> strides(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * (shape[i].is(0) ? Dim(1) : shape[i]);
  return strides;
}

}  // namespace tonnx::pt2
