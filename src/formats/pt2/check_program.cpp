// check_program.cpp - holds the nodes of a program against their schemas, and graphs inside nodes against the nodes.
#include "formats/pt2/check_program.h"

#include "base/error.h"
#include "ops/frame/aten_check.h"
#include "ops/frame/aten_names.h"
#include "ops/frame/op_def.h"

namespace tonnx::pt2 {
namespace {

/// What a graph inside a node is called with, or gives: a value, whose dimensions may be one more than the graph sees,
/// or any others, or a number.
struct Item {
  const Value* value = nullptr;
  size_t stacked = 0;
  bool is_of_any_rank = false;
};
using Items = std::vector<Item>;

bool agree(const Item& outer, const Value& inner) {
  if (outer.value == nullptr) return !inner.type.is_tensor();
  const Type &a = outer.value->type, &b = inner.type;
  if (a.kind != b.kind) return false;
  if (!a.is_tensor()) return true;
  return a.dtype == b.dtype && (outer.is_of_any_rank || a.shape->size() == b.shape->size() + outer.stacked);
}

/// One dimension of no elements: what is joined with it keeps its own dimensions.
bool is_empty_list(const Type& type) {
  return type.is_tensor() && type.shape->size() == 1 && type.shape->front().is(0);
}

void check_values(const Items& outer, const std::vector<Value*>& inner, std::string_view graph, const char* what) {
  require(outer.size() == inner.size(), "the graph '{}' has {} {}, and {} are due", graph, inner.size(), what,
          outer.size());
  for (size_t i = 0; i < outer.size(); ++i) {
    require(agree(outer[i], *inner[i]), "number {} of the {} of the graph '{}' is {}, and {} is due", i, what, graph,
            text_of(inner[i]->type), outer[i].value ? text_of(outer[i].value->type) : "a number");
  }
}

/// One operator that takes graphs, as its arguments are named.
class GraphsCheck {
 public:
  explicit GraphsCheck(const Node& node) : node_(node) {}

  void run() const {
    const std::string_view op = node_.op.view();
    if (op == "cond") {
      const Items operands = items("operands");
      Items given = results();
      for (Item& item : given) item.is_of_any_rank = true;  // of one of them, as ONNX allows
      for (const char* branch : {"true_graph", "false_graph"}) check(branch, operands, given);
    } else if (op == "while_loop") {
      Items carried = items("carried_inputs");
      for (Item& item : carried) item.is_of_any_rank = item.value && is_empty_list(item.value->type);
      const Items all = joined(carried, items("additional_inputs"));
      check("body_fn", all, carried);
      check_values(all, graph("cond_fn").inputs(), "cond_fn", "inputs");
      require(graph("cond_fn").outputs().size() == 1, "the condition of a loop gives {} values",
              graph("cond_fn").outputs().size());
      check_values(carried, node_.outputs(), "body_fn", "results");
    } else if (op == "scan") {
      const Items carried = items("init");
      check("combine_fn", joined(joined(carried, items("xs", 1)), items("additional_inputs")), results(carried.size()));
    } else if (op == "map_impl") {
      check("f", joined(items("mapped_args", 1), items("operands")), results(0));
    } else if (op == "wrap_with_set_grad_enabled") {
      check_switch("graph");
    } else if (op == "wrap_with_autocast") {
      check_switch("arg4");
    }
  }

 private:
  const Graph& graph(std::string_view name) const {
    const Attribute* found = node_.find_attribute(name);
    const auto* graph = found ? found->value.get<GraphPtr>() : nullptr;
    require(graph != nullptr && *graph != nullptr, "argument '{}' is not a graph", name);
    return **graph;
  }

  Items items(std::string_view name, size_t stacked = 0) const {
    Items result;
    const Attribute* found = node_.find_attribute(name);
    if (found == nullptr || found->value.is_none()) return result;
    if (const auto* numbers = found->value.get<std::vector<int64_t>>()) return Items(numbers->size());
    const auto* list = found->value.get<AttrList>();
    require(list != nullptr, "argument '{}' is not a list", name);
    for (const AttrValue& item : *list) {
      const auto* operand = item.get<Operand>();
      const bool is_number = item.get<int64_t>() || item.get<double>() || item.get<bool>();
      require(operand != nullptr || is_number, "an item of argument '{}' is neither a value nor a number", name);
      result.push_back({operand ? node_.input(operand->index) : nullptr, stacked});
      const bool is_whole = stacked == 0 || (result.back().value && result.back().value->type.is_tensor());
      require(is_whole, "an item of argument '{}' is not a tensor", name);
    }
    return result;
  }

  /// From that one on they are stacked, one for each call of the graph.
  Items results(size_t first_stacked = SIZE_MAX) const {
    Items result;
    for (const Value* output : node_.outputs()) {
      require(output != nullptr, "result {} is None", result.size());
      result.push_back({output, result.size() >= first_stacked ? size_t{1} : 0});
    }
    return result;
  }

  static Items joined(Items a, const Items& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  void check(std::string_view name, const Items& inputs, const Items& outputs) const {
    check_values(inputs, graph(name).inputs(), name, "inputs");
    check_values(outputs, graph(name).outputs(), name, "results");
  }

  /// Its operands are no list, and not all that the graph gives need be named.
  void check_switch(std::string_view name) const {
    Items inputs;
    for (const Value* input : node_.inputs()) inputs.push_back({input});
    check_values(inputs, graph(name).inputs(), name, "inputs");
    const auto& given = graph(name).outputs();
    require(subgraphs_of(node_).size() == 1, "the node has {} graphs", subgraphs_of(node_).size());
    require(given.size() >= node_.outputs().size(), "the graph '{}' gives {} values, and {} are due", name,
            given.size(), node_.outputs().size());
    for (size_t i = 0; i < node_.outputs().size(); ++i) {
      const Value* output = node_.output(i);
      if (output == nullptr) continue;
      require(agree({output}, *given[i]), "result {} of the graph '{}' is {}, and {} is due", i, name,
              text_of(given[i]->type), text_of(output->type));
    }
  }

  const Node& node_;
};

/// The call held against its schema; of an operator that writes, or goes by another name, that of the one that it is.
void check_arguments(const Node& node) {
  if (const AtenOpEntry* entry = find_aten_op(node)) return check_call(node, entry->signature);
  Node other = node;  // seen by nobody
  if (writes_self(node) || !out_arguments(node).empty())
    use_functional_name(other);
  else
    use_canonical_name(other);
  if (const AtenOpEntry* entry = find_aten_op(other)) check_call(other, entry->signature);
}

void check_node(const Node& node) {
  if (node.domain == "tonnx") return;  // an ONNX node, whose results PyTorch knows nothing of
  for (const Value* output : node.outputs()) {
    if (output != nullptr) check_type(*output);
  }
  check_arguments(node);
  for (const GraphPtr& graph : subgraphs_of(node)) check_program(*graph);
  if (node.domain == "higher_order") GraphsCheck(node).run();
}

}  // namespace

void check_program(const Graph& graph) {
  for (const Value* input : graph.inputs()) check_type(*input);
  for (const Node& node : graph)
    in_context([&] { return "checking " + shown(full_name(node)); }, [&] { check_node(node); });
}

}  // namespace tonnx::pt2
