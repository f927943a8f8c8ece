// equations.cpp - finds equations between sizes, and solves them for the names of open sizes.
#include "verify/equations.h"

#include <algorithm>

#include "ops/frame/op_def.h"

namespace tonnx::judge {
namespace {

constexpr int64_t kLargestTried = 2048;  // of a size that no formula gives

bool is_one_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), node.op.view()) != ops.end();
}

const Shape* shape_of(const Node& node, size_t input) {
  const Value* value = input < node.inputs().size() ? node.inputs()[input] : nullptr;
  return value != nullptr && value->type.is_tensor() && value->type.shape ? &*value->type.shape : nullptr;
}

const Dim* dim_of(const Shape* shape, int64_t axis) {
  if (shape == nullptr) return nullptr;
  const auto rank = static_cast<int64_t>(shape->size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? &(*shape)[static_cast<size_t>(axis)] : nullptr;
}

int64_t int_of(const Node& node, std::string_view name, int64_t otherwise) {
  const Attribute* attribute = node.find_attribute(name);
  const auto* number = attribute != nullptr ? attribute->value.get<int64_t>() : nullptr;
  return number != nullptr ? *number : otherwise;
}

class Equations {
 public:
  void visit(const Graph& graph) {
    for (const Node& node : graph) {
      note_products(node);
      note_layers(node);
      note_reshape(node);
      if (node.op == "Concat") note_concat(node);
      if (has_trait(node, kElementwise)) note_broadcast(node);
      for (const GraphPtr& inner : subgraphs_of(node)) visit(*inner);
    }
  }

  std::vector<SizeEquation> all() && {
    strict_.insert(strict_.end(), loose_.begin(), loose_.end());
    return std::move(strict_);
  }

 private:
  void add(std::vector<SizeEquation>& equations, const Dim* left, const Dim* right) {
    if (left == nullptr || right == nullptr || *left == *right) return;
    if (left->is_constant() && right->is_constant()) return;
    if (seen_.insert(left->text() + " = " + right->text()).second) equations.push_back({*left, *right});
  }

  void add(const Dim* left, const Dim* right) { add(strict_, left, right); }

  void note_products(const Node& node) {
    if (is_one_of(node, {"MatMul", "MatMulInteger", "QLinearMatMul", "FusedMatMul", "MatMulIntegerToFloat"})) {
      const Shape *a = shape_of(node, 0), *b = shape_of(node, node.op == "QLinearMatMul" ? 3 : 1);
      if (b != nullptr) add(dim_of(a, -1), dim_of(b, b->size() == 1 ? -1 : -2));
    } else if (node.op == "Gemm") {
      add(dim_of(shape_of(node, 0), int_of(node, "transA", 0) != 0 ? 0 : 1),
          dim_of(shape_of(node, 1), int_of(node, "transB", 0) != 0 ? 1 : 0));
    } else if (node.op == "MatMulNBits") {
      const Dim depth(int_of(node, "K", 0));
      add(dim_of(shape_of(node, 0), -1), &depth);
    } else if (is_one_of(node, {"Conv", "ConvInteger", "QLinearConv"})) {
      const Dim* inputs = dim_of(shape_of(node, node.op == "QLinearConv" ? 3 : 1), 1);
      if (inputs == nullptr) return;
      const Dim all = *inputs * Dim(int_of(node, "group", 1));
      add(dim_of(shape_of(node, 0), 1), &all);
    } else if (node.op == "ConvTranspose") {
      add(dim_of(shape_of(node, 0), 1), dim_of(shape_of(node, 1), 0));
    }
  }

  void note_layers(const Node& node) {
    if (is_one_of(node, {"LSTM", "GRU", "RNN"})) {
      const int64_t batch = int_of(node, "layout", 0) != 0 ? 0 : 1;
      add(dim_of(shape_of(node, 0), 2), dim_of(shape_of(node, 1), 2));
      for (const size_t state : {size_t{5}, size_t{6}}) {
        add(dim_of(shape_of(node, state), batch), dim_of(shape_of(node, 0), batch));
        add(dim_of(shape_of(node, state), 2), dim_of(shape_of(node, 2), 2));
      }
    } else if (is_one_of(node, {"BatchNormalization", "InstanceNormalization", "GroupNormalization"})) {
      add(dim_of(shape_of(node, 0), 1), dim_of(shape_of(node, 1), 0));
    } else if (is_one_of(node, {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization"})) {
      add(dim_of(shape_of(node, 0), -1), dim_of(shape_of(node, 1), -1));
    }
  }

  /// As many elements as a shape of numbers says.
  void note_reshape(const Node& node) {
    if (!is_one_of(node, {"Reshape", "Flatten"}) || node.outputs().empty() || node.output(0) == nullptr) return;
    const Type& type = node.output(0)->type;
    const Shape* from = shape_of(node, 0);
    if (from == nullptr || !type.is_tensor() || !type.shape) return;
    const Dim before = count_of(*from), after = count_of(*type.shape);
    if (after.is_constant()) add(&before, &after);
  }

  void note_concat(const Node& node) {
    const Shape* first = shape_of(node, 0);
    if (first == nullptr) return;
    const auto rank = static_cast<int64_t>(first->size());
    int64_t axis = int_of(node, "axis", 0);
    if (axis < 0) axis += rank;
    for (size_t i = 1; i < node.inputs().size(); ++i) {
      for (int64_t d = 0; d < rank; ++d) {
        if (d != axis) add(dim_of(first, d), dim_of(shape_of(node, i), d));
      }
    }
  }

  void note_broadcast(const Node& node) {
    for (size_t i = 1; i < node.inputs().size(); ++i) {
      const Shape *a = shape_of(node, i - 1), *b = shape_of(node, i);
      if (a == nullptr || b == nullptr) continue;
      const auto rank = static_cast<int64_t>(std::min(a->size(), b->size()));
      for (int64_t d = 1; d <= rank; ++d) {
        const Dim *left = dim_of(a, -d), *right = dim_of(b, -d);
        if (!left->is(1) && !right->is(1)) add(loose_, left, right);
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
