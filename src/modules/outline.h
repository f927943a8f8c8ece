// outline.h - a model as modules inside modules: each with its members, and with its own graph where it computes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "modules/module_tree.h"

namespace tonnx {

struct ModulePart;

/// What a module has under a name: a tensor, a layer of PyTorch's, a module of the user's own, or a part of the model.
struct Member {
  std::string name;
  const StateEntry* tensor = nullptr;
  const Submodule* layer = nullptr;
  int external = -1;
  std::string plain;  // the constructor of a layer without weights
  std::shared_ptr<ModulePart> part;
};

/// What a module computes.
struct Method {
  Method() = default;
  Method(const Method&) = delete;
  ~Method();

  std::string name = "forward";
  bool owns_graph = true;
  GraphPtr graph;    // none where only its members are called
  ModuleTree calls;  // what its graph has: names are as code says them, behind `self.`
  std::vector<Node*> callers;
};

/// A module, which is first of all its forward.
struct ModulePart : Method {
  enum class Kind : uint8_t {
    Class,
    Sequential,  // its members are called one behind the other
    List,        // its members are numbers
    Dict,        // its members are called by others
  };
  Kind kind = Kind::Class;
  std::string path;        // encoder.layer.0; empty for the model
  std::string class_name;  // that it had in PyTorch, where the file says so
  std::vector<Member> members;
  std::vector<std::unique_ptr<Method>> others;  // what it does in another branch or loop, where that is something else
};

/// How code says a member of a module of that kind: `.conv`, `[0]`, `["self"]`.
std::string access_step(ModulePart::Kind around, const std::string& name);

/// A node that calls a part of the model: all its inputs are arguments.
bool is_call_part(const Node& node);
/// Whether the value, which the graph gives, may share memory with one that is outside of the graph.
bool may_share(const Graph& graph, const Value& value);

/// Settles where modules are that have no place in PyTorch. Names that are no keys of a state dict there lead no
/// further than to the block that has them; parts of the graph that repeat are blocks if no names say so.
void arrange_modules(const Graph& graph, ModuleTree& tree);

/// The modules of a model, as all writers take them: found, tied where they share weights, and arranged.
ModuleTree module_tree_of(const Graph& graph, TreeNames naming = TreeNames::Nested);

/// The model, whose graph holds calls of its parts. `tree` stays as long as it.
std::shared_ptr<ModulePart> outline(const Graph& graph, const ModuleTree& tree);

}  // namespace tonnx
