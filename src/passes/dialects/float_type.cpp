// float_type.cpp - aten: tensors that are made as floats are of the type that the model computes in.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <unordered_map>

#include "ops/frame/python_names.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr size_t kFarthest = 16;        // so many values are asked whether they are still needed
constexpr size_t kFarthestShared = 64;  // and so many, by as many uses, whether they are known outside of a module

bool is_model_float(const Value* value) {
  return value != nullptr && value->type.is_tensor() && value->type.dtype == DType::Float32 &&
         value->type.rank().value_or(0) > 0;
}

/// Whether a node makes floats of what is none: of integers, or of sizes only.
bool makes_floats(const Node& node) {
  constexpr std::array<std::string_view, 4> kFactories{"zeros", "ones", "full", "arange"};
  if (node.domain != "aten") return false;
  const bool is_factory = std::find(kFactories.begin(), kFactories.end(), node.op.view()) != kFactories.end();
  const Attribute* argument = node.find_attribute("dtype");
  const bool is_unsaid = argument == nullptr || argument->value.is_none();
  if (is_factory && is_unsaid && is_model_float(node.output(0))) return node.op != "arange";
  const auto* dtype = argument ? argument->value.get<DType>() : nullptr;
  if (dtype == nullptr || *dtype != DType::Float32) return false;
  if (is_factory) return true;
  const Value* x = is_aten(node, "to", "dtype") ? operand(node, "self") : nullptr;
  return x && x->type.is_tensor() && (x->type.dtype == DType::Bool || is_integer(x->type.dtype));
}

/// torch.where of two numbers, which gives float32 whatever the model computes in. Attention takes a mask of that type
/// beside any other.
bool chooses_floats(const Node& node) {
  if (!is_aten(node, "where", "Scalar") || !is_model_float(node.output(0))) return false;
  const std::vector<Use>& uses = node.output(0)->uses;
  return !std::all_of(uses.begin(), uses.end(),
                      [](const Use& use) { return is_aten(use.user, "scaled_dot_product_attention"); });
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

std::string path_of(const Node* node) { return node ? python::path_of_node(node->name) : ""; }

/// The module around two places.
std::string common_place(const std::string& a, const std::string& b) {
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const bool is_whole = (at == a.end() || *at == '.') && (other == b.end() || *other == '.');
  const auto length = static_cast<size_t>(at - a.begin());
  const size_t dot = is_whole ? length : a.rfind('.', length > 0 ? length - 1 : 0);
  return dot == std::string::npos || length == 0 ? "" : a.substr(0, dot);
}

bool is_inside(const std::string& place, const std::string& around) {
  return around.empty() || place == around || place.starts_with(around + ".");
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
      if (chooses_floats(*node)) node = follow_choice(graph, *node, places, known);
      if (const char* argument = least_of_tensor(*node)) set_least(graph, *node, argument, first_tensor(*node));
      for (Value* output : node->outputs()) {
        if (is_model_float(output)) known.push_back(output);
      }
    }
  }

 private:
  using Places = std::unordered_map<const Node*, size_t>;

  /// A tensor at hand whose type is that of the model, best one that is needed behind the node as well.
  Value* find_like(const Node& node, const Places& places, const std::vector<Value*>& known) const {
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
    return found != farthest ? *found : otherwise_;
  }

  /// The same for what modules share, maybe one mask for all layers: a tensor that is known where it has to be made,
  /// and not only inside of the first of them.
  Value* find_shared_like(const Node& node, const Places& places, const std::vector<Value*>& known) const {
    std::string place = path_of(&node);
    for (const Use& use : node.output(0)->uses) place = common_place(place, path_of(use.user));
    const auto is_known_there = [&](const Value* value) {
      const std::string from = path_of(value->producer);
      const auto most = value->uses.begin() + static_cast<ptrdiff_t>(std::min(value->uses.size(), kFarthestShared));
      return std::any_of(value->uses.begin(), most, [&](const Use& use) {
        return use.user != nullptr && is_inside(place, common_place(from, path_of(use.user)));
      });
    };
    const auto farthest = known.rbegin() + static_cast<ptrdiff_t>(std::min(known.size(), kFarthestShared));
    const auto found = std::find_if(known.rbegin(), farthest, is_known_there);
    return found != farthest ? *found : find_like(node, places, known);
  }

  static Value* add_dtype(Graph& graph, Node& node, Value* like) {
    Node* type = graph.add_node("tonnx", "dtype_of", &node);
    type->name = node.name;
    add_operand(*type, "self", like);
    return graph.add_output_to(type, graph.unique_name("dtype"), Type::number(Type::Kind::Opaque));
  }

  void follow(Graph& graph, Node& node, const Places& places, const std::vector<Value*>& known) {
    Value* like = find_like(node, places, known);
    if (like == nullptr) return;
    Value* made = add_dtype(graph, node, like);
    node.take_attribute("dtype");
    add_operand(node, "dtype", made);
    if (is_least(node, "fill_value")) set_least(graph, node, "fill_value", like);
  }

  /// where(c, 1.0, 0.0).to(x.dtype); gives the last node.
  Node* follow_choice(Graph& graph, Node& node, const Places& places, const std::vector<Value*>& known) {
    Value* like = find_shared_like(node, places, known);
    if (like == nullptr) return &node;
    for (const bool is_self : {true, false}) {
      if (is_least(node, is_self ? "self" : "other")) return choose_least(graph, node, is_self, like);
    }
    Value* dtype = add_dtype(graph, node, like);
    Node* cast = graph.add_node("aten", "to", node.next);
    cast->overload = "dtype";
    cast->name = node.name;
    cast->metadata = node.metadata;
    Value* choice = node.output(0);
    Value* made = graph.add_output_to(cast, graph.unique_name(choice->name), choice->type);
    graph.replace_uses(choice, made);
    add_operand(*cast, "self", choice);
    add_operand(*cast, "dtype", dtype);
    return cast;
  }

  /// (~c).to(x.dtype) * torch.finfo(x.dtype).min for where(c, 0.0, least): the least number of float64 is none of
  /// float32, in which two numbers would be chosen from. Where the other one is not 0, it is a tensor.
  static Node* choose_least(Graph& graph, Node& choice, bool is_self, Value* like) {
    const std::string_view least = is_self ? "self" : "other", plain = is_self ? "other" : "self";
    const double number = number_of(choice, plain).value_or(0);
    Value* condition = operand(choice, "condition");
    if (number != 0 || !condition->type.shape || condition->type.dtype != DType::Bool) {
      Node* made = graph.add_node("aten", "full", &choice);
      made->name = choice.name;
      made->attributes.push_back({"size", std::vector<int64_t>{}, AttrType::None, {}, {}});
      made->attributes.push_back({"fill_value", number, AttrType::None, {}, {}});
      add_operand(*made, "dtype", add_dtype(graph, *made, like));
      choice.overload = is_self ? "ScalarSelf" : "ScalarOther";
      choice.take_attribute(plain);
      add_operand(choice, plain, add_result(graph, *made, choice, Shape()));
      set_least(graph, choice, least, like);
      return &choice;
    }
    if (!is_self) {
      Node* other = graph.add_node("aten", "bitwise_not", &choice);
      add_operand(*other, "self", condition);
      condition = add_result(graph, *other, choice, *condition->type.shape);
      condition->type.dtype = DType::Bool;
    }
    Node* cast = graph.add_node("aten", "to", &choice);
    cast->overload = "dtype";
    add_operand(*cast, "self", condition);
    add_operand(*cast, "dtype", add_dtype(graph, *cast, like));
    Node* product = graph.add_node("aten", "mul", &choice);
    product->overload = "Scalar";
    add_operand(*product, "self", add_result(graph, *cast, choice, *condition->type.shape));
    product->attributes.push_back({"other", 0.0, AttrType::None, {}, {}});
    product->name = choice.name;
    product->metadata = choice.metadata;
    set_least(graph, *product, "other", like);
    graph.move_output(choice.output(0), product, 0);
    choice.resize_outputs(0);
    graph.erase(&choice);
    return product;
  }

  /// What a node gives that is there for another one, in these sizes.
  static Value* add_result(Graph& graph, Node& node, const Node& like, Shape shape) {
    node.name = like.name;
    node.metadata = like.metadata;
    Type type = like.output(0)->type;
    type.shape = std::move(shape);
    return graph.add_output_to(&node, graph.unique_name(like.output(0)->name), std::move(type));
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
