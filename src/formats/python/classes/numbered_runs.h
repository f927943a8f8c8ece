// numbered_runs.h - members with numbers in their names, or in a list, that one expression can say.
#pragma once
#include <string>
#include <vector>

namespace tonnx::python {

/// Items one behind the other that are alike, whose numbers grow by the same each time, or that differ in one number.
struct Run {
  size_t first = 0, count = 1;
  std::string name;   // `f"layer{i + 1}"`; empty where they have no names
  std::string item;   // `Layer(64 + 32 * i)`, or `Layer(n)`
  std::string range;  // `range(6)`, or `(64, 128, 256)`
  std::string variable =
      "_";  // `i` or `n`, where the name or the item has it; nothing inside of the item loops over it
};

/// All items, in runs of which some have one item only. `names` may be empty. So many that are the same make a run.
std::vector<Run> find_runs(const std::vector<std::string>& names, const std::vector<std::string>& items, size_t fewest);

}  // namespace tonnx::python
