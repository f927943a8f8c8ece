// module_tree.h - the modules of a model with their parameters and buffers, and the names of all of them; found on the
// aten graph.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "modules/words.h"
#include "ops/frame/emission.h"

namespace tonnx {

/// A parameter or buffer.
struct StateEntry {
  std::string name;         // within the module that has it, or in the state dict, where dots part it
  Value* value;             // a constant of the graph
  bool transposed = false;  // the module has it with its two dimensions swapped
  bool trainable = false;   // a parameter; otherwise a buffer
  bool is_key = false;      // its name, or its module's, is that of a state dict in PyTorch
};

/// Whether it is a random generator, which is an attribute of the model but no part of its state: its constant is the
/// seed.
bool is_generator(const StateEntry& entry);

/// A module inside the model.
struct Submodule {
  std::string name;  // its path in the model: encoder.layer.0
  ModuleSpec spec;   // its weights are moved to `state`
  std::vector<StateEntry> state;
  bool is_key = false;  // its path is that of a module in PyTorch
  int tied_to = -1;     // the module whose weight it has
};

/// The call of a layer whose weight another one has: an embedding, and the layer at the end that multiplies with it.
struct Borrower {
  const Node* node;
  ModuleSpec spec;
  size_t owner;  // among the submodules
};

/// What belongs to a model: the same for all forms that it is written in.
struct ModuleTree {
  std::vector<StateEntry> tensors;  // parameters and buffers of the model itself, and random generators
  std::vector<Submodule> submodules;
  std::unordered_map<const Node*, size_t> submodule_of;  // nodes that are calls of a submodule
  std::vector<Borrower> borrowers;                       // whose weights `tie_modules` gives them
  std::vector<std::string> external_names;               // of the modules that converters of the user's own made
  std::unordered_map<const Node*, std::string> places;   // of nodes whose names do not say where they are
  Words words;                                           // that code calls values by
  size_t outer_parts = 0;  // so many parts at the front of the file's paths say nothing, and are left out
};

/// How modules and tensors are called: by paths, as the file says, or by one attribute of the model each.
enum class TreeNames : uint8_t { Nested, Flat };

ModuleTree find_module_tree(const Graph& graph, TreeNames naming = TreeNames::Nested);

/// The path of the module that the node calls; empty where it is no call.
std::string_view called_by(const Node& node, const ModuleTree& tree);

/// The key under which a graph's metadata have the class that a module was in PyTorch.
std::string class_note(std::string_view path);

/// The entries of the state dict, but for those of external modules; a weight that modules share is there once.
std::vector<StateEntry> state_of(const ModuleTree& tree);

/// Notes with the graph which class each module is of (`class_note`), as the nn_module_stack of its nodes says.
void note_stack_classes(Graph& graph);

}  // namespace tonnx
