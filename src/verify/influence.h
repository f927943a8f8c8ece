// influence.h - how far what was compared depends on each weight.
#pragma once
#include <unordered_map>

#include "verify/report.h"

namespace tonnx::judge {

/// By how much outputs, or values inside, may differ, by their places.
using Allowed = std::unordered_map<size_t, std::pair<double, double>>;  // rtol, atol

/// What weights do to what was compared: by each, in units of what may differ; nothing for one that had no part in it.
struct Influence {
  std::vector<std::pair<std::string, std::optional<double>>> moved;
  double work = 0;
};

/// Nothing where nobody knows.
std::optional<Influence> influence_of(Runner& runner, const Tensors& feeds, const Allowed& allowed, bool is_inside);
/// What one more run has shown.
void note(const Influence& influence, bool is_inside, Coverage& coverage);

}  // namespace tonnx::judge
