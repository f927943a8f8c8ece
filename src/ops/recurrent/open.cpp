// open.cpp - recurrent layers over a tensor that has an open size.
#include "ops/recurrent/open.h"

namespace tonnx {

/// Initial states and lengths that are constants are those of every sequence.
void open_recurrent(OpenNode& n) {
  constexpr size_t kLengths = 4, kState = 5, kCell = 6;
  const Shape* x = n.shape(0);
  if (x == nullptr || x->size() != 3) return;
  const Attribute* layout = n.node().find_attribute("layout");
  const auto* number = layout ? layout->value.get<int64_t>() : nullptr;
  const bool batch_first = number != nullptr && *number != 0;
  const Dim batch = (*x)[batch_first ? 0 : 1], time = (*x)[batch_first ? 1 : 0];
  const auto follow = [&](size_t input, size_t rank, size_t axis) {
    const Shape* shape = n.shape(input);
    if (shape == nullptr || shape->size() != rank || (*shape)[axis] == batch || n.is_open((*shape)[axis])) return;
    n.grow(input, axis, batch);
  };
  if (n.is_open(time) && n.node().input(kLengths) != nullptr && !n.depends_on_data(kLengths)) {
    const Node& node = n.node();
    if (node.input(kLengths)->constant) n.refuse("the lengths of the sequences are constants, and their time is open");
  }
  if (!n.is_open(batch)) return;
  follow(kLengths, 1, 0);
  follow(kState, 3, batch_first ? 0 : 1);
  if (n.node().op == "LSTM") follow(kCell, 3, batch_first ? 0 : 1);
}

}  // namespace tonnx
