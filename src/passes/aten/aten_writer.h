// aten_writer.h - appends aten nodes to a graph whose types are known.
#pragma once
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// A size or an index: a number, or a value of the graph.
struct AtenInt {
  Value* value = nullptr;
  int64_t number = 0;

  AtenInt(int64_t n) : number(n) {}        // NOLINT: a number is one
  AtenInt(int n) : number(n) {}            // NOLINT: and so is this
  AtenInt(Value* given) : value(given) {}  // NOLINT: a value is one too
};
using AtenInts = std::vector<AtenInt>;

/// One call of an operator, with the values that its attributes refer to.
struct AtenCall {
  Symbol op;
  Symbol overload;
  std::vector<Attribute> attributes;
  std::vector<Value*> inputs;
  const Node* like = nullptr;  // gives name and metadata

  AtenCall(Symbol name, Symbol variant, const Node* source) : op(name), overload(variant), like(source) {}
  AtenCall& with(std::string_view argument, Value* value);
  AtenCall& with(std::string_view argument, const AtenInt& number);
  AtenCall& with(std::string_view argument, const AtenInts& numbers);
  AtenCall& with(std::string_view argument, AttrValue constant);
};

class AtenWriter {
 public:
  explicit AtenWriter(Graph& graph) : graph_(&graph) {}

  /// New nodes go in front of this one; null: to the end.
  void write_before(Node* node) { before_ = node; }

  /// The one result of the call.
  Value* add(const AtenCall& call, Type type, std::string_view name, Symbol domain = "aten");

  AtenInt size(Value* tensor, const Type& type, size_t dim, const Node* like);
  AtenInt sum(const AtenInt& a, const AtenInt& b, const Node* like);
  /// All sizes of the tensor. It may be null where the type says them all.
  AtenInts sizes(Value* tensor, const Type& type, const Node* like);

 private:
  Graph* graph_;
  Node* before_ = nullptr;
  size_t added_ = 0;
};

}  // namespace tonnx
