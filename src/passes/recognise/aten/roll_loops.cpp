// roll_loops.cpp - aten: iterations over the rows of a tensor that a trace wrote out one by one become one scan.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/clone.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr int64_t kFewest = 8;  // iterations that are worth a loop

bool are_same(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  const auto agree = [&]<class T>(const T* x) { return x != nullptr && *x == *b.get<T>(); };
  if (const auto* list = a.get<AttrList>()) {
    const AttrList& other = *b.get<AttrList>();
    return list->size() == other.size() && std::equal(list->begin(), list->end(), other.begin(), are_same);
  }
  return a.is_none() || agree(a.get<bool>()) || agree(a.get<int64_t>()) || agree(a.get<double>()) ||
         agree(a.get<std::string>()) || agree(a.get<DType>()) || agree(a.get<Operand>()) || agree(a.get<TensorPtr>()) ||
         agree(a.get<std::vector<int64_t>>()) || agree(a.get<std::vector<double>>()) ||
         agree(a.get<std::vector<std::string>>());
}

/// Which row of a tensor a node takes; nothing for other nodes.
std::optional<int64_t> row_of(const Node& node) {
  const int64_t *dim = find_int(node, "dim"), *index = find_int(node, "index");
  const bool is_row = is_aten(node, "select", "int") && dim && *dim == 0 && index && *index >= 0;
  return is_row ? std::optional(*index) : std::nullopt;
}

/// How many rows a tensor has; -1 where that is not known.
int64_t rows_of(const Value* x) {
  if (x == nullptr || !x->type.is_tensor() || !x->type.shape || x->type.shape->empty()) return -1;
  return x->type.shape->front().constant().value_or(-1);
}

bool is_typed(const Value* value) { return value->type.is_tensor() && value->type.shape; }

/// A place inside of an iteration.
struct StepPlace {
  size_t node;
  uint32_t output;
  auto operator<=>(const StepPlace&) const = default;
};

/// What each iteration gets from the one before it.
struct Carried {
  Value* initial;
  StepPlace from;
};

/// The rows of a tensor, one for each iteration.
struct Rows {
  Value* of;
  bool is_reversed;
};

/// Equal iterations, one behind the other, of `length` nodes each.
class Unrolled {
 public:
  Unrolled(const std::vector<Node*>& nodes, const std::unordered_map<const Node*, size_t>& places, size_t first,
           size_t length, size_t count)
      : nodes_(nodes), places_(places), first_(first), length_(length), count_(count) {}

  bool is_loop() {
    if (first_ + length_ * count_ > nodes_.size()) return false;
    for (size_t j = 0; j < length_; ++j) {
      if (!match_node(j)) return false;
    }
    return !rows_.empty() && match_results();
  }

  void roll(Graph& graph) {
    Node* before = &at(0, 0);
    Node* scan = graph.add_node("higher_order", "scan", before);
    scan->name = before->name;
    scan->metadata = before->metadata;
    const GraphPtr body = std::make_shared<Graph>();
    body->owner = scan;
    fill(*body);
    scan->set_attribute("combine_fn", body);
    std::vector<Value*> initial, rows;
    for (const Carried& each : carried_) initial.push_back(each.initial);
    for (const auto& [node, each] : rows_) rows.push_back(each.is_reversed ? reversed(graph, scan, each.of) : each.of);
    add_operands(*scan, "init", initial);
    add_operands(*scan, "xs", rows);
    add_operands(*scan, "additional_inputs", invariant_);
    for (const Carried& each : carried_) {
      Value* last = value(count_ - 1, each.from);
      Value* made = graph.add_output_to(scan, graph.unique_name(last->name), last->type);
      graph.replace_uses(last, made);
    }
    for (const auto& [stack, place] : stacks_) {
      Value* made = graph.add_output_to(scan, graph.unique_name(stack->output(0)->name), stack->output(0)->type);
      graph.replace_uses(stack->output(0), made);
      graph.erase(stack);
    }
    for (size_t i = first_ + length_ * count_; i-- > first_;) graph.erase(nodes_[i]);
  }

 private:
  Node& at(size_t iteration, size_t j) const { return *nodes_[first_ + iteration * length_ + j]; }
  Value* value(size_t iteration, const StepPlace& place) const {
    return at(iteration, place.node).output(place.output);
  }

  /// The place of a value inside of an iteration; nothing where it comes from elsewhere.
  std::optional<StepPlace> place_in(const Value* value, size_t iteration) const {
    if (value->producer == nullptr) return std::nullopt;
    const auto found = places_.find(value->producer);
    const size_t begin = first_ + iteration * length_;
    if (found == places_.end() || found->second < begin || found->second >= begin + length_) return std::nullopt;
    return StepPlace{found->second - begin, value->output_index};
  }
  bool is_inside(const Node* node) const {
    const auto found = places_.find(node);
    return found != places_.end() && found->second >= first_ && found->second < first_ + length_ * count_;
  }

  bool match_node(size_t j) {
    const Node& model = at(0, j);
    const auto& given = model.outputs();
    if (given.empty() || std::find(given.begin(), given.end(), nullptr) != given.end() || !subgraphs_of(model).empty())
      return false;
    const bool is_row = is_row_of_each(j);
    for (size_t k = 1; k < count_; ++k) {
      const Node& node = at(k, j);
      if (node.domain != model.domain || node.op != model.op || node.overload != model.overload ||
          node.inputs().size() != model.inputs().size() || node.outputs().size() != model.outputs().size() ||
          node.attributes.size() != model.attributes.size())
        return false;
      for (size_t i = 0; i < model.attributes.size(); ++i) {
        const Attribute &a = model.attributes[i], &b = node.attributes[i];
        if (a.name != b.name || (!(is_row && a.name == "index") && !are_same(a.value, b.value))) return false;
      }
    }
    for (size_t i = 0; i < model.inputs().size(); ++i) {
      if (!match_input(j, i)) return false;
    }
    if (is_row) rows_.emplace(j, Rows{model.input(0), row_of(model) != 0});
    return true;
  }

  /// Whether the node takes one row of one tensor after the other, from the first to the last or back.
  bool is_row_of_each(size_t j) const {
    const auto first = row_of(at(0, j));
    const auto rows = static_cast<int64_t>(count_);
    if (!first || (*first != 0 && *first != rows - 1) || rows_of(at(0, j).input(0)) != rows) return false;
    for (size_t k = 1; k < count_; ++k) {
      const auto step = static_cast<int64_t>(k);
      if (at(k, j).input(0) != at(0, j).input(0) || row_of(at(k, j)) != (*first == 0 ? step : *first - step))
        return false;
    }
    return true;
  }

  bool match_input(size_t j, size_t i) {
    Value* value = at(0, j).input(i);
    const auto all = [&](auto&& holds) {
      for (size_t k = 1; k < count_; ++k) {
        const Value* each = at(k, j).input(i);
        if ((each == nullptr) != (value == nullptr) || (each != nullptr && !holds(k, each))) return false;
      }
      return true;
    };
    if (value == nullptr) return all([](size_t, const Value*) { return true; });
    if (const auto inside = place_in(value, 0))
      return all([&](size_t k, const Value* each) { return place_in(each, k) == inside; });
    if (!is_typed(value)) return false;
    if (all([&](size_t, const Value* each) { return each == value; })) {
      if (std::find(invariant_.begin(), invariant_.end(), value) == invariant_.end() && !is_row_of_each(j))
        invariant_.push_back(value);
      return true;
    }
    const auto from = at(1, j).input(i) ? place_in(at(1, j).input(i), 0) : std::nullopt;
    if (!from || !all([&](size_t k, const Value* each) { return place_in(each, k - 1) == from; })) return false;
    if (!(this->value(0, *from)->type == value->type)) return false;
    slots_[{j, i}] = carried_slot({value, *from});
    return true;
  }

  size_t carried_slot(const Carried& wanted) {
    for (size_t i = 0; i < carried_.size(); ++i) {
      if (carried_[i].initial == wanted.initial && carried_[i].from == wanted.from) return i;
    }
    carried_.push_back(wanted);
    return carried_.size() - 1;
  }

  /// What others see of the iterations is what they carry in the end, or what they give, stacked.
  bool match_results() {
    for (size_t k = 0; k < count_; ++k) {
      for (size_t j = 0; j < length_; ++j) {
        for (const Value* output : at(k, j).outputs()) {
          if (output != nullptr && !match_uses(*output, k, {j, output->output_index})) return false;
        }
      }
    }
    return true;
  }

  bool match_uses(const Value& output, size_t iteration, const StepPlace& place) {
    for (const Use& use : output.uses) {
      if (use.user != nullptr && is_inside(use.user)) continue;
      if (use.user != nullptr && is_stack_of(*use.user, place)) continue;
      const bool is_last = iteration == count_ - 1;
      const bool is_carried =
          std::any_of(carried_.begin(), carried_.end(), [&](const Carried& each) { return each.from == place; });
      if (!is_last || !is_carried) return false;
    }
    return true;
  }

  bool is_stack_of(Node& node, const StepPlace& place) {
    if (stacks_.contains(&node)) return stacks_[&node] == place;
    const int64_t* dim = find_int(node, "dim");
    if (!is_aten(node, "stack") || (dim && *dim != 0) || node.inputs().size() != count_ || !is_typed(node.output(0)))
      return false;
    for (size_t k = 0; k < count_; ++k) {
      if (node.input(k) != value(k, place)) return false;
    }
    stacks_.emplace(&node, place);
    return true;
  }

  static Value* reversed(Graph& graph, Node* before, Value* x) {
    Node* flip = graph.add_node("aten", "flip", before);
    flip->name = before->name;
    flip->metadata = before->metadata;
    add_operand(*flip, "self", x);
    flip->set_attribute("dims", std::vector<int64_t>{0});
    return graph.add_output_to(flip, graph.unique_name(x->name), x->type);
  }

  static void add_operands(Node& node, std::string_view name, const std::vector<Value*>& values) {
    AttrList list;
    for (Value* each : values) {
      list.emplace_back(Operand{static_cast<uint32_t>(node.inputs().size())});
      node.add_input(each);
    }
    node.set_attribute(name, std::move(list));
  }

  /// The first iteration, as a graph of what is carried, of rows, and of what is the same in all.
  void fill(Graph& body) const {
    ValueMap map;
    std::vector<Value*> carried;
    const auto add_input = [&](const Value* like) { return body.add_input(body.unique_name(like->name), like->type); };
    for (const Carried& each : carried_) carried.push_back(add_input(each.initial));
    for (const auto& [j, rows] : rows_) map[at(0, j).output(0)] = add_input(at(0, j).output(0));
    for (Value* each : invariant_) map[each] = add_input(each);
    for (size_t j = 0; j < length_; ++j) {
      if (rows_.contains(j)) continue;
      const Node& from = at(0, j);
      Node* node = body.add_node(from.domain, from.op);
      node->overload = from.overload;
      node->name = from.name;
      node->attributes = from.attributes;
      node->metadata = from.metadata;
      for (size_t i = 0; i < from.inputs().size(); ++i) {
        const auto slot = slots_.find({j, i});
        Value* input = from.input(i);
        node->set_input(i, slot != slots_.end() ? carried[slot->second] : input ? copy_of(input, map) : nullptr);
      }
      for (Value* output : from.outputs())
        map[output] = body.add_output_to(node, body.unique_name(output->name), output->type);
    }
    for (const Carried& each : carried_) body.add_output(copy_of(value(0, each.from), map));
    for (const auto& [stack, place] : stacks_) body.add_output(copy_of(value(0, place), map));
  }

  const std::vector<Node*>& nodes_;
  const std::unordered_map<const Node*, size_t>& places_;
  size_t first_, length_, count_;
  std::vector<Carried> carried_;
  std::map<std::pair<size_t, size_t>, size_t> slots_;  // which carried value an input of a node is
  std::map<size_t, Rows> rows_;                        // by the node that takes them
  std::vector<Value*> invariant_;
  std::map<Node*, StepPlace> stacks_;
};

/// Tries the nodes that take the first or the last row of a tensor as the beginning of a loop.
bool roll_one(Graph& graph) {
  std::vector<Node*> nodes;
  std::unordered_map<const Node*, size_t> places;
  for (Node& node : graph) {
    places.emplace(&node, nodes.size());
    nodes.push_back(&node);
  }
  for (size_t first = 0; first < nodes.size(); ++first) {
    const auto row = row_of(*nodes[first]);
    const Value* x = row ? nodes[first]->input(0) : nullptr;
    const int64_t rows = rows_of(x);
    if (rows < kFewest || (*row != 0 && *row != rows - 1)) continue;
    const int64_t second = *row == 0 ? 1 : rows - 2;
    for (const Use& use : x->uses) {
      const auto place = use.user ? places.find(use.user) : places.end();
      if (place == places.end() || place->second <= first || row_of(*use.user) != second) continue;
      Unrolled loop(nodes, places, first, place->second - first, static_cast<size_t>(rows));
      if (!loop.is_loop()) continue;
      loop.roll(graph);
      return true;
    }
  }
  return false;
}

}  // namespace

void roll_loops(Graph& graph) {
  // what only checks its input is in the way
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    if (is_aten(*node, "_assert_tensor_metadata")) graph.erase(node);
    node = next;
  }
  while (roll_one(graph)) {
  }
}

}  // namespace tonnx
