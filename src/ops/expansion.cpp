// expansion.cpp - nodes in the graphs inside others.
#include "ops/expansion.h"

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

Value* add_input(Graph& body, std::string_view wish, Type type) {
  return body.add_input(body.unique_name(wish), std::move(type));
}

}  // namespace tonnx
