// open.cpp - recurrent layers over a tensor that has an open size.
#include "ops/recurrent/rows.h"

namespace tonnx {

/// Initial states and lengths that are constants are those of every sequence.
void open_recurrent(OpenNode& n) {
  constexpr size_t kLengths = 4, kState = 5, kCell = 6;
  const Shape* x = n.shape(0);
  if (x == nullptr || x->size() != 3) return;
  const Attribute* layout = n.node().find_attribute("layout");
  const auto* number = layout ? layout->value.get<int64_t>() : nullptr;
  const bool batch_first = number != nullptr && *number != 0;
  const Dim time = (*x)[batch_first ? 1 : 0];
  if (n.is_open(time) && n.node().input(kLengths) != nullptr && !n.depends_on_data(kLengths)) {
    const Node& node = n.node();
    if (node.input(kLengths)->constant) n.refuse("the lengths of the sequences are constants, and their time is open");
  }
  const size_t batch = batch_first ? 0 : 1;
  std::vector<InputAxis> places{{0, batch}, {kLengths, 0}, {kState, batch}};
  if (n.node().op == "LSTM") places.push_back({kCell, batch});
  align(n, places);
}

}  // namespace tonnx
