// dim_map.h - sizes written with other symbols.
#pragma once
#include <map>
#include <string>

#include "ir/type.h"

namespace tonnx {

using DimMap = std::map<std::string, Dim, std::less<>>;

/// The expression with each symbol of the map replaced.
Dim substituted(const Dim& dim, const DimMap& map);
Type substituted(Type type, const DimMap& map);

/// What to write for each symbol so that all of these pairs are equal, as far as one side of a pair is a symbol alone.
/// Names that `is_made` accepts go away rather than others.
DimMap solve_equal(const std::vector<std::pair<Dim, Dim>>& pairs, bool (*is_made)(std::string_view));

}  // namespace tonnx
