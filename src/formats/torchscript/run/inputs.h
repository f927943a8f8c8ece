// inputs.h - arguments of forward() as inputs of a graph, of shapes that are given or were traced.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "formats/torchscript/run/calls.h"
#include "formats/torchscript/run/item.h"
#include "formats/torchscript/source/archive.h"
#include "formats/torchscript/torchscript.h"

namespace tonnx::torchscript {

/// Elements of lists, tuples and dicts are inputs of their own: `xs.0` is the first of `xs`, `boxes.left` a field or a
/// key. What the archive says of the inputs that it was traced with counts where nothing is given.
class ScriptInputMaker {
 public:
  ScriptInputMaker(Graph& graph, ScriptArchive& archive, const ScriptInputs& given)
      : graph_(graph), archive_(archive), given_(given) {}

  /// `parameters`: those of forward, `self` among them.
  Arguments make(const std::vector<Parameter>& parameters);

 private:
  /// The two ways to say an argument, or a part of it.
  struct Path {
    std::string name, place;
    Path part(const std::string& step) const { return {name + "." + step, place + "." + step}; }
    std::string input_name() const;
  };

  void require_inputs(const std::vector<Parameter>& parameters) const;
  void read_traced();
  void add_traced(const PickleValue& value, const std::string& path, int depth);
  template <class T>
  const T* find_of(std::map<std::string, T> ScriptInputs::*all, const Path& path);
  /// The next steps behind a path, in their order.
  std::vector<std::string> steps_behind(const Path& path);
  void argument_of(const Parameter& parameter, const Path& path, Arguments& arguments);
  Item item_of(const Expr* type, const Path& path);
  Item items_of(const Expr& type, const Path& path, const std::vector<std::string>& steps);
  Item fields_of(const Class& type, const Path& path);
  Value* add_input(const Path& path, DType dtype, Shape shape);

  Graph& graph_;
  ScriptArchive& archive_;
  const ScriptInputs& given_;
  ScriptInputs traced_;
  std::vector<std::string> traced_order_;
  size_t traced_count_ = 0;
  bool is_read_ = false;
  std::set<std::string> used_;
};

}  // namespace tonnx::torchscript
