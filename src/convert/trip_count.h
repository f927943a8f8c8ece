// trip_count.h - how often a Loop runs whose condition only counts: `while i < n` is `for i in range(n)`.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// What a Loop carries that goes up by one each time: its value before the first iteration, for each carried value.
std::vector<std::optional<Dim>> find_counters(const Node& loop, const Graph& body);

/// Where the condition of a Loop says no more than that counters stay below what is known before it starts, gives the
/// loop that number of iterations in place of the condition. `i` is the number of the iteration; the body has been
/// inferred.
void count_iterations(Node& loop, Graph& body, const Dim& i, int mark);

}  // namespace tonnx
