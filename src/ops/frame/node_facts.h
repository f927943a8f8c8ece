// node_facts.h - what nodes of ONNX say, whatever opset they follow: NodeView wants those of the newest one.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/frame/op_def.h"

namespace tonnx {

/// Whether an attribute is one of the caller's, which a function does not know.
bool has_references(const Node& node);
/// A node of ai.onnx with that operator, all of whose attributes are known. `op` is best a constant of the file, as
/// names are looked up when it is made.
inline bool is_onnx(const Node* node, Symbol op) {
  return node != nullptr && node->op == op && node->domain.empty() && !has_references(*node);
}
inline bool is_onnx(const Node& node, Symbol op) { return is_onnx(&node, op); }
/// The node that makes a value, where it is in the same graph and of this operator.
Node* producer_of(const Value* value, Symbol op);
/// The same, of an operator with that trait.
Node* producer_with(const Value* value, OnnxTrait trait);
/// The one node that uses a value, once, in its own graph; null where there are more, or it is an output of a graph.
Node* only_user(const Value* value);
bool is_graph_output(const Value* value);

// What is an attribute in one opset is a constant input in another: the name is that of the newest one. Nothing where
// it is neither given nor constant.
std::optional<std::vector<int64_t>> ints_of(const Node& node, std::string_view name);
std::optional<int64_t> int_of(const Node& node, std::string_view name);
std::optional<double> float_of(const Node& node, std::string_view name);
std::optional<std::vector<double>> floats_of(const Node& node, std::string_view name);
std::optional<std::string> text_of(const Node& node, std::string_view name);
/// Whether an attribute or an input of that name is given at all.
bool has(const Node& node, std::string_view name);

/// Whether they are known, and all that number.
bool all_are(const std::optional<std::vector<int64_t>>& numbers, int64_t number);
/// The number that all elements of a constant are; nothing for other values.
std::optional<double> uniform_value(const Value* value);
/// Both are tensors of one type whose shapes are known and equal.
bool have_same_type(const Value* a, const Value* b);
/// `axis` counted from the front; nothing where it is out of range.
std::optional<int64_t> from_front(int64_t axis, int64_t rank);
/// Axes counted from the front, sorted; nothing where one is out of range or comes twice.
std::optional<std::vector<int64_t>> axes_from_front(const std::vector<int64_t>& axes, int64_t rank);

}  // namespace tonnx
