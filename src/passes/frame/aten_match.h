// aten_match.h - questions that passes ask of aten nodes, and how they build others.
#pragma once
#include <cmath>
#include <optional>
#include <string_view>

#include "ir/graph.h"
#include "ops/frame/node_facts.h"

namespace tonnx {

inline bool is_aten(const Node* node, std::string_view op, std::string_view overload = "") {
  return node != nullptr && node->domain == "aten" && node->op == op && node->overload == overload;
}

inline bool is_aten(const Node& node, std::string_view op, std::string_view overload = "") {
  return is_aten(&node, op, overload);
}

/// The value that an argument names; null where it is none, or a number.
inline Value* operand(const Node& node, std::string_view argument) {
  const Attribute* found = node.find_attribute(argument);
  const auto* at = found ? found->value.get<Operand>() : nullptr;
  return at ? node.input(at->index) : nullptr;
}

/// The integer that an argument is; null where it is none.
inline const int64_t* find_int(const Node& node, std::string_view argument) {
  const Attribute* found = node.find_attribute(argument);
  return found ? found->value.get<int64_t>() : nullptr;
}

/// Gives the node one more argument, which is a value.
inline void add_operand(Node& node, std::string_view name, Value* value) {
  const auto index = static_cast<uint32_t>(node.inputs().size());
  node.add_input(value);
  node.attributes.push_back({std::string(name), Operand{index}, AttrType::None, {}, {}});
}

inline std::optional<double> number_of(const Node& node, std::string_view argument) {
  const Attribute* found = node.find_attribute(argument);
  if (found == nullptr) return std::nullopt;
  if (const auto* i = found->value.get<int64_t>()) return static_cast<double>(*i);
  const auto* d = found->value.get<double>();
  return d ? std::optional(*d) : std::nullopt;
}

/// Whether an argument is this number, as well as float16 can say it.
inline bool is_number(const Node& node, std::string_view argument, double number) {
  const auto given = number_of(node, argument);
  return given && std::abs(*given - number) <= 5e-4 * std::abs(number);
}

/// Which dimension of its input each one of a node's result is; nothing for what moves none.
inline std::optional<std::vector<int64_t>> order_of(const Node* node, size_t rank) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  const auto from_front = [&](int64_t dim) {
    return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
  };
  if (is_aten(node, "transpose", "int")) {
    const int64_t *a = find_int(*node, "dim0"), *b = find_int(*node, "dim1");
    if (!a || !b || from_front(*a) >= rank || from_front(*b) >= rank) return std::nullopt;
    std::swap(order[from_front(*a)], order[from_front(*b)]);
    return order;
  }
  const Attribute* dims = is_aten(node, "permute") ? node->find_attribute("dims") : nullptr;
  const auto* given = dims ? dims->value.get<std::vector<int64_t>>() : nullptr;
  if (given == nullptr || given->size() != rank) return std::nullopt;
  for (size_t i = 0; i < rank; ++i) {
    if (from_front((*given)[i]) >= rank) return std::nullopt;
    order[i] = static_cast<int64_t>(from_front((*given)[i]));
  }
  return order;
}

/// What the only user of a value combines it with by `op`, such as add, without alpha; null where it is used otherwise.
inline Value* combined_with(const Value* value, std::string_view op) {
  const Node* user = only_user(value);
  if (!is_aten(user, op, "Tensor") || user->find_attribute("alpha")) return nullptr;
  Value* self = operand(*user, "self");
  return self == value ? operand(*user, "other") : self;
}

/// The node that makes a value for one user only, in the user's own graph; null elsewhere.
inline const Node* single_use_producer(const Value* value, const Graph& graph) {
  const bool is_own = value && value->producer && value->producer->graph == &graph && value->uses.size() == 1;
  return is_own ? value->producer : nullptr;
}

}  // namespace tonnx
