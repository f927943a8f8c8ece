// write_as_functional_op.h - one node that writes to tensors, turned into nodes that give what is there afterwards.
#pragma once
#include <string_view>
#include <vector>

#include "passes/functionalize/tensor_memory.h"

namespace tonnx {

/// Whether the node itself, under the functional name of its operator, gives what it writes. It reads what is in memory
/// before the write. For other nodes new ones are made, and they are no longer needed.
bool gives_new_tensor(const Node& node);

/// Writes the results of the node to memory.
class FunctionalWrite {
 public:
  FunctionalWrite(Graph& graph, TensorMemory& memory, Node& node);

 private:
  void in_place();
  void to_arguments(const std::vector<std::string_view>& names);
  bool fill(Place& place);
  void copy(Place& place, std::string_view source);
  void fill_diagonal(Place& place);
  Value* converted(Value* value, DType dtype);
  /// Output number `index` of the node, which computes elements of type `given`, as one of the type that memory has.
  Value* stored(Node& made, size_t index, const Type& type, DType given);
  Value* filled(Value* like, const Type& type, const AttrValue& value, Value* number);
  void finish(Place& place, Value* content);

  Graph& graph_;
  TensorMemory& memory_;
  Node& node_;
};

}  // namespace tonnx
