// mutate.h - damages serialized protobuf messages: blindly, and along their own structure.
#pragma once
#include <random>
#include <string>
#include <vector>

namespace tonnx::fuzz {

using Random = std::mt19937;

/// A damaged copy; `donors` give the pieces that are spliced in.
std::string mutated(const std::string& message, const std::vector<std::string>& donors, Random& random);

}  // namespace tonnx::fuzz
