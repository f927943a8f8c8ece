// sizes.h - open sizes of inputs: the smallest that mean something to a model, and others where it cannot run
// with them.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verify/hints.h"

namespace tonnx::judge {

using SizesByName = std::map<std::string, int64_t>;
/// The size of an open dimension, by its place and the rank.
using SizeRule = std::function<int64_t(size_t, size_t)>;

/// One way to choose open sizes: those that have names, and a rule for the others.
struct SizeChoice {
  SizesByName sizes;
  SizeRule rule;
};

/// Where an open size is declared first.
struct SizePlace {
  size_t place = 0, rank = 0;
};

std::set<std::string> names_in(const Dim& dim);
/// The largest number that an expression divides by, or compares with: below that, little happens.
int64_t scale_of(const Dim& dim);
/// Nothing where a name is not known, it is divided by 0, or the numbers are too large.
std::optional<int64_t> value_of(const Dim& dim, const SizesByName& sizes);
/// `past + sequence` as an expression; nothing where the text is none.
std::optional<Dim> find_expression(const std::string& text);

/// Ways to choose the open sizes, the best first.
std::vector<SizeChoice> size_choices(const std::map<std::string, SizePlace>& names, const std::vector<SizeNeed>& needs,
                                     const SizesByName& fixed);

}  // namespace tonnx::judge
