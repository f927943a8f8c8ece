// group_norm.cpp - aten: recognises group norms that exporters write as instance norms of a reshaped tensor.
#include <algorithm>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// Whether an argument is absent, or a constant all of whose elements are that number.
bool is_all(const Node& node, std::string_view argument, double number) {
  const Attribute* found = node.find_attribute(argument);
  if (found == nullptr || found->value.is_none()) return true;
  const Value* value = operand(node, argument);
  const auto elements = value && value->constant ? floats_of(*value->constant) : std::nullopt;
  return elements && std::all_of(elements->begin(), elements->end(), [&](double each) { return each == number; });
}

bool is_reshape(const Node* node) { return is_aten(node, "reshape") || is_aten(node, "flatten", "using_ints"); }

bool asks_for_rows(const Use& use) {
  const int64_t* dim = is_aten(use.user, "sym_size", "int") ? find_int(*use.user, "dim") : nullptr;
  return dim && *dim == 0;
}

/// The node that makes a value for one user only, besides those that ask how many rows it has.
const Node* made_for_rows(const Value* value, const Graph& graph) {
  if (value == nullptr || value->producer == nullptr || value->producer->graph != &graph) return nullptr;
  const auto asked = static_cast<size_t>(std::count_if(value->uses.begin(), value->uses.end(), asks_for_rows));
  return value->uses.size() == asked + 1 ? value->producer : nullptr;
}

/// Asks for the number of rows elsewhere.
void ask_for_rows(const Value& value, Value* of) {
  const std::vector<Use> uses = value.uses;
  for (const Use& use : uses) {
    if (asks_for_rows(use)) use.user->set_input(0, of);
  }
}

struct Grouped {
  Value* of = nullptr;
  const Value *rows = nullptr, *normalised = nullptr;
  int64_t groups = 0, channels = 0;
  double eps = 0;
};

/// Whether a node normalises each channel, and does nothing else.
bool is_plain_norm(const Node* norm) {
  if (!is_aten(norm, "instance_norm") || !is_all(*norm, "weight", 1) || !is_all(*norm, "bias", 0)) return false;
  const Attribute* own = norm->find_attribute("use_input_stats");
  const auto* uses_own = own ? own->value.get<bool>() : nullptr;
  return uses_own && *uses_own && number_of(*norm, "eps");
}

/// instance_norm(x) is one of as many groups as there are channels.
std::optional<Grouped> find_channels(const Node& norm) {
  Value* x = is_plain_norm(&norm) ? operand(norm, "input") : nullptr;
  const auto channels = x && x->type.shape && x->type.shape->size() > 2 ? (*x->type.shape)[1].constant() : std::nullopt;
  if (!channels) return std::nullopt;
  return Grouped{x, x, norm.output(0), *channels, *channels, *number_of(norm, "eps")};
}

/// reshape(instance_norm(reshape(x, [n, groups, -1])), sizes of x), without weights of its own.
std::optional<Grouped> find_grouped(const Node& last, const Graph& graph) {
  const Node* norm = is_reshape(&last) ? made_for_rows(operand(last, "self"), graph) : nullptr;
  if (!is_plain_norm(norm)) return std::nullopt;
  const auto eps = number_of(*norm, "eps");
  const Value* rows = operand(*norm, "input");
  const Node* first = made_for_rows(rows, graph);
  Value* x = is_reshape(first) ? operand(*first, "self") : nullptr;
  if (x == nullptr || !x->type.shape || !rows->type.shape) return std::nullopt;
  const Shape &from = *x->type.shape, &grouped = *rows->type.shape;
  if (from.size() < 3 || grouped.size() != 3 || !(grouped[0] == from[0])) return std::nullopt;
  const auto channels = from[1].constant(), groups = grouped[1].constant();
  const auto& to = last.output(0)->type.shape;
  if (!channels || !groups || *groups < 1 || *channels % *groups != 0 || !to || !(*to == from)) return std::nullopt;
  return Grouped{x, rows, norm->output(0), *groups, *channels, *eps};
}

/// The constant of one number for each channel with which the only user of a value combines it; null elsewhere.
Value* per_channel(const Value* value, std::string_view op, const Grouped& found) {
  Value* other = combined_with(value, op);
  if (other == nullptr || !other->constant || other->constant->dims.empty()) return nullptr;
  std::vector<int64_t> dims = other->constant->dims;
  const size_t rank = found.of->type.shape->size();
  if (dims.size() == rank && dims[0] == 1) dims.erase(dims.begin());
  const bool is_one_each = dims.size() == rank - 1 && dims[0] == found.channels &&
                           std::all_of(dims.begin() + 1, dims.end(), [](int64_t size) { return size == 1; });
  return is_one_each ? other : nullptr;
}

/// The same numbers as a vector, which has the name: nobody else uses what exporters reshaped for this.
Value* as_vector(Graph& graph, Value* value) {
  auto tensor = std::make_shared<Tensor>(*value->constant);
  tensor->dims = {tensor->count()};
  Graph* root = &graph;
  while (root->owner != nullptr) root = root->owner->graph;
  Value* vector = root->add_initializer(value->name, tensor);
  vector->trainable = value->trainable;
  if (value->uses.size() == 1) std::swap(vector->name, value->name);
  return vector;
}

}  // namespace

void recognise_group_norm(Graph& graph) {
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_group_norm(*subgraph);
    const auto channels = find_channels(*node);
    if (const auto found = channels ? channels : find_grouped(*node, graph)) {
      ask_for_rows(*found->rows, found->of);
      ask_for_rows(*found->normalised, found->of);
      Node* last = node;
      Value* weight = per_channel(last->output(0), "mul", *found);
      Node* scaling = weight ? last->output(0)->uses[0].user : nullptr;
      Value* bias = scaling ? per_channel(scaling->output(0), "add", *found) : nullptr;
      if (bias != nullptr) last = scaling->output(0)->uses[0].user;  // nn.GroupNorm has both, or none
      if (channels && bias == nullptr) {
        node = next;
        continue;
      }
      Node* norm = graph.add_node("aten", "group_norm", last);
      norm->name = last->name;
      norm->metadata = last->metadata;
      add_operand(*norm, "input", found->of);
      norm->attributes.push_back({"num_groups", found->groups, AttrType::None, {}, {}});
      if (bias != nullptr) {
        add_operand(*norm, "weight", as_vector(graph, weight));
        add_operand(*norm, "bias", as_vector(graph, bias));
      }
      norm->attributes.push_back({"eps", found->eps, AttrType::None, {}, {}});
      graph.move_output(last->output(0), norm, 0);
      last->resize_outputs(0);
      next = last->next;
      graph.erase(last);
      is_changed = true;
    }
    node = next;
  }
  if (is_changed) remove_unused_nodes(graph);
}

}  // namespace tonnx
