// loops.h - calls of members that are one call in a loop.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// Calls that hand their results on: `x = layer(x, mask)`, or with one more step `x = torch.cat([x, layer(x)], 1)`.
struct CallLoop {
  std::vector<int64_t> carried;  // for each result: which argument of the next call it is
  Node* last = nullptr;          // what gives the results of the last call
  const Node* step = nullptr;    // the first one behind a call; null where the results are those of the calls
};

/// Nothing where one loop cannot say them all.
std::optional<CallLoop> find_call_loop(const std::vector<Node*>& calls);

/// A loop over the members of a list. Its inputs are the arguments of the first call; attribute `carried` says for each
/// output which of them it is in the next. Attribute `step`, where it is there, is a graph of what is done with the
/// argument and the result of a call. Attribute `word` says what a member is called.
bool is_call_each(const Node& node);

/// Makes the node a loop over calls that began with `first`.
void set_loop(Node& node, const CallLoop& loop, const Node& first, const std::string& word);

/// The node that is done with the argument and the result of a call: inputs 0 and 1 of its graph; null where there is
/// none.
const Node* step_of_loop(const Node& loop);

}  // namespace tonnx
