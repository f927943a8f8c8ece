// float_type.cpp - aten: tensors that are made as floats are of the type that the model computes in.
#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "passes/aten/match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr size_t kFarthest = 16;  // so many values are asked whether they are still needed

bool is_model_float(const Value* value) {
  return value != nullptr && value->type.is_tensor() && value->type.dtype == DType::Float32 &&
         value->type.rank().value_or(0) > 0;
}

/// Whether a node makes floats of what is none: of integers, or of sizes only.
bool makes_floats(const Node& node) {
  constexpr std::array<std::string_view, 4> kFactories{"zeros", "ones", "full", "arange"};
  const Attribute* argument = node.domain == "aten" ? node.find_attribute("dtype") : nullptr;
  const auto* dtype = argument ? argument->value.get<DType>() : nullptr;
  if (dtype == nullptr || *dtype != DType::Float32) return false;
  if (std::find(kFactories.begin(), kFactories.end(), node.op.view()) != kFactories.end()) return true;
  const Value* x = is_aten(node, "to", "dtype") ? operand(node, "self") : nullptr;
  return x && x->type.is_tensor() && (x->type.dtype == DType::Bool || is_integer(x->type.dtype));
}

bool is_least(const Node& node, std::string_view argument) {
  return number_of(node, argument) == static_cast<double>(std::numeric_limits<float>::lowest());
}

Value* first_tensor(const Node& node) {
  Value* self = operand(node, "self");
  return self ? self : operand(node, "other");
}

/// The argument that is the least number of float32 beside a tensor of that type; null for other nodes.
const char* least_of_tensor(const Node& node) {
  const char* argument = is_aten(node, "masked_fill", "Scalar")  ? "value"
                         : is_aten(node, "where", "ScalarOther") ? "other"
                         : is_aten(node, "where", "ScalarSelf")  ? "self"
                                                                 : nullptr;
  return argument && is_least(node, argument) && is_model_float(first_tensor(node)) ? argument : nullptr;
}

/// Finds the type of each of these nodes among the tensors that its neighbours compute with.
class FloatTypes {
 public:
  /// `otherwise`: what is at hand everywhere, an input of the model or a weight.
  explicit FloatTypes(Value* otherwise) : otherwise_(otherwise) {}

  void run(Graph& graph) {
    std::unordered_map<const Node*, size_t> places;
    for (const Node& node : graph) places.emplace(&node, places.size());
    std::vector<Value*> known;
    for (Value* input : graph.inputs()) {
      if (is_model_float(input)) known.push_back(input);
    }
    for (Node* node = graph.first(); node != nullptr; node = node->next) {
      for (const GraphPtr& subgraph : subgraphs_of(*node)) run(*subgraph);
      if (makes_floats(*node)) follow(graph, *node, places, known);
      if (const char* argument = least_of_tensor(*node)) set_least(graph, *node, argument, first_tensor(*node));
      for (Value* output : node->outputs()) {
        if (is_model_float(output)) known.push_back(output);
      }
    }
  }

 private:
  using Places = std::unordered_map<const Node*, size_t>;

  void follow(Graph& graph, Node& node, const Places& places, const std::vector<Value*>& known) {
    Value* like = otherwise_;
    const auto is_needed_behind = [&](const Value* value) {
      // the last uses are mostly those farthest behind
      return std::any_of(value->uses.rbegin(), value->uses.rend(), [&](const Use& use) {
        const auto at = places.find(use.user);
        return at != places.end() && at->second > places.at(&node);
      });
    };
    const auto farthest = known.rbegin() + static_cast<ptrdiff_t>(std::min(known.size(), kFarthest));
    // what is used more than once is a variable of the code already
    auto found = std::find_if(known.rbegin(), farthest, [&](const Value* value) {
      return (value->uses.size() > 1 || value->producer == nullptr) && is_needed_behind(value);
    });
    if (found == farthest) found = std::find_if(known.rbegin(), farthest, is_needed_behind);
    if (found != farthest) like = *found;
    if (like == nullptr) return;
    Node* type = graph.add_node("tonnx", "dtype_of", &node);
    type->name = node.name;
    add_operand(*type, "self", like);
    Value* made = graph.add_output_to(type, graph.unique_name("dtype"), Type::number(Type::Kind::Opaque));
    node.take_attribute("dtype");
    add_operand(node, "dtype", made);
    if (is_least(node, "fill_value")) set_least(graph, node, "fill_value", like);
  }

  /// The least number of the type of a tensor: that of float32 does not fit into others.
  static void set_least(Graph& graph, Node& node, std::string_view argument, Value* like) {
    Node* least = graph.add_node("tonnx", "finfo_min", &node);
    least->name = node.name;
    add_operand(*least, "self", like);
    Value* made = graph.add_output_to(least, graph.unique_name("least"), Type::number(Type::Kind::Opaque));
    node.take_attribute(argument);
    add_operand(node, argument, made);
  }

  Value* otherwise_;
};

bool has_quantised_weights(const Graph& graph) {
  return std::any_of(graph.initializers().begin(), graph.initializers().end(), [](const Value* value) {
    const DType dtype = value->constant->dtype;
    return is_used(value) && !value->constant->dims.empty() && is_integer(dtype) && info(dtype).bits <= 8;
  });
}

}  // namespace

void follow_float_type(Graph& graph) {
  if (has_quantised_weights(graph)) return;
  Value* otherwise = nullptr;
  for (Value* value : graph.inputs()) {
    if (otherwise == nullptr && is_model_float(value)) otherwise = value;
  }
  for (Value* value : graph.initializers()) {
    if (otherwise == nullptr && value->trainable && is_used(value) && is_model_float(value)) otherwise = value;
  }
  FloatTypes(otherwise).run(graph);
}

}  // namespace tonnx
