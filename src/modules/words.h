// words.h - what values are there for, where the graph tells: words that a person would call them by.
#pragma once
#include <string_view>
#include <unordered_map>

#include "ir/graph.h"

namespace tonnx {

using Words = std::unordered_map<const Value*, std::string_view>;

/// `q`, `k`, `v` and `mask` of what attentions take, in the graph and in those inside it.
Words find_words(const Graph& graph);

/// Whether an argument of a block may be called so for what it is: what is computed from it is something else.
bool is_word_of_argument(std::string_view name);

/// Calls what a block adds to its result, and does nothing else with, `residual`: an argument behind the first.
void name_residual(Graph& graph);

}  // namespace tonnx
