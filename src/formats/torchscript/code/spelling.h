// spelling.h - single nodes as expressions of TorchScript.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tonnx::torchscript {

/// What an expression needs to know of the code around it.
struct Context {
  std::function<std::string(const Value*)> name_of;  // the variable or attribute that holds a value
  std::function<std::string(const Value*)> type_of;  // as type_text, or what is known better
  std::string device;                                // an expression for that of the inputs; empty: there are none
  std::map<std::string, std::string> functions;      // what expressions call, by name: their definitions
  bool in_module = false;                            // inside a module of its own, whose flag `training` counts
};

/// The type of a value as the code declares it: `Tensor`, `List[Tensor]`, `Optional[Tensor]`, `int`.
std::string type_text(const Value& value);

/// A variable that may hold nothing where it is known to hold something.
std::string unwrapped(const std::string& name, std::string_view type);

/// A number with a point or an exponent.
std::string float_text(double value);

/// The value as an argument: what is optional is taken to be there.
std::string value_text(const Value& value, const Context& context);
/// The value as the condition of a branch or a loop.
std::string condition_text(const Value& value, const Context& context);

/// The expression that a node without graphs inside is. Throws Unsupported.
std::string node_text(const Node& node, Context& context);

/// Whether the expression gives a list with one element for each output of the node.
bool gives_list(const Node& node);

}  // namespace tonnx::torchscript
