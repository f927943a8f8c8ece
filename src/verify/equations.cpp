// equations.cpp - finds equations between sizes, and solves them for the names of open sizes.
#include "verify/equations.h"

#include <algorithm>

#include "ops/frame/size_node.h"

namespace tonnx::judge {
namespace {

constexpr int64_t kLargestTried = 2048;  // of a size that no formula gives

class Equations {
 public:
  void visit(const Graph& graph) {
    for (const Node& node : graph) {
      const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
      SizeNode view(node, [&](const Dim& a, const Dim& b) { add(strict_, a, b); });
      if (entry != nullptr && entry->op->sizes != nullptr) entry->op->sizes(view);
      if (has_trait(node, kElementwise)) note_broadcast(view);
      for (const GraphPtr& inner : subgraphs_of(node)) visit(*inner);
    }
  }

  std::vector<SizeEquation> all() && {
    strict_.insert(strict_.end(), loose_.begin(), loose_.end());
    return std::move(strict_);
  }

 private:
  void add(std::vector<SizeEquation>& equations, const Dim& left, const Dim& right) {
    if (left == right || (left.is_constant() && right.is_constant())) return;
    if (seen_.insert(left.text() + " = " + right.text()).second) equations.push_back({left, right});
  }

  void note_broadcast(const SizeNode& node) {
    for (size_t i = 1; i < node.node().inputs().size(); ++i) {
      const Shape *a = node.shape(i - 1), *b = node.shape(i);
      if (a == nullptr || b == nullptr) continue;
      const auto rank = static_cast<int64_t>(std::min(a->size(), b->size()));
      for (int64_t d = 1; d <= rank; ++d) {
        const Dim *left = node.size(i - 1, -d), *right = node.size(i, -d);
        if (!left->is(1) && !right->is(1)) add(loose_, *left, *right);
      }
    }
  }

  std::vector<SizeEquation> strict_, loose_;
  std::set<std::string> seen_;
};

/// The size of the only name in an equation that is linear in it.
std::optional<int64_t> linear_solution(const SizeEquation& equation) {
  const Dim difference = equation.left - equation.right;
  const auto terms = difference.terms();
  if (terms.size() != 1 || terms[0].first.size() != 1 || terms[0].first[0]->kind != 's') return std::nullopt;
  const int64_t rest = -difference.constant_term(), coefficient = terms[0].second;
  if (rest % coefficient != 0 || rest / coefficient < 1) return std::nullopt;
  return rest / coefficient;
}

/// Solves equations for one name after the other.
class Solver {
 public:
  Solver(const std::map<std::string, SizePlace>& names, SizesByName known) : names_(names), known_(std::move(known)) {}

  SizesByName run(const std::vector<SizeEquation>& equations) {
    const SizesByName before = known_;
    solve_all(equations, 1);
    for (const auto& [name, where] : names_) {  // products of batches and other sizes
      if (where.place == 0 && where.rank > 1 && is_asked(equations, name)) known_.try_emplace(name, 1);
    }
    solve_all(equations, 1);
    solve_all(equations, 4);  // height and width, say
    SizesByName found;
    for (const auto& [name, size] : known_) {
      if (!before.contains(name)) found.emplace(name, size);
    }
    return found;
  }

 private:
  std::set<std::string> unknown(const SizeEquation& equation) const {
    std::set<std::string> result;
    for (const Dim* side : {&equation.left, &equation.right}) {
      for (const std::string& name : names_in(*side)) {
        if (!known_.contains(name)) result.insert(name);
      }
    }
    return result;
  }

  bool is_over_names(const std::set<std::string>& unknown) const {
    return std::all_of(unknown.begin(), unknown.end(), [&](const auto& name) { return names_.contains(name); });
  }

  bool is_asked(const std::vector<SizeEquation>& equations, const std::string& name) const {
    return std::any_of(equations.begin(), equations.end(), [&](const SizeEquation& equation) {
      const std::set<std::string> left = unknown(equation);
      return left.size() > 1 && left.contains(name);
    });
  }

  /// Equations of up to so many unknown sizes, which are taken to be equal where they are several.
  void solve_all(const std::vector<SizeEquation>& equations, size_t most) {
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (const SizeEquation& equation : equations) {
        const std::set<std::string> left = unknown(equation);
        if (left.empty() || left.size() > most || !is_over_names(left)) continue;
        if (!tried_.insert({&equation, left}).second) continue;
        is_changed = solve(equation, left) || is_changed;
      }
    }
  }

  bool solve(const SizeEquation& equation, const std::set<std::string>& left) {
    const bool is_of_names = equation.left.symbol_name() && equation.right.symbol_name();
    if (left.size() > 1 && is_of_names) return false;  // equal, whatever they are
    if (const auto size = linear_solution(equation)) {
      known_[*left.begin()] = *size;
      return true;
    }
    if (find(equation, left, {})) return true;
    if (left.size() < 2) return false;
    // not all of them can be equal: the last one follows from the others
    std::set<std::string> others = left;
    others.erase(*left.rbegin());
    for (const int64_t size : {8, 1, 2, 3, 4, 5, 6, 7, 9, 16}) {
      SizesByName chosen;
      for (const std::string& name : others) chosen[name] = size;
      if (find(equation, {*left.rbegin()}, chosen)) return true;
    }
    return false;
  }

  /// The smallest size of these names at which both sides are equal, with others as they were chosen.
  bool find(const SizeEquation& equation, const std::set<std::string>& free, const SizesByName& chosen) {
    SizesByName sizes = known_;
    sizes.insert(chosen.begin(), chosen.end());
    for (int64_t size = 1; size <= kLargestTried; ++size) {
      for (const std::string& name : free) sizes[name] = size;
      const auto a = value_of(equation.left, sizes), b = value_of(equation.right, sizes);
      if (!a || !b || *a != *b) continue;
      for (const std::string& name : free) known_[name] = size;
      known_.insert(chosen.begin(), chosen.end());
      return true;
    }
    return false;
  }

  const std::map<std::string, SizePlace>& names_;
  SizesByName known_;
  std::set<std::pair<const SizeEquation*, std::set<std::string>>> tried_;
};

}  // namespace

std::vector<SizeEquation> equations_in(const Graph& graph) {
  Equations equations;
  equations.visit(graph);
  return std::move(equations).all();
}

SizesByName solved(const std::vector<SizeEquation>& equations, const std::map<std::string, SizePlace>& names,
                   const SizesByName& fixed) {
  return Solver(names, fixed).run(equations);
}

}  // namespace tonnx::judge
