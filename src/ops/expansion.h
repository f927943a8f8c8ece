// expansion.h - what operators that are written in terms of others are made with.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "ops/node_view.h"
#include "ops/opset_step.h"

namespace tonnx {

/// Appends a node of the newest opset to a graph inside another node.
Node* append_node(Graph& graph, std::string_view op, const std::vector<Value*>& inputs,
                  std::vector<Attribute> attributes = {}, size_t outputs = 1);
/// The body of a Loop, which has the number of the iteration and the condition as its inputs.
std::shared_ptr<Graph> new_loop_body(Node& loop);
/// An input of such a graph; its name is made unique.
Value* add_input(Graph& body, std::string_view wish, Type type);

/// Makes the nodes of an expansion: `make("Add", {a, b})`, in front of the node, or in a graph inside one of those
/// made.
class Expansion {
 public:
  explicit Expansion(OnnxEdit& edit) : edit_(&edit) {}
  Expansion(OnnxEdit& edit, Graph& body) : edit_(&edit), body_(&body) {}

  Value* operator()(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {}) {
    return all(1, op, std::move(inputs), std::move(attributes))[0];
  }
  /// All outputs of a node that has `count` of them.
  const std::vector<Value*>& all(size_t count, std::string_view op, std::vector<Value*> inputs,
                                 std::vector<Attribute> attributes = {}) {
    Node* made = body_ ? append_node(*body_, op, inputs, std::move(attributes), count)
                       : edit_->node_before(op, std::move(inputs), std::move(attributes), count);
    return made->outputs();
  }

  Value* number(DType dtype, double value) { return numbers(dtype, {}, {value}); }
  Value* numbers(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
    if (!is_float(dtype) && !is_integer(dtype))
      edit_->cannot("the element type of an input is not known, or no number");
    return edit_->constant(make_floats(dtype, std::move(dims), values));
  }
  Value* ints(std::vector<int64_t> values) { return edit_->ints(std::move(values)); }
  Value* cast(Value* x, DType to) { return (*this)("Cast", {x}, {{"to", static_cast<int64_t>(to)}}); }
  /// A size of 0 is that of the input.
  Value* reshape(Value* x, std::vector<int64_t> sizes) { return (*this)("Reshape", {x, ints(std::move(sizes))}); }
  Value* transpose(Value* x, std::vector<int64_t> order) { return (*this)("Transpose", {x}, {{"perm", order}}); }
  Value* unsqueeze(Value* x, std::vector<int64_t> axes) { return (*this)("Unsqueeze", {x, ints(std::move(axes))}); }
  Value* squeeze(Value* x, std::vector<int64_t> axes) { return (*this)("Squeeze", {x, ints(std::move(axes))}); }
  Value* concat(std::vector<Value*> parts, int64_t axis) { return (*this)("Concat", parts, {{"axis", axis}}); }
  /// The size of a dimension, as a list of one.
  Value* size(Value* x, int64_t axis) { return (*this)("Shape", {x}, {{"start", axis}, {"end", axis + 1}}); }
  /// The numbers from 0 to a size, which is a list of one.
  Value* range(Value* size) {
    return (*this)("Range", {number(DType::Int64, 0), squeeze(size, {0}), number(DType::Int64, 1)});
  }
  /// The elements from `start` to `end` along an axis; both are lists of one.
  Value* slice(Value* x, int64_t axis, Value* start, Value* end) {
    return (*this)("Slice", {x, start, end, ints({axis})});
  }
  Value* slice(Value* x, int64_t axis, int64_t start, int64_t end) {
    return slice(x, axis, ints({start}), ints({end}));
  }
  std::vector<Value*> split(Value* x, int64_t axis, std::vector<int64_t> sizes) {
    const size_t count = sizes.size();
    return all(count, "Split", {x, ints(std::move(sizes))}, {{"axis", axis}});
  }

 protected:
  OnnxEdit* edit_;

 private:
  Graph* body_ = nullptr;
};

inline constexpr int64_t kToTheEnd = int64_t{1} << 62;

}  // namespace tonnx
