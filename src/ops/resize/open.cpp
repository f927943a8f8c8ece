// open.cpp - Resize of a tensor that has an open size.
#include "ops/frame/node_facts.h"
#include "ops/frame/node_view.h"
#include "ops/resize/rows.h"

namespace tonnx {

/// Sizes keep their proportion to those of the input, which has to be a whole number or one part of it.
void open_resize(OpenNode& n) {
  constexpr size_t kSizes = 3;
  const Shape *now = n.shape(0), *fixed = n.fixed_shape(0);
  auto sizes = n.list(kSizes, "sizes");
  if (now == nullptr || fixed == nullptr || !sizes || !n.is_open(now)) return;
  const auto axes = n.list(kSizes + 1, "axes");
  bool changes = false;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const auto given = axes && i < axes->size() ? (*axes)[i].constant() : std::optional(static_cast<int64_t>(i));
    const auto axis = given ? from_front(*given, static_cast<int64_t>(now->size())) : std::nullopt;
    if (!axis) continue;
    const Dim &from = (*now)[static_cast<size_t>(*axis)], &was = (*fixed)[static_cast<size_t>(*axis)];
    const Dim asked = (*sizes)[i];
    if (!n.is_open(from) || !asked.is_constant() || n.is_open(asked)) continue;
    if (!(asked == was)) n.note_resized(static_cast<size_t>(*axis));
    if (asked == was) {
      (*sizes)[i] = from;
    } else if (const auto times = exact_div(asked, was)) {
      (*sizes)[i] = from * *times;
    } else if (const auto part = exact_div(was, asked); part && !asked.is(0)) {
      (*sizes)[i] = floor_div(from, *part);
    } else {
      n.refuse(fmt::format("axis {} is resized from {} to {}, and nothing tells what its open size {} is to become",
                           *axis, was.text(), asked.text(), from.text()));
    }
    changes = true;
  }
  if (changes) n.set_list(kSizes, "sizes", *sizes);
}

}  // namespace tonnx
