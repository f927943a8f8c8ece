// script_node.h - an aten node that becomes TorchScript's code, as the hooks of rows see it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ops/frame/emission.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

class ScriptNode {
 public:
  virtual ~ScriptNode() = default;

  virtual const Emission& args() const = 0;
  std::string text(std::string_view argument) const { return args().text(argument); }

  /// `torch.name(...)`, with the arguments in the order of the schema; those behind one that is left out go by name.
  virtual std::string call(std::string_view name) const = 0;
  /// An argument of arithmetic on numbers, which binds as tightly as a name.
  virtual std::string operand(std::string_view argument) const = 0;
  /// An argument that the schema calls a list.
  virtual std::string list(std::string_view argument) const = 0;
  /// Any argument of an operator that has no schema.
  virtual std::string plain(const AttrValue& value) const = 0;
  /// An argument as the condition of a choice.
  virtual std::string condition(std::string_view argument) const = 0;
  /// The variable that an argument is, which may hold nothing.
  virtual std::string variable(std::string_view argument) const = 0;

  /// Of the result, as the code declares it.
  virtual std::string result_type() const = 0;
  virtual std::string dtype(DType dtype) const = 0;
  /// `, device=...` for new tensors; empty where there is none to name.
  virtual std::string device() const = 0;
  /// A tensor of the element type that the argument `dtype` names, or int64, made of a number or a list of them.
  virtual std::string tensor_of(const std::string& numbers) const = 0;

  /// A call of a function of this name, which the code has to define like this.
  virtual std::string call_own(std::string_view name, std::string_view definition,
                               const std::vector<std::string>& arguments) = 0;
};

/// The call of another name.
template <FixedText Name>
std::string script_renamed(ScriptNode& n) {
  return n.call(Name.value);
}

/// A function on numbers: all of its arguments, in their order.
template <FixedText Function>
std::string script_function(ScriptNode& n) {
  std::vector<std::string> arguments;
  for (const Param& param : n.args().signature().inputs) arguments.push_back(n.operand(param.name));
  return std::string(Function.value) + "(" + joined(arguments) + ")";
}

}  // namespace tonnx
