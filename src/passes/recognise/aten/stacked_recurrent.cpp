// stacked_recurrent.cpp - aten: recognises recurrent layers that are one module of several layers, and those of
// batches.
#include <algorithm>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

bool is_recurrent(const Node* node) {
  return is_aten(node, "lstm", "input") || is_aten(node, "gru", "input") || is_aten(node, "rnn_tanh", "input") ||
         is_aten(node, "rnn_relu", "input");
}

/// The values of a list; empty where it has anything else.
std::vector<Value*> list_of(const Node& node, std::string_view argument) {
  std::vector<Value*> values;
  const Attribute* found = node.find_attribute(argument);
  const auto* list = found ? found->value.get<AttrList>() : nullptr;
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* at = (*list)[i].get<Operand>();
    if (at == nullptr) return {};
    values.push_back(node.input(at->index));
  }
  return values;
}

/// Whether the layer begins with zeros.
bool starts_anew(const Node& node) {
  const Attribute* found = node.find_attribute("hx");
  if (found == nullptr || found->value.is_none()) return true;
  const auto* list = found->value.get<AttrList>();
  const auto* none = found->value.get<std::vector<int64_t>>();  // as the text of a graph says an empty list
  return (list != nullptr && list->empty()) || (none != nullptr && none->empty());
}

bool have_same(const Node& a, const Node& b, std::string_view argument) {
  const Attribute *x = a.find_attribute(argument), *y = b.find_attribute(argument);
  const auto *p = x ? x->value.get<bool>() : nullptr, *q = y ? y->value.get<bool>() : nullptr;
  return p && q && *p == *q;
}

/// What the name of a node or a weight says of the module that it belongs to.
std::string_view module_of(std::string_view name) {
  const size_t end = name.find_last_of("/.");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

/// How many units the layers have; -1 where their weights are no constants.
int64_t hidden_units(const std::vector<Value*>& params) {
  const bool are_constants = params.size() > 1 && std::all_of(params.begin(), params.end(), [](const Value* param) {
                               return param && param->constant;
                             });
  return are_constants && params[1]->constant->dims.size() == 2 ? params[1]->constant->dims[1] : -1;
}

/// Where the last states of both layers are joined, one behind the other; null where nobody wants them.
struct Ending {
  Node* join = nullptr;
  bool is_known = false;
};
Ending find_ending(const Value* a, const Value* b, const Graph& graph) {
  if (a->uses.empty() && b->uses.empty()) return {nullptr, true};
  if (a->uses.size() != 1 || b->uses.size() != 1) return {};
  Node* join = a->uses[0].user;
  if (join == nullptr || join != b->uses[0].user || !is_aten(join, "cat") || join->graph != &graph) return {};
  if (join->find_attribute("dim") && number_of(*join, "dim") != 0.0) return {};
  const std::vector<Value*> parts = list_of(*join, "tensors");
  const auto at = std::find(parts.begin(), parts.end(), a);
  const bool are_neighbours = at != parts.end() && at + 1 != parts.end() && *(at + 1) == b;
  return are_neighbours ? Ending{join, true} : Ending{};
}

/// Joins the state of two layers, which is one value now.
void join_state(Graph& graph, Node& join, const Value* first, const Value* second, Value* both) {
  std::vector<Value*> parts = list_of(join, "tensors");
  std::erase(parts, second);
  std::replace(parts.begin(), parts.end(), const_cast<Value*>(first), both);
  if (parts.size() == 1) {
    graph.replace_uses(join.output(0), both);
    graph.erase(&join);
    return;
  }
  Node* made = graph.add_node("aten", "cat", &join);
  made->name = join.name;
  made->metadata = join.metadata;
  AttrList list;
  for (Value* part : parts) {
    list.emplace_back(Operand{static_cast<uint32_t>(made->inputs().size())});
    made->add_input(part);
  }
  made->attributes.push_back({"tensors", std::move(list), AttrType::None, {}, {}});
  graph.move_output(join.output(0), made, 0);
  join.resize_outputs(0);
  graph.erase(&join);
}

/// 1. lstm(lstm(x, a), b), both from zeros: lstm(x, a + b) of two layers
/// Returns the new node; null where there is none.
Node* stack_layers(Graph& graph, Node& last) {
  if (!is_recurrent(&last) || !starts_anew(last)) return nullptr;
  const Value* between = operand(last, "input");
  Node* first = between && between->uses.size() == 1 && between->output_index == 0 ? between->producer : nullptr;
  if (first == nullptr || first->graph != &graph || first->op != last.op || !is_recurrent(first) ||
      !starts_anew(*first))
    return nullptr;
  std::vector<Value*> params = list_of(*first, "params");
  const std::vector<Value*> more = list_of(last, "params");
  const int64_t units = hidden_units(params);
  const int64_t *layers = find_int(*first, "num_layers"), *others = find_int(last, "num_layers");
  if (units < 0 || units != hidden_units(more) || !layers || !others || number_of(*first, "dropout") != 0.0 ||
      number_of(last, "dropout") != 0.0)
    return nullptr;
  for (const char* flag : {"has_biases", "bidirectional", "batch_first", "train"}) {
    if (!have_same(*first, last, flag)) return nullptr;
  }
  // two modules of the original stay two
  if (module_of(first->name) != module_of(last.name) || module_of(params[0]->name) != module_of(more[0]->name))
    return nullptr;
  std::vector<Ending> endings;
  if (first->outputs().size() != last.outputs().size()) return nullptr;
  for (size_t i = 1; i < last.outputs().size(); ++i) {
    if (!first->output(i) || !last.output(i)) return nullptr;
    endings.push_back(find_ending(first->output(i), last.output(i), graph));
  }
  if (!std::all_of(endings.begin(), endings.end(), [](const Ending& each) { return each.is_known; })) return nullptr;

  params.insert(params.end(), more.begin(), more.end());
  Node* made = graph.add_node("aten", last.op, &last);
  made->overload = last.overload;
  made->name = first->name;
  made->metadata = first->metadata;
  for (const Attribute& attribute : first->attributes) {
    if (attribute.name == "input") {
      add_operand(*made, "input", operand(*first, "input"));
    } else if (attribute.name == "params") {
      AttrList list;
      for (Value* param : params) {
        list.emplace_back(Operand{static_cast<uint32_t>(made->inputs().size())});
        made->add_input(param);
      }
      made->attributes.push_back({"params", std::move(list), AttrType::None, {}, {}});
    } else if (attribute.name == "num_layers") {
      made->attributes.push_back({"num_layers", *layers + *others, AttrType::None, {}, {}});
    } else {
      made->attributes.push_back(attribute);
    }
  }
  const size_t count = last.outputs().size();
  graph.move_output(last.output(0), made, 0);
  for (size_t i = 1; i < count; ++i) {
    Type type = last.output(i)->type;
    const auto& others_shape = first->output(i)->type.shape;
    if (type.shape && !type.shape->empty() && others_shape && !others_shape->empty())
      type.shape->front() = type.shape->front() + others_shape->front();
    Value* both = graph.add_output_to(made, graph.unique_name(last.output(i)->name), type);
    if (endings[i - 1].join) join_state(graph, *endings[i - 1].join, first->output(i), last.output(i), both);
  }
  last.resize_outputs(0);
  graph.erase(&last);
  graph.erase(first);
  return made;
}

/// transpose(x, 0, 1): x.
Value* turned(const Node* node) {
  if (!is_aten(node, "transpose", "int")) return nullptr;
  const int64_t *a = find_int(*node, "dim0"), *b = find_int(*node, "dim1");
  return a && b && std::min(*a, *b) == 0 && std::max(*a, *b) == 1 ? operand(*node, "self") : nullptr;
}

/// 2. transpose(lstm(transpose(x, 0, 1)), 0, 1): lstm(x, batch_first=True)
void put_batch_first(Graph& graph, Node& node) {
  const Attribute* flag = is_recurrent(&node) ? node.find_attribute("batch_first") : nullptr;
  const auto* is_first = flag ? flag->value.get<bool>() : nullptr;
  const Value* input = is_first && !*is_first ? operand(node, "input") : nullptr;
  Value* x = input ? turned(input->producer) : nullptr;
  if (x == nullptr || x->type.rank() != 3 || node.outputs().empty()) return;
  const std::vector<Use>& uses = node.output(0)->uses;
  if (uses.size() > 1) return;
  Node* back = uses.empty() ? nullptr : uses[0].user;
  if (!uses.empty() && (turned(back) == nullptr || back->graph != &graph)) return;
  node.set_attribute("batch_first", true);
  node.set_input(node.find_attribute("input")->value.get<Operand>()->index, x);
  if (back == nullptr) return;
  node.output(0)->type = back->output(0)->type;
  graph.replace_uses(back->output(0), node.output(0));
  graph.erase(back);
}

}  // namespace

void recognise_stacked_recurrent(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_stacked_recurrent(*subgraph);
    const Node* made = stack_layers(graph, *node);
    node = made ? made->next : next;
  }
  for (Node* node = graph.first(); node != nullptr; node = node->next) put_batch_first(graph, *node);
  remove_unused_nodes(graph);
}

}  // namespace tonnx
