// cuts.h - what Slices with constant bounds cut from their axes.
#pragma once
#include "passes/frame/rewriter.h"

namespace tonnx {

/// What one axis is cut to: elements from `start`, in steps, up to before `end`; neither is negative.
struct Cut {
  int64_t axis, start, end, step;
};

/// What a Slice with constant bounds cuts, forwards; nothing for other forms, and where a size would have to be known.
std::optional<std::vector<Cut>> cuts_of(const Node& node);
/// A part of a part of one axis; nothing where a number would be too large.
std::optional<Cut> part_of(const Cut& whole, const Cut& part);

}  // namespace tonnx
