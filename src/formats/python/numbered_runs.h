// numbered_runs.h - members with numbers in their names, or in a list, that one expression can say.
#pragma once
#include <string>
#include <vector>

namespace tonnx::python {

/// Items one behind the other that are alike, or whose numbers grow by the same each time.
struct Run {
  size_t first = 0, count = 1;
  std::string name;   // `f"layer{i + 1}"`; empty where they have no names
  std::string item;   // `Layer(64 + 32 * i)`
  std::string range;  // `range(6)`
  bool is_same = true;
};

/// All items, in runs of which some have one item only. `names` may be empty. So many that are the same make a run.
std::vector<Run> find_runs(const std::vector<std::string>& names, const std::vector<std::string>& items, size_t fewest);

}  // namespace tonnx::python
