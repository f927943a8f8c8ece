// aten_writer.h - appends aten nodes to a graph whose types are known.
#pragma once
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ops/frame/int_arg.h"

namespace tonnx {

/// A size or an index that is an argument of a node: a number, or a value of the graph.
IntArg size_argument(const Node& node, const AttrValue& argument);

/// One call of an operator, with the values that its attributes refer to.
struct AtenCall {
  Symbol op;
  Symbol overload;
  std::vector<Attribute> attributes;
  std::vector<Value*> inputs;
  const Node* like = nullptr;  // gives name and metadata

  AtenCall(Symbol name, Symbol variant, const Node* source) : op(name), overload(variant), like(source) {}
  AtenCall& with(std::string_view argument, Value* value);
  AtenCall& with(std::string_view argument, const IntArg& number);
  AtenCall& with(std::string_view argument, const IntArgs& numbers);
  AtenCall& with(std::string_view argument, AttrValue constant);
};

class AtenWriter {
 public:
  explicit AtenWriter(Graph& graph) : graph_(&graph) {}

  /// New nodes go in front of this one; null: to the end.
  void write_before(Node* node) { before_ = node; }

  /// The one result of the call.
  Value* add(const AtenCall& call, Type type, std::string_view name, Symbol domain = "aten");

  IntArg size(Value* tensor, const Type& type, size_t dim, const Node* like);
  IntArg sum(const IntArg& a, const IntArg& b, const Node* like);
  /// All sizes of the tensor. It may be null where the type says them all.
  IntArgs sizes(Value* tensor, const Type& type, const Node* like);

 private:
  Graph* graph_;
  Node* before_ = nullptr;
  size_t added_ = 0;
};

}  // namespace tonnx
