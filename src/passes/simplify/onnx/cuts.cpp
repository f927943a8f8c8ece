// cuts.cpp - what Slices with constant bounds cut from their axes.
#include "passes/simplify/onnx/cuts.h"

#include <algorithm>
#include <limits>

namespace tonnx {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

/// A bound counted from the front; nothing where that needs a size that is not known.
std::optional<int64_t> bound_from_front(int64_t bound, const Dim& size) {
  if (bound >= 0) return bound;
  const auto known = size.constant();
  if (!known) return std::nullopt;
  return std::max<int64_t>(0, bound < -*known ? 0 : bound + *known);
}

}  // namespace

std::optional<std::vector<Cut>> cuts_of(const Node& node) {
  const Value* x = node.input(0);
  if (x == nullptr || !x->type.shape || node.output(0) == nullptr) return std::nullopt;
  const auto starts = ints_of(node, "starts"), ends = ints_of(node, "ends");
  const auto axes = ints_of(node, "axes"), steps = ints_of(node, "steps");
  if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
  if ((has(node, "axes") && (!axes || axes->size() != starts->size())) ||
      (has(node, "steps") && (!steps || steps->size() != starts->size())))
    return std::nullopt;
  const auto rank = static_cast<int64_t>(x->type.shape->size());
  std::vector<Cut> cuts;
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto axis = from_front(axes ? (*axes)[i] : static_cast<int64_t>(i), rank);
    const int64_t step = steps ? (*steps)[i] : 1;
    if (!axis || step < 1) return std::nullopt;
    const Dim& size = (*x->type.shape)[static_cast<size_t>(*axis)];
    const auto start = bound_from_front((*starts)[i], size), end = bound_from_front((*ends)[i], size);
    if (!start || !end) return std::nullopt;
    if (std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) { return cut.axis == *axis; })) return std::nullopt;
    cuts.push_back({*axis, *start, *end, step});
  }
  return cuts;
}

std::optional<Cut> part_of(const Cut& whole, const Cut& part) {
  Cut result{whole.axis, 0, 0, 0};
  if (__builtin_mul_overflow(whole.step, part.start, &result.start) ||
      __builtin_add_overflow(result.start, whole.start, &result.start) ||
      __builtin_mul_overflow(whole.step, part.step, &result.step))
    return std::nullopt;
  if (__builtin_mul_overflow(whole.step, part.end, &result.end) ||
      __builtin_add_overflow(result.end, whole.start, &result.end))
    result.end = kEnd;
  result.end = std::min(result.end, whole.end);
  return result;
}

}  // namespace tonnx
