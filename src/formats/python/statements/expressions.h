// expressions.h - the text of a node and of a value: a call with everything that is nested into it.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "formats/python/naming/variables.h"
#include "formats/python/statements/nesting.h"
#include "modules/outline.h"

namespace tonnx::python {

/// What all blocks of a forward method share.
struct Scope {
  const ModuleTree& tree;
  std::unordered_map<const Value*, std::string> constants;  // how the code refers to them
  std::unordered_map<const Value*, std::string> turned;     // those that are stored with their dimensions swapped
  NameSet parameters;
  std::string device;  // of new tensors: `x.device`; empty where no tensor is at hand

  /// The constant that a node swaps the dimensions of, where it is stored so; null elsewhere.
  const Value* find_turned(const Node& node) const;
};

/// What is no operator of PyTorch's: a call of a module that a converter of the user's own made, or of a part of the
/// model, or a sum that may be left out.
bool is_call(const Node& node);
/// Whether a node's one result is the only tensor of a list, as of `torch.unbind` along a dimension of size 1.
bool gives_list_of_one(const Node& node);

/// The expressions of one block.
class Expressions {
 public:
  Expressions(const Scope& scope, const Nesting& nesting, const Variables& variables, const Expressions* outer)
      : scope_(scope), nesting_(nesting), variables_(variables), outer_(outer) {}

  /// In parentheses where it binds less than `place` asks for.
  std::string text_of(const Value* value, int place = 0) const;
  /// The text of a node, and how tightly it binds.
  std::pair<std::string, int> expression(const Node& node) const;
  size_t width(const Node& node) const { return expression(node).first.size(); }
  /// `self.attention.query`
  std::string name_of_layer(const Node& call) const {
    return "self." + scope_.tree.submodules[scope_.tree.submodule_of.at(&call)].name;
  }
  /// Whether a node is a call of a module, the model's own or another.
  bool is_module(const Node& node) const;
  /// Whether a node is a call of a submodule that has the value as its weight, so that the text does not mention it.
  bool is_submodule_weight(const Node& node, const Value* value) const;
  /// The text of a call with what `mark` gives for the values inside it, where that is not empty.
  std::string spelled_with(const Node& node, const std::function<std::string(const Value*)>& mark) const;

  /// The number of the iteration, where that is a tensor.
  void set_tensor_counter(const Value* value) { tensor_counter_ = value; }

 private:
  bool is_tensor_counter(const Value* value) const;
  std::string external_call(const Node& node) const;
  std::string part_call(const Node& node) const;
  std::string submodule_call(const Submodule& submodule, const Emission& emission) const;

  const Scope& scope_;
  const Nesting& nesting_;
  const Variables& variables_;
  const Expressions* outer_;  // of the block around
  const Value* tensor_counter_ = nullptr;
};

}  // namespace tonnx::python
