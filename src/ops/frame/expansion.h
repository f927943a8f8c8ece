// expansion.h - what operators that are written in terms of others are made with.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "ops/frame/node_view.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

/// Appends a node of the newest opset to a graph inside another node.
Node* append_node(Graph& graph, std::string_view op, const std::vector<Value*>& inputs,
                  std::vector<Attribute> attributes = {}, size_t outputs = 1);
/// The body of a Loop, which has the number of the iteration and the condition as its inputs.
std::shared_ptr<Graph> new_loop_body(Node& loop);
/// An input of such a graph; its name is made unique.
Value* add_input(Graph& body, std::string_view hint, Type type);

/// Makes the nodes of an expansion: `make("Add", {a, b})`, in front of the node, or in a graph inside one of those
/// made.
class Expansion {
 public:
  explicit Expansion(OnnxEdit& edit) : edit_(&edit) {}
  Expansion(OnnxEdit& edit, Graph& body) : edit_(&edit), body_(&body) {}

  Value* operator()(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {});
  /// All outputs of a node that has `count` of them.
  const std::vector<Value*>& all(size_t count, std::string_view op, std::vector<Value*> inputs,
                                 std::vector<Attribute> attributes = {});
  Value* number(DType dtype, double value);
  Value* numbers(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values);
  Value* ints(std::vector<int64_t> values);
  Value* cast(Value* x, DType to);
  /// A size of 0 is that of the input.
  Value* reshape(Value* x, std::vector<int64_t> sizes);
  Value* transpose(Value* x, std::vector<int64_t> order);
  Value* unsqueeze(Value* x, std::vector<int64_t> axes);
  Value* squeeze(Value* x, std::vector<int64_t> axes);
  Value* concat(std::vector<Value*> parts, int64_t axis);
  /// The size of a dimension, as a list of one.
  Value* size(Value* x, int64_t axis);
  /// The numbers from 0 to a size, which is a list of one.
  Value* range(Value* size);
  /// The elements from `start` to `end` along an axis; both are lists of one.
  Value* slice(Value* x, int64_t axis, Value* start, Value* end);
  std::vector<Value*> split(Value* x, int64_t axis, std::vector<int64_t> sizes);

 protected:
  OnnxEdit* edit_;

 private:
  Graph* body_ = nullptr;
};

inline constexpr int64_t kToTheEnd = int64_t{1} << 62;

}  // namespace tonnx
