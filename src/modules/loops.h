// loops.h - calls of members that are one call in a loop.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// Calls that hand their results on: `x = layer(x, mask)`, or with one more step `x = torch.cat([x, layer(x)], 1)`.
/// Each may have arguments of its own, and give results of its own: `x, key = layer(x, past_key)`.
struct CallLoop {
  std::vector<int64_t> carried;  // for each result: which argument of the next call it is; -1 where it is none
  std::vector<int64_t> given;    // the arguments that each call has its own of
  std::vector<int64_t> kept;     // the results of each call that others use
  Node* last = nullptr;          // what gives the results of the last call
  const Node* step = nullptr;    // the first one behind a call; null where the results are those of the calls
  std::vector<Node*> behind;     // what stands between the calls, and can be done behind them
  std::vector<std::vector<Node*>> kept_steps;  // what is done alike with each of `kept`, call by call; empty: nothing
};

/// Nothing where one loop cannot say them all. `is_module`: whether a node is the call of a module.
std::optional<CallLoop> find_call_loop(const std::vector<Node*>& calls,
                                       const std::function<bool(const Node*)>& is_module);

/// A loop over the members of a list. Its inputs are the arguments of the first call, and behind them those that the
/// others have of their own. Its outputs are the results that are carried, and a list of those that are kept, call by
/// call.
bool is_call_each(const Node& node);

/// What a loop does with each member.
struct LoopOfCalls {
  const std::vector<int64_t>&carried, &given, &kept;        // as in CallLoop
  const std::vector<std::string>&given_words, &kept_words;  // what they are called; empty where no name says it
  const std::string& list_word;                             // what the list of what is given is called
  const std::string& word;                                  // what a member is called
  const std::string& method;                                // `.forward_else`; empty where it is forward
  const Node* step;  // is done with the argument and the result of a call: inputs 0 and 1 of its graph; may be null
  size_t calls;
  std::vector<const Node*> kept_steps;  // what is done with each of `kept`: input 0 of its graph; null: nothing
};
LoopOfCalls loop_of(const Node& node);

/// Makes the node, which is new, a loop over these calls, and gives it their results. The calls are of no use any more.
void set_loop(Node& node, const CallLoop& loop, const std::vector<Node*>& calls, const std::string& word,
              const std::string& method);

/// The loop that makes the list which the node takes one of; null where there is none.
const Node* loop_of_kept(const Node& node);

/// The loop that has put a value into its list, and which one of it that is.
struct PlaceInList {
  const Node* loop = nullptr;
  int64_t index = 0;
};
/// Nothing where the value is in no such list.
std::optional<PlaceInList> place_in_list(const Value& value);

}  // namespace tonnx
