// rank_choice.h - operators that PyTorch spells by rank, for inputs whose rank only the run tells.
#pragma once
#include <vector>

#include "ops/frame/opset_step.h"

namespace tonnx {

/// Expansion: one copy of the node for each rank that the first of the inputs may have, between which the run chooses;
/// the other inputs that are given have the same rank as the first. Ranks that the operator does not take with its
/// attributes and constants are left out, and a rank that is none of those left is an error of the run. Says no where
/// the rank is known.
bool choose_rank(OnnxEdit& edit, const NodeView& n, const std::vector<std::string_view>& inputs,
                 const std::vector<int64_t>& ranks);

/// The same for a list of integers, of which only the run tells how many it has.
bool choose_length(OnnxEdit& edit, const NodeView& n, const std::vector<std::string_view>& lists,
                   const std::vector<int64_t>& lengths);

/// The numbers from `first` to `last`.
std::vector<int64_t> from_to(int64_t first, int64_t last);

/// Ranks up to `last` that have such an axis, which may count from the back.
std::vector<int64_t> ranks_with(int64_t axis, int64_t last);

/// An operator whose rank is that of one input.
template <FixedText Input, int64_t First, int64_t Last>
bool expand_by_rank(const NodeView& n, OnnxEdit& edit) {
  return choose_rank(edit, n, {Input.value}, from_to(First, Last));
}

}  // namespace tonnx
