// effects.h - what a part of an archive's code does to variables and tensors around it.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "formats/torchscript/source/syntax.h"
#include "ir/graph.h"

namespace tonnx::torchscript {

struct LoopNames {
  std::vector<std::string> assigned;  // in the order of the code, each once
  std::set<std::string> appended;     // lists
  std::set<std::string> read;         // all other mentions
};

/// Of a loop: its body, and what it asks before each iteration.
LoopNames loop_names(const Stmt& loop);
/// Of any statement, with all that it holds.
LoopNames statement_names(const Stmt& stmt);

/// The tensor whose memory a value may be a part of.
Value* root_of(Value* value);

/// The tensors outside of `graph` that nodes of `inner`, a graph in it, write to, themselves or through views.
void find_written(const Graph& graph, const Graph& inner, std::set<Value*>& into);

}  // namespace tonnx::torchscript
