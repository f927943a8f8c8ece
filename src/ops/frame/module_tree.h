// module_tree.h - the modules of a model with their parameters and buffers, and the names of all of them; found on the
// aten graph.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/frame/emission.h"

namespace tonnx {

/// A parameter or buffer.
struct StateEntry {
  std::string name;         // within the module that has it, or in the state dict
  Value* value;             // a constant of the graph
  bool transposed = false;  // the module has it with its two dimensions swapped
  bool trainable = false;   // a parameter; otherwise a buffer
};

/// Whether it is a random generator, which is an attribute of the model but no part of its state: its constant is the
/// seed.
bool is_generator(const StateEntry& entry);

/// A module inside the model.
struct Submodule {
  std::string name;  // the attribute of the model that it is
  ModuleSpec spec;   // its weights are moved to `state`
  std::vector<StateEntry> state;
};

/// What belongs to a model: the same for all forms that it is written in.
struct ModuleTree {
  std::vector<StateEntry> tensors;  // parameters and buffers of the model itself, and random generators
  std::vector<Submodule> submodules;
  std::unordered_map<const Node*, size_t> submodule_of;  // nodes that are calls of a submodule
  std::vector<std::string> external_names;               // of the modules that converters of the user's own made
};

ModuleTree find_module_tree(const Graph& graph);

/// The entries of the state dict, but for those of external modules.
std::vector<StateEntry> state_of(const ModuleTree& tree);

}  // namespace tonnx
