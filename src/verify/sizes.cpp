// sizes.cpp - chooses open sizes.
#include "verify/sizes.h"

#include <algorithm>

#include "ir/text_parts.h"

namespace tonnx::judge {
namespace {

constexpr int64_t kImage = 64, kSequence = 8, kLargestSize = int64_t{1} << 17;

bool is_batch(size_t place, size_t rank) { return place == 0 && rank > 1; }
bool is_pixel(size_t place, size_t rank) { return rank >= 4 && place >= 2; }

SizeRule by_kind(int64_t image, int64_t sequence) {
  return [=](size_t place, size_t rank) -> int64_t {
    if (is_batch(place, rank)) return 1;
    return is_pixel(place, rank) ? image : sequence;
  };
}

/// Only the last dimension, or both of an image, are longer than one.
SizeRule only_last(int64_t length) {
  return [=](size_t place, size_t rank) { return place + 1 == rank || is_pixel(place, rank) ? length : 1; };
}

/// Calls `use` for each atom of the expression, and of those inside it.
template <class Use>
void for_each_atom(const Dim& dim, Use&& use) {
  for (const auto& [product, coefficient] : dim.terms()) {
    for (const Dim::AtomPtr& atom : product) {
      use(*atom);
      if (atom->kind == 's') continue;
      for_each_atom(atom->a, use);
      for_each_atom(atom->b, use);
    }
  }
}

std::optional<int64_t> value_of_atom(const Dim::Atom& atom, const SizesByName& sizes) {
  if (atom.kind == 's') {
    const auto at = sizes.find(Dim::symbol(atom.text).text());
    return at == sizes.end() ? std::nullopt : std::optional(at->second);
  }
  const auto a = value_of(atom.a, sizes), b = value_of(atom.b, sizes);
  if (!a || !b) return std::nullopt;
  if (atom.kind == '>') return std::max(*a, *b);
  if (atom.kind == '<') return std::min(*a, *b);
  if (*b == 0) return std::nullopt;
  const int64_t rest = ((*a % *b) + *b) % *b;  // of the sign of b
  return atom.kind == '%' ? rest : (*a - rest) / *b;
}

/// The smallest sizes at which all that is asked for is there; what cannot be had is not asked for.
SizesByName smallest(const std::map<std::string, SizePlace>& names, std::vector<SizeNeed> needs,
                     const SizesByName& fixed) {
  SizesByName sizes;
  std::set<std::string> free;
  const SizeRule usual = by_kind(kImage, kSequence);
  for (const auto& [name, where] : names) {
    const auto at = fixed.find(name);
    sizes[name] = at != fixed.end() ? at->second : usual(where.place, where.rank);
    if (at == fixed.end() && !is_batch(where.place, where.rank)) free.insert(name);
  }
  std::stable_sort(needs.begin(), needs.end(), [](const SizeNeed& a, const SizeNeed& b) {
    return std::pair(a.least, a.size.text().size()) < std::pair(b.least, b.size.text().size());
  });
  for (const SizeNeed& need : needs) {
    const SizesByName before = sizes;
    std::vector<std::string> growing;
    bool is_known = true;
    for (const std::string& name : names_in(need.size)) {
      is_known = is_known && sizes.contains(name);
      if (free.contains(name)) growing.push_back(name);
    }
    while (is_known && value_of(need.size, sizes).value_or(0) < need.least) {
      const bool is_too_large = std::any_of(growing.begin(), growing.end(),
                                            [&](const std::string& name) { return sizes[name] * 2 > kLargestSize; });
      if (growing.empty() || is_too_large) {
        sizes = before;
        break;
      }
      for (const std::string& name : growing) sizes[name] = std::max<int64_t>(sizes[name] * 2, 1);
    }
  }
  return sizes;
}

class ExpressionParser : public text::PartParser {
 public:
  using PartParser::PartParser;
  Dim whole() {
    Dim dim = parse_dim();
    require(token().source.empty(), "there is more than one size");
    return dim;
  }
};

}  // namespace

std::set<std::string> names_in(const Dim& dim) {
  std::set<std::string> names;
  for_each_atom(dim, [&](const Dim::Atom& atom) {
    if (atom.kind == 's') names.insert(Dim::symbol(atom.text).text());
  });
  return names;
}

int64_t scale_of(const Dim& dim) {
  int64_t scale = 1;
  for_each_atom(dim, [&](const Dim::Atom& atom) {
    if (atom.kind == '/' || atom.kind == '>' || atom.kind == '<')
      scale = std::max({scale, atom.b.constant().value_or(1), atom.kind == '/' ? 1 : atom.a.constant().value_or(1)});
  });
  return std::min(scale, kLargestSize);
}

std::optional<int64_t> value_of(const Dim& dim, const SizesByName& sizes) {
  int64_t sum = dim.constant_term();
  for (const auto& [product, coefficient] : dim.terms()) {
    int64_t term = coefficient;
    for (const Dim::AtomPtr& atom : product) {
      const auto value = value_of_atom(*atom, sizes);
      if (!value || __builtin_mul_overflow(term, *value, &term)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, term, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<Dim> find_expression(const std::string& text) {
  try {
    return ExpressionParser(text).whole();
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<SizeChoice> size_choices(const std::map<std::string, SizePlace>& names, const std::vector<SizeNeed>& needs,
                                     const SizesByName& fixed) {
  std::vector<SizeChoice> choices{{smallest(names, needs, fixed), by_kind(kImage, kSequence)}};
  int64_t longest = 1;
  for (const auto& [name, where] : names) {
    if (!is_batch(where.place, where.rank)) longest = std::max(longest, choices[0].sizes[name]);
  }
  std::vector<SizeRule> rules;
  for (const int64_t size : {longest, int64_t{16}, int64_t{64}}) rules.push_back(only_last(size));
  for (const auto& [image, sequence] : {std::pair(224, 64), std::pair(256, 512), std::pair(512, 16000)})
    rules.push_back(by_kind(image, sequence));
  for (const int64_t size : {128, 256, 512, 576, 1024, 4096, 16000}) rules.push_back(only_last(size));
  for (const int64_t size : {1, 2, 4, 16, 32, 48, 128, 320}) rules.push_back(by_kind(size, size));
  for (const int64_t size : {1, 2}) rules.push_back([size](size_t, size_t) { return size; });
  for (const SizeRule& rule : rules) {
    SizeChoice& choice = choices.emplace_back();
    choice.rule = rule;
    for (const auto& [name, where] : names) {
      const auto at = fixed.find(name);
      choice.sizes[name] = at != fixed.end() ? at->second : rule(where.place, where.rank);
    }
  }
  return choices;
}

}  // namespace tonnx::judge
