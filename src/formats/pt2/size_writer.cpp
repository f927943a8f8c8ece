// size_writer.cpp - prints expressions over sizes for sympy.
#include "formats/pt2/size_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/join.h"

namespace tonnx::pt2 {
namespace {

std::string integer(int64_t value) { return fmt::format("Integer({})", value); }

std::string call(std::string_view name, const std::vector<std::string>& items) {
  return items.size() == 1 ? items[0] : fmt::format("{}({})", name, joined(items, ", "));
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

std::optional<int64_t> value_of(const Dim& dim, const SampleSizes& sizes) {
  int64_t sum = dim.constant_term();
  for (const auto& [product, coefficient] : dim.terms()) {
    int64_t term = coefficient;
    for (const Dim::AtomPtr& atom : product) {
      std::optional<int64_t> factor;
      if (atom->kind == 's') {
        const auto at = sizes.find(atom->text);
        if (at != sizes.end()) factor = at->second;
      } else {
        const auto a = value_of(atom->a, sizes), b = value_of(atom->b, sizes);
        if (!a || !b) return std::nullopt;
        if ((atom->kind == '/' || atom->kind == '%') && *b == 0) return std::nullopt;
        factor = atom->kind == '>'   ? std::max(*a, *b)
                 : atom->kind == '<' ? std::min(*a, *b)
                 : atom->kind == '/' ? floor_div(Dim(*a), Dim(*b)).constant()
                                     : mod(Dim(*a), Dim(*b)).constant();
      }
      if (!factor || __builtin_mul_overflow(term, *factor, &term)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, term, &sum)) return std::nullopt;
  }
  return sum;
}

namespace {

/// Whether no value, of the graph or of those inside it, is empty.
bool fits(const Graph& graph, const SampleSizes& sizes) {
  for (const Node& node : graph) {
    for (const Value* output : node.outputs()) {
      if (output == nullptr || !output->type.shape) continue;
      for (const Dim& dim : *output->type.shape) {
        if (!dim.is_constant() && value_of(dim, sizes).value_or(1) < 1) return false;
      }
    }
    for (const GraphPtr& inner : subgraphs_of(node)) {
      if (!fits(*inner, sizes)) return false;
    }
  }
  return true;
}

SampleSizes sizes_near(int64_t wanted, const Graph& graph, const std::map<std::string, SizeRange>& ranges) {
  SampleSizes sizes;
  for (const Value* input : graph.inputs()) {
    for (const Dim& dim : input->type.shape.value_or(Shape())) {
      const auto symbol = dim.symbol_name();
      if (!symbol) continue;
      int64_t& size = sizes[*symbol] = wanted;
      const auto range = ranges.find(*symbol);
      if (range == ranges.end()) continue;
      size = std::max(size, range->second.low);
      if (range->second.high) size = std::min(size, *range->second.high);
    }
  }
  return sizes;
}

}  // namespace

std::optional<SampleSizes> choose_sample_sizes(const Graph& graph, const std::map<std::string, SizeRange>& ranges) {
  constexpr int64_t kTried[] = {2, 4, 8, 16, 32, 64, 128, 256, 512};  // 1 would be taken for a size that is always 1
  for (const int64_t size : kTried) {
    SampleSizes sizes = sizes_near(size, graph, ranges);
    if (fits(graph, sizes)) return sizes;
  }
  return std::nullopt;
}

Dims contiguous_strides(const Shape& shape) {
  Dims strides(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * (shape[i].is(0) ? Dim(1) : shape[i]);
  return strides;
}

}  // namespace tonnx::pt2
