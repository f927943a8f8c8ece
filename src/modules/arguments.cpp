// arguments.cpp - compares modules from their results back to their arguments.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "modules/alike.h"
#include "modules/places.h"

namespace tonnx {
namespace {

constexpr size_t kFewArguments = 2;  // less have no order

/// For each argument of `a` the one of `b` that is used so; nothing where they do not do the same.
class ArgumentMatch {
 public:
  ArgumentMatch(const Method& a, const Method& b) : a_(a), b_(b) {}

  std::optional<std::vector<size_t>> run() {
    const Graph &a = *a_.graph, &b = *b_.graph;
    if (a.inputs().size() != b.inputs().size() || a.outputs().size() != b.outputs().size() ||
        a.node_count() != b.node_count())
      return std::nullopt;
    for (size_t i = 0; i < b.inputs().size(); ++i) number_[b.inputs()[i]] = i;
    std::unordered_set<const Value*> of_a(a.inputs().begin(), a.inputs().end());
    for (size_t i = 0; i < a.outputs().size(); ++i) pairs_.emplace_back(a.outputs()[i], b.outputs()[i]);
    while (!pairs_.empty()) {
      const auto [x, y] = pairs_.back();
      pairs_.pop_back();
      if (!match(x, y, of_a)) return std::nullopt;
    }
    std::vector<size_t> order;
    for (const Value* input : a.inputs()) {
      const auto at = twin_.find(input);
      if (at == twin_.end()) return std::nullopt;
      order.push_back(number_.at(at->second));
    }
    return order;
  }

 private:
  bool match(const Value* x, const Value* y, const std::unordered_set<const Value*>& of_a) {
    if (x == nullptr || y == nullptr) return x == y;
    if (const auto known = twin_.find(x); known != twin_.end()) return known->second == y;
    if (of_a.contains(x)) {
      if (!number_.contains(y) || !taken_.insert(y).second) return false;
    } else if (x->constant) {
      if (!y->constant) return false;
    } else if (!match_producers(x->producer, y->producer) || x->output_index != y->output_index) {
      return false;
    }
    twin_[x] = y;
    return true;
  }

  bool match_producers(const Node* x, const Node* y) {
    if (x == nullptr || y == nullptr || x->op != y->op || x->domain != y->domain || x->overload != y->overload ||
        x->inputs().size() != y->inputs().size() || called_by(*x, a_.calls) != called_by(*y, b_.calls) ||
        !subgraphs_of(*x).empty())
      return false;
    for (size_t i = 0; i < x->inputs().size(); ++i) pairs_.emplace_back(x->input(i), y->input(i));
    return true;
  }

  const Method &a_, &b_;
  std::unordered_map<const Value*, size_t> number_;  // of the arguments of b
  std::unordered_map<const Value*, const Value*> twin_;
  std::unordered_set<const Value*> taken_;
  std::vector<std::pair<const Value*, const Value*>> pairs_;
};

/// Argument i becomes what argument order[i] was, here and where the method is called.
void reorder(Method& method, const std::vector<size_t>& order, const Graph& like) {
  Graph& graph = *method.graph;
  std::vector<Value*> old;
  for (Value* input : graph.inputs()) {
    Value* stand_in = graph.new_value(input->name, input->type);
    stand_in->known_ints = input->known_ints;
    graph.replace_uses(input, stand_in);
    old.push_back(stand_in);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    Value* input = graph.inputs()[i];
    input->type = old[order[i]]->type;
    input->known_ints = old[order[i]]->known_ints;
    input->name = like.inputs()[i]->name;
    graph.replace_uses(old[order[i]], input);
  }
  for (Node* call : method.callers) {
    const std::vector<Value*> given = call->inputs();
    for (size_t i = 0; i < order.size(); ++i) call->set_input(i, given[order[i]]);
  }
}

class ArgumentOrder {
 public:
  void add(ModulePart& part, int depth) {
    for (const Member& member : part.members) {
      if (member.part) add(*member.part, depth + 1);
    }
    if (part.graph && !part.path.empty() && part.graph->inputs().size() >= kFewArguments)
      alike_[{-depth, kind_of_place(part.path)}].push_back(&part);
  }

  /// From the innermost on.
  void run() const {
    for (const auto& [place, parts] : alike_) {
      const ModulePart& usual = *parts[parts.size() / 2];
      for (ModulePart* part : parts) {
        if (part == &usual) continue;
        const auto order = ArgumentMatch(usual, *part).run();
        if (order && !std::is_sorted(order->begin(), order->end())) reorder(*part, *order, *usual.graph);
      }
    }
  }

 private:
  std::map<std::pair<int, std::string>, std::vector<ModulePart*>> alike_;  // by depth, the deepest first
};

}  // namespace

void align_arguments(ModulePart& model) {
  ArgumentOrder order;
  order.add(model, 0);
  order.run();
}

}  // namespace tonnx
