// expansion.cpp - nodes in the graphs inside others.
#include "ops/frame/expansion.h"

namespace tonnx {

Node* append_node(Graph& graph, std::string_view op, const std::vector<Value*>& inputs,
                  std::vector<Attribute> attributes, size_t outputs) {
  Node* node = graph.add_node("", op);
  node->version = kNewestOpset;
  for (Value* input : inputs) node->add_input(input);
  for (Attribute& each : attributes) node->set_attribute(each.name, std::move(each.value), each.type);
  for (size_t i = 0; i < outputs; ++i) graph.add_output_to(node, graph.unique_name(op));
  return node;
}

std::shared_ptr<Graph> new_loop_body(Node& loop) {
  auto body = std::make_shared<Graph>();
  body->owner = &loop;
  // the node has it from the start, so that it does not go away on its own where what is being made of it fails
  if (loop.find_attribute("body") == nullptr) loop.set_attribute("body", body, AttrType::Graph);
  add_input(*body, "i", Type::tensor(DType::Int64, Shape{}));
  add_input(*body, "keep_on", Type::tensor(DType::Bool, Shape{}));
  return body;
}

Value* add_input(Graph& body, std::string_view hint, Type type) {
  return body.add_input(body.unique_name(hint), std::move(type));
}

Value* Expansion::operator()(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes) {
  return all(1, op, std::move(inputs), std::move(attributes))[0];
}

const std::vector<Value*>& Expansion::all(size_t count, std::string_view op, std::vector<Value*> inputs,
                                          std::vector<Attribute> attributes) {
  Node* made = body_ ? append_node(*body_, op, inputs, std::move(attributes), count)
                     : edit_->node_before(op, std::move(inputs), std::move(attributes), count);
  return made->outputs();
}

Value* Expansion::number(DType dtype, double value) { return numbers(dtype, {}, {value}); }

Value* Expansion::numbers(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  if (!is_float(dtype) && !is_integer(dtype)) edit_->cannot("the element type of an input is not known, or no number");
  return edit_->constant(make_floats(dtype, std::move(dims), values));
}

Value* Expansion::ints(std::vector<int64_t> values) { return edit_->ints(std::move(values)); }

Value* Expansion::cast(Value* x, DType to) { return (*this)("Cast", {x}, {{"to", static_cast<int64_t>(to)}}); }

Value* Expansion::reshape(Value* x, std::vector<int64_t> sizes) {
  return (*this)("Reshape", {x, ints(std::move(sizes))});
}

Value* Expansion::transpose(Value* x, std::vector<int64_t> order) {
  return (*this)("Transpose", {x}, {{"perm", order}});
}

Value* Expansion::unsqueeze(Value* x, std::vector<int64_t> axes) {
  return (*this)("Unsqueeze", {x, ints(std::move(axes))});
}

Value* Expansion::squeeze(Value* x, std::vector<int64_t> axes) {
  return (*this)("Squeeze", {x, ints(std::move(axes))});
}

Value* Expansion::concat(std::vector<Value*> parts, int64_t axis) { return (*this)("Concat", parts, {{"axis", axis}}); }

Value* Expansion::size(Value* x, int64_t axis) { return (*this)("Shape", {x}, {{"start", axis}, {"end", axis + 1}}); }

Value* Expansion::range(Value* size) {
  return (*this)("Range", {number(DType::Int64, 0), squeeze(size, {0}), number(DType::Int64, 1)});
}

Value* Expansion::slice(Value* x, int64_t axis, Value* start, Value* end) {
  return (*this)("Slice", {x, start, end, ints({axis})});
}

std::vector<Value*> Expansion::split(Value* x, int64_t axis, std::vector<int64_t> sizes) {
  const size_t count = sizes.size();
  return all(count, "Split", {x, ints(std::move(sizes))}, {{"axis", axis}});
}

}  // namespace tonnx
