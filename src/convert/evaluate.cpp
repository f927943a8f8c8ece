// evaluate.cpp - calls the evaluation of operators, within limits.
#include "convert/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/budget.h"
#include "base/computed.h"
#include "ir/cast_numbers.h"
#include "ir/origins.h"
#include "ops/frame/eval.h"
#include "ops/frame/python_names.h"

namespace tonnx {
namespace {

/// Known integers as a tensor, where all are numbers.
TensorPtr constant_of(const Value& value) {
  std::vector<double> numbers;
  for (const Dim& dim : *value.known_ints) {
    const auto number = dim.constant();
    if (!number || *number > int64_t{1} << 52 || *number < -(int64_t{1} << 52)) return nullptr;
    numbers.push_back(static_cast<double>(*number));
  }
  const auto rank = value.type.rank();
  if (!rank || *rank > 1 || value.type.dtype == DType::Undefined) return nullptr;
  return make_floats(value.type.dtype,
                     *rank == 0 ? std::vector<int64_t>() : std::vector{static_cast<int64_t>(numbers.size())}, numbers);
}

/// What the elements of a tensor take. A string takes some room even where it is empty.
int64_t size_of(const Tensor& tensor) {
  auto bytes = static_cast<int64_t>(tensor.data.size());
  for (const std::string& text : tensor.strings) bytes += static_cast<int64_t>(sizeof(std::string) + text.size());
  return bytes;
}

/// What the outputs take whose sizes are known; nothing where they are no tensors, or are known already.
std::optional<int64_t> bytes_to_make(const Node& node, bool& is_open) {
  int64_t bytes = 0, string = sizeof(std::string);  // the longest that can be made
  for (const Value* input : node.inputs()) {
    int64_t longest = 0;
    for (size_t i = 0; input && i < input->constant->strings.size(); ++i)
      longest = std::max(longest, static_cast<int64_t>(input->constant->strings[i].size()));
    string += longest;
  }
  bool is_done = true;
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    if (!output->type.is_tensor() || output->type.dtype == DType::Undefined) return std::nullopt;
    is_done = is_done && output->constant != nullptr;
    const auto dims = static_dims(output);
    is_open = is_open || !dims;
    if (!dims) continue;
    const int64_t count = count_of(*dims);
    if (output->type.dtype == DType::String && count > INT64_MAX / 2 / string) return std::nullopt;
    const int64_t more = output->type.dtype == DType::String ? count * string : byte_size(output->type.dtype, count);
    if (__builtin_add_overflow(bytes, more, &bytes)) return std::nullopt;
  }
  return is_done ? std::nullopt : std::optional(bytes);
}

/// How many steps a walk through a tensor takes: a size of 0 among large ones does not make it shorter.
int64_t steps_through(const std::vector<int64_t>& dims) {
  int64_t steps = 1;
  for (const int64_t dim : dims) steps = checked_mul(steps, std::max<int64_t>(dim, 1));
  return steps;
}

/// Whether the conversion has room and time left to compute the outputs, which take that many bytes.
bool can_afford(const Node& node, int64_t made) {
  int64_t steps = 0;
  for (const Value* input : node.inputs()) {
    if (input != nullptr) steps = checked_add(steps, steps_through(input->constant->dims));
  }
  for (const Value* output : node.outputs()) {
    const auto dims = output ? static_dims(output) : std::nullopt;
    if (dims) steps = checked_add(steps, steps_through(*dims));
  }
  return budget().try_take(Resource::Steps, steps) && budget().try_take(Resource::Memory, made);
}

bool has_user(const Value* value) {
  return value != nullptr &&
         std::any_of(value->uses.begin(), value->uses.end(), [](const Use& use) { return use.user != nullptr; });
}

/// A node whose output is all elements of its first input, maybe in another order or of another type.
bool hands_on_all(const Node& node) {
  const Value *from = node.input(0), *to = node.output(0);
  const Tensor* constant = from != nullptr ? from->constant.get() : nullptr;
  const auto dims = to != nullptr ? static_dims(to) : std::nullopt;
  return has_trait(node, kMoves) && constant != nullptr && dims && count_of(*dims) == constant->count();
}

/// Whether a layer gets what the node gives, turned and joined, that PyTorch has in another order: the exporter sorted
/// it, and the weights of the layer are what that began with.
bool is_sorted_for_layer(const Node& node) {
  constexpr size_t kMostBetween = 64;
  std::vector<const Node*> todo{&node};
  for (size_t i = 0; i < todo.size(); ++i) {
    if (!has_trait(*todo[i], kMoves) && todo[i]->op != "Concat" && todo[i]->op != "Split") continue;
    for (const Value* output : todo[i]->outputs()) {
      if (output == nullptr) continue;
      for (const Use& use : output->uses) {
        if (use.user != nullptr && has_trait(*use.user, kWeightOrderDiffersFromTorch)) return true;
        if (use.user != nullptr && todo.size() < kMostBetween &&
            std::find(todo.begin(), todo.end(), use.user) == todo.end())
          todo.push_back(use.user);
      }
    }
  }
  return false;
}

/// Weights that are joined, and then only taken apart again, for layers of which each has its own.
bool is_taken_apart(const Node& node) {
  const Value* whole = node.op == "Concat" ? node.output(0) : nullptr;
  const bool has_parts = whole != nullptr && !whole->uses.empty() &&
                         (whole->uses.size() > 1 || (whole->uses[0].user && whole->uses[0].user->op == "Split"));
  return has_parts && std::all_of(whole->uses.begin(), whole->uses.end(), [](const Use& use) {
           return use.user != nullptr &&
                  (use.user->op == "Slice" || use.user->op == "Split" || use.user->op == "Shape");
         });
}

/// Whether a constant was made of as many integers of a few bits: `(weight_quantized - zero_point) * scale`, in nodes
/// of their own. Nobody trains those, and the scales are no weights of the model's.
bool is_dequantised(const Value* value, int depth = 4) {
  if (value == nullptr || !value->constant || depth == 0) return false;
  const DTypeInfo& type = info(value->constant->dtype);
  if (type.kind != 'f') return (type.kind == 'i' || type.kind == 'u') && type.bits <= 8;
  return value->producer != nullptr &&
         std::any_of(value->producer->inputs().begin(), value->producer->inputs().end(), [&](const Value* input) {
           return input && input->constant && input->constant->count() == value->constant->count() &&
                  is_dequantised(input, depth - 1);
         });
}

/// What is computed of the weights of modules, or looked up in them: they are trained as they are, so that the code has
/// to compute it too.
bool is_computed_of_weights(const Node& node) {
  if (std::any_of(node.inputs().begin(), node.inputs().end(), [](const Value* each) { return is_dequantised(each); }))
    return false;
  return !hands_on_all(node) && std::any_of(node.inputs().begin(), node.inputs().end(), is_weight_of_module) &&
         !is_sorted_for_layer(node) && !is_taken_apart(node);
}

/// The inputs whose elements the node only puts into other places.
std::vector<size_t> moved_inputs(const Node& node) {
  if (node.op == "Cast" || node.op == "CastLike") return {};
  if (has_trait(node, kMoves)) return {0};
  const auto all = [&](size_t from) {
    std::vector<size_t> result;
    for (size_t i = from; i < node.inputs().size(); ++i) result.push_back(i);
    return result;
  };
  if (node.op == "Concat") return all(0);
  if (node.op == "Where") return all(1);
  static constexpr std::array<std::string_view, 9> kOthers{
      "Split", "Gather", "GatherElements", "GatherND", "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Compress"};
  const bool is_move = std::find(kOthers.begin(), kOthers.end(), node.op.view()) != kOthers.end();
  return is_move ? std::vector<size_t>{0} : std::vector<size_t>{};
}

/// Evaluates the node again, of other inputs than it has.
std::function<Tensors(const Tensors&)> again(const Node& node, const OnnxOpEntry& entry) {
  struct Recipe {
    Symbol domain, op;
    int64_t version;
    std::vector<Attribute> attributes;
    DType dtype;
    std::vector<Type> outputs;
  };
  Recipe recipe{node.domain, node.op, node.version, node.attributes, DType::Undefined, {}};
  for (const Value* input : node.inputs()) {
    if (input != nullptr && recipe.dtype == DType::Undefined) recipe.dtype = input->constant->dtype;
  }
  for (const Value* output : node.outputs()) recipe.outputs.push_back(output != nullptr ? output->type : Type{});
  return [recipe, &entry](const Tensors& inputs) {
    Graph graph;
    Node* copy = graph.add_node(recipe.domain, recipe.op);
    copy->version = recipe.version;
    copy->attributes = recipe.attributes;
    DType dtype = DType::Undefined;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr) continue;
      if (dtype == DType::Undefined) dtype = inputs[i]->dtype;
      Value* input = graph.add_initializer("input", inputs[i]);
      input->type = Type::tensor(inputs[i]->dtype, Shape(inputs[i]->dims.begin(), inputs[i]->dims.end()));
      copy->set_input(i, input);
    }
    for (Type type : recipe.outputs) {
      if (type.is_tensor() && type.dtype == recipe.dtype) type.dtype = dtype;
      graph.add_output_to(copy, graph.unique_name("output"), type);
    }
    return Tensors(entry.op->eval(NodeView(*copy, entry)));
  };
}

/// Notes what a node that was evaluated gave, and of what.
void note_results(const Node& node, const OnnxOpEntry& entry, const Results& results) {
  Origin origin{.op = node.domain.empty() ? std::string(node.op.view()) : std::string()};
  for (const Value* input : node.inputs()) origin.inputs.push_back(input != nullptr ? input->constant : nullptr);
  const bool is_other = std::all_of(results.begin(), results.end(), [&](const TensorPtr& result) {
    return result != nullptr && std::none_of(origin.inputs.begin(), origin.inputs.end(), [&](const TensorPtr& input) {
             return input != nullptr && input->data.data() == result->data.data();
           });
  });
  if (results.empty() || !is_other || !subgraphs_of(node).empty()) return;
  origin.results = results;
  origin.moved = moved_inputs(node);
  origin.compute = again(node, entry);
  if (node.output(0) != nullptr) origin.name = node.output(0)->name;
  origins()->computed.push_back(std::move(origin));
}

constexpr int kLongestChain = 8;

/// The nodes between constants and what one choice alone takes, the nearest to the constants first: each gives, place
/// by place, a tensor of these sizes. False where there are others between them.
bool find_chain(const Value* value, const std::vector<int64_t>& dims, int depth, std::vector<Node*>& chain) {
  if (value == nullptr || value->constant) return value != nullptr;
  Node* node = value->producer;
  if (node == nullptr || depth == 0 || value->uses.size() != 1 || value->uses[0].user == nullptr ||
      value->uses[0].user->graph != node->graph || node->outputs().size() != 1 || !has_trait(*node, kElementwise) ||
      static_dims(value) != dims)
    return false;
  for (const Value* input : node->inputs()) {
    if (!find_chain(input, dims, depth - 1, chain)) return false;
  }
  chain.push_back(node);
  return true;
}

/// The tensor with zeros for infinities and NaN where the condition is not that; null where there are none.
TensorPtr without_unchosen(const Tensor& tensor, const Tensor& condition, bool chosen) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if ((element_as_int(condition, i) != 0) == chosen || std::isfinite(element_as_double(tensor, i))) continue;
    if (bytes.empty()) bytes.assign(tensor.data.view().begin(), tensor.data.view().end());
    set_element_bits(tensor.dtype, bytes.data(), i, 0);
  }
  if (bytes.empty()) return nullptr;
  auto result = std::make_shared<Tensor>(tensor);
  result->data = Bytes::own(std::move(bytes));
  return result;
}

/// What a condition does not choose may be anything. The logarithm of 0, where the distance is small enough to be taken
/// itself, has no integer that it could become, and would keep the rest from being computed.
void forget_unchosen(Node& choice, FreshDims& fresh, const FoldLimits& limits) {
  const Value* condition = choice.inputs().size() == 3 ? choice.input(0) : nullptr;
  if (condition == nullptr || !condition->constant || condition->constant->dtype != DType::Bool ||
      static_dims(choice.output(0)) != condition->constant->dims)
    return;
  const std::vector<int64_t>& dims = condition->constant->dims;
  for (const size_t branch : {size_t{1}, size_t{2}}) {
    std::vector<Node*> chain;
    if (!find_chain(choice.input(branch), dims, kLongestChain, chain) || chain.empty()) continue;
    bool is_changed = false;
    for (Node* node : chain) {
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        const Value* input = node->input(i);
        if (!input->constant || input->sparse || is_computed(input->constant->data) ||
            !is_float(input->constant->dtype) || info(input->constant->dtype).bits < 16 ||
            input->constant->dims != dims)
          continue;
        const TensorPtr finite = without_unchosen(*input->constant, *condition->constant, branch == 1);
        if (finite == nullptr) continue;
        node->set_input(i, node->graph->add_initializer(node->graph->unique_name(input->name), finite));
        is_changed = true;
      }
    }
    for (Node* node : chain) {
      const OnnxOpEntry* entry = is_changed ? find_onnx_op(node->domain.view(), node->op.view()) : nullptr;
      if (entry != nullptr) fold_node(*node, *entry, fresh, limits);
    }
  }
}

}  // namespace

bool is_named_weight(const Value& value) {
  return value.producer == nullptr && value.constant && is_float(value.constant->dtype) &&
         python::is_state_key(value.name);
}

bool is_weight_of_module(const Value* value) {
  while (value != nullptr && value->producer != nullptr && hands_on_all(*value->producer))
    value = value->producer->input(0);
  return value != nullptr && is_named_weight(*value);
}

void fold_node(Node& node, const OnnxOpEntry& entry, FreshDims& fresh, const FoldLimits& limits) {
  for (Value* output : node.outputs()) {
    if (output && !output->constant && output->known_ints) output->constant = constant_of(*output);
  }
  if (entry.op->eval == nullptr || node.inputs().empty() || node.outputs().empty()) return;
  // weights that a model holds in few bits stay so: engines know them by the nodes around them
  const bool is_quantised = has_trait(node, kQuantizes);
  if (is_quantised && has_user(node.output(0))) return;
  if (limits.keeps_weights && is_computed_of_weights(node)) return;
  if (node.op == "Where" && node.domain.view().empty()) forget_unchosen(node, fresh, limits);
  const auto may_make = [&](int64_t bytes, int64_t from) {
    const bool is_small = static_cast<double>(bytes) <= limits.times * static_cast<double>(from);
    return is_small || (bytes - from <= limits.bytes && fresh.take_bytes(bytes));
  };
  int64_t given = 0;
  bool is_trained = false;
  for (const Value* input : node.inputs()) {
    if (input == nullptr) continue;
    if (!input->constant || input->sparse) return;
    if (is_computed(input->constant->data) && find_cast(*input->constant) == nullptr) return;
    if (input->constant->dtype == DType::String && !has_trait(node, kTakesStrings)) return;
    given += size_of(*input->constant);
    is_trained = is_trained || ((input->producer == nullptr || input->trainable) && is_float(input->constant->dtype));
  }
  bool is_open = false;
  const auto made = bytes_to_make(node, is_open);
  if (!made || (is_open && !has_trait(node, kBounded))) return;
  // what the file holds may be turned into another type, but a small file does not become a large one
  if (!may_make(*made, given) || !can_afford(node, *made)) return;
  for (Value* input : node.inputs()) {
    if (input != nullptr) input->constant = with_cast_made(input->constant);
  }
  const Results results = entry.op->eval(NodeView(node, entry));
  if (origins() != nullptr) note_results(node, entry, results);
  for (size_t i = 0; i < results.size() && i < node.outputs().size(); ++i) {
    Value* output = node.output(i);
    if (output == nullptr || results[i] == nullptr || results[i]->dtype != output->type.dtype) continue;
    if (is_open && !may_make(size_of(*results[i]), given)) return;
    output->constant = results[i];
    output->type.shape = Shape(results[i]->dims.begin(), results[i]->dims.end());
    output->trainable = is_trained && !is_quantised && is_float(results[i]->dtype);
  }
}

const Value* origin_of_weight(const Value* value) {
  const Value* origin = value;
  while (origin->producer != nullptr && origin->trainable) {
    const Value* next = nullptr;
    for (const Value* input : origin->producer->inputs()) {
      if (input == nullptr || !input->constant || !is_float(input->constant->dtype)) continue;
      if (input->producer != nullptr && !input->trainable) continue;
      if (next != nullptr || input->uses.size() != 1) return value;
      next = input;
    }
    if (next == nullptr) return value;
    origin = next;
  }
  return origin;
}

}  // namespace tonnx
