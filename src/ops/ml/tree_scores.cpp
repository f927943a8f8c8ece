// tree_scores.cpp - walks all trees of an ensemble at once, one level at a time, for all rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/budget.h"
#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/ml/tree.h"

namespace tonnx {
namespace {

/// The nodes that a walk from the roots can reach, leaves last; throws where a node has two parents.
struct Order {
  std::vector<int64_t> inner, leaves;  // places in the list of nodes
  std::vector<int64_t> row_of;         // place -> row of the tables
  int64_t depth = 0;                   // steps from a root to its farthest leaf
};

Order order_of(const TreeEnsemble& ensemble) {
  Order order;
  const auto count = static_cast<int64_t>(ensemble.nodes.size());
  std::vector<char> seen(ensemble.nodes.size(), 0);
  std::vector<int64_t> level = ensemble.roots;
  for (int64_t depth = 0; !level.empty(); ++depth) {
    std::vector<int64_t> next;
    for (const int64_t place : level) {
      require(place >= 0 && place < count, "a tree has no node {}", place);
      require(!seen[static_cast<size_t>(place)], "a node of a tree has two parents");
      seen[static_cast<size_t>(place)] = 1;
      const TreeNode& node = ensemble.nodes[static_cast<size_t>(place)];
      (node.is_leaf ? order.leaves : order.inner).push_back(place);
      if (node.is_leaf) continue;
      require(node.feature >= 0, "a feature has the number {}", node.feature);
      next.push_back(node.when_true);
      next.push_back(node.when_false);
      order.depth = depth + 1;
    }
    level = std::move(next);
  }
  order.row_of.assign(ensemble.nodes.size(), 0);
  int64_t row = 0;
  for (const auto* list : {&order.inner, &order.leaves}) {
    for (const int64_t place : *list) order.row_of[static_cast<size_t>(place)] = row++;
  }
  return order;
}

class TreeWalk {
 public:
  TreeWalk(OnnxEdit& edit, const TreeEnsemble& ensemble, const Order& order)
      : edit_(edit), ensemble_(ensemble), order_(order) {}

  /// The row of the leaf that each tree leads to, [rows, trees], counted from the first leaf.
  Value* leaves(Value* x) {
    std::vector<int64_t> roots;
    for (const int64_t root : ensemble_.roots) roots.push_back(order_.row_of[static_cast<size_t>(root)]);
    Value* count = edit_.before("Shape", {x}, {{"end", int64_t{1}}});
    const auto trees = static_cast<int64_t>(roots.size());
    Value* sizes = edit_.before("Concat", {count, edit_.ints({trees})}, {{"axis", int64_t{0}}});
    Value* start = edit_.before("Expand", {fixed(edit_, make_ints(roots), "roots"), sizes});
    if (order_.depth == 0) return start;
    make_tables();
    Value* trips = edit_.constant(make_scalar(DType::Int64, static_cast<double>(order_.depth)), "depth");
    Node* loop = edit_.node_before("Loop", {trips, nullptr, start}, {}, 1);
    const auto body = new_loop_body(*loop);
    body_ = body.get();
    Value* node = add_input(*body, "node", Type::tensor(DType::Int64, start->type.shape));
    body->add_output(add("Identity", {body->inputs()[1]}));
    body->add_output(add("Where", {goes_true(x, node), looked_up(when_true_, node), looked_up(when_false_, node)}));
    loop->set_attribute("body", GraphPtr(body));
    const auto first = static_cast<double>(order_.inner.size());
    return edit_.before("Sub", {loop->output(0), fixed_number(edit_, DType::Int64, first)});
  }

 private:
  Value* add(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {}) {
    return append_node(*body_, op, inputs, std::move(attributes))->output(0);
  }
  Value* looked_up(Value* table, Value* node) { return add("Gather", {table, node}, {{"axis", int64_t{0}}}); }

  template <class Of>
  std::vector<double> column(Of of) const {
    std::vector<double> values;
    for (const int64_t place : order_.inner) values.push_back(of(ensemble_.nodes[static_cast<size_t>(place)]));
    values.resize(values.size() + order_.leaves.size(), 0.0);
    return values;
  }
  Value* table(DType dtype, const std::vector<double>& values, const char* name) {
    return fixed(edit_, make_floats(dtype, {static_cast<int64_t>(values.size())}, values), name);
  }

  void make_tables() {
    std::vector<int64_t> features, yes, no;
    for (const int64_t place : order_.inner) {
      const TreeNode& node = ensemble_.nodes[static_cast<size_t>(place)];
      features.push_back(node.feature);
      yes.push_back(order_.row_of[static_cast<size_t>(node.when_true)]);
      no.push_back(order_.row_of[static_cast<size_t>(node.when_false)]);
      modes_.insert(node.mode);
      members_ = std::max(members_, node.members.size());
      tracks_missing_ = tracks_missing_ || node.missing_is_true;
    }
    for (const int64_t place : order_.leaves) {  // a leaf leads to itself
      features.push_back(0);
      yes.push_back(order_.row_of[static_cast<size_t>(place)]);
      no.push_back(yes.back());
    }
    features_ = fixed(edit_, make_ints(features), "features");
    when_true_ = fixed(edit_, make_ints(yes), "when_true");
    when_false_ = fixed(edit_, make_ints(no), "when_false");
    values_ = table(ensemble_.dtype, column([](const TreeNode& node) { return node.value; }), "thresholds");
    if (modes_.size() > 1) {
      mode_ = table(DType::Int64, column([](const TreeNode& node) { return static_cast<double>(node.mode); }), "modes");
      for (const TreeMode mode : modes_)
        mode_numbers_[mode] = fixed_number(edit_, DType::Int64, static_cast<double>(mode));
    }
    if (tracks_missing_) {
      missing_ = table(DType::Bool, column([](const TreeNode& node) { return node.missing_is_true ? 1.0 : 0.0; }),
                       "missing_is_true");
    }
    if (modes_.contains(TreeMode::Member)) make_members();
  }

  /// The sets of TreeMode::Member, as long as the longest: what is not there is NaN, which equals nothing.
  void make_members() {
    const size_t width = std::max<size_t>(members_, 1);
    const size_t rows = order_.inner.size() + order_.leaves.size();
    std::vector<double> values(room_for<double>({static_cast<int64_t>(rows), static_cast<int64_t>(width)}),
                               std::numeric_limits<double>::quiet_NaN());
    for (size_t row = 0; row < order_.inner.size(); ++row) {
      const auto& members = ensemble_.nodes[static_cast<size_t>(order_.inner[row])].members;
      std::copy(members.begin(), members.end(), values.begin() + static_cast<std::ptrdiff_t>(row * width));
    }
    sets_ =
        fixed(edit_, make_floats(ensemble_.dtype, {static_cast<int64_t>(rows), static_cast<int64_t>(width)}, values));
  }

  Value* compared(TreeMode mode, Value* x, Value* node) {
    if (mode == TreeMode::Member) {
      Value* same = add("Equal", {add("Unsqueeze", {x, edit_.ints({-1})}), looked_up(sets_, node)});
      Value* bytes = add("Cast", {same}, {{"to", static_cast<int64_t>(DType::UInt8)}});
      Value* any = add("ReduceMax", {bytes, edit_.ints({-1})}, {{"keepdims", int64_t{0}}});
      return add("Cast", {any}, {{"to", static_cast<int64_t>(DType::Bool)}});
    }
    Value* value = looked_up(values_, node);
    switch (mode) {
      case TreeMode::LessEqual: return add("LessOrEqual", {x, value});
      case TreeMode::Less: return add("Less", {x, value});
      case TreeMode::GreaterEqual: return add("GreaterOrEqual", {x, value});
      case TreeMode::Greater: return add("Greater", {x, value});
      case TreeMode::Equal: return add("Equal", {x, value});
      default: return add("Not", {add("Equal", {x, value})});
    }
  }

  Value* goes_true(Value* rows, Value* node) {
    Value* x = add("GatherElements", {rows, looked_up(features_, node)}, {{"axis", int64_t{1}}});
    Value* result = nullptr;
    for (const TreeMode mode : modes_) {
      Value* here = compared(mode, x, node);
      if (result == nullptr) {
        result = here;
        continue;
      }
      Value* is_mode = add("Equal", {looked_up(mode_, node), mode_numbers_.at(mode)});
      result = add("Where", {is_mode, here, result});
    }
    if (!tracks_missing_) return result;
    return add("Or", {result, add("And", {add("IsNaN", {x}), looked_up(missing_, node)})});
  }

  OnnxEdit& edit_;
  const TreeEnsemble& ensemble_;
  const Order& order_;
  Graph* body_ = nullptr;
  std::set<TreeMode> modes_;
  std::map<TreeMode, Value*> mode_numbers_;  // made before the Loop, whose body uses them
  size_t members_ = 0;
  bool tracks_missing_ = false;
  Value *features_ = nullptr, *values_ = nullptr, *when_true_ = nullptr, *when_false_ = nullptr;
  Value *mode_ = nullptr, *missing_ = nullptr, *sets_ = nullptr;
};

/// What each leaf says of each target, [leaves, targets], and whether it says anything.
TensorPtr weight_table(const TreeEnsemble& ensemble, const Order& order, double otherwise, TreeAggregate aggregate) {
  const auto rows = static_cast<int64_t>(order.leaves.size());
  std::vector<double> values(room_for<double>({rows, ensemble.targets}), otherwise);
  for (int64_t row = 0; row < rows; ++row) {
    for (const auto& [target, weight] :
         ensemble.nodes[static_cast<size_t>(order.leaves[static_cast<size_t>(row)])].weights) {
      require(target >= 0 && target < ensemble.targets, "a leaf is for target {} of {}", target, ensemble.targets);
      double& value = values[static_cast<size_t>(row * ensemble.targets + target)];
      if (value == otherwise) {
        value = weight;
      } else if (aggregate == TreeAggregate::Min) {
        value = std::min(value, weight);
      } else if (aggregate == TreeAggregate::Max) {
        value = std::max(value, weight);
      } else {
        value += weight;
      }
    }
  }
  return make_floats(ensemble.dtype, {rows, ensemble.targets}, values);
}

}  // namespace

Value* tree_scores(OnnxEdit& edit, Value* x, TreeEnsemble ensemble, TreeAggregate aggregate) {
  require(!ensemble.roots.empty(), "there are no trees");
  require(ensemble.targets >= 1, "there are {} targets", ensemble.targets);
  const Order order = order_of(ensemble);
  x = cast_to(edit, x, ensemble.dtype);
  Value* leaf = TreeWalk(edit, ensemble, order).leaves(x);
  const bool is_extreme = aggregate == TreeAggregate::Min || aggregate == TreeAggregate::Max;
  const double nothing = aggregate == TreeAggregate::Min ? HUGE_VAL : aggregate == TreeAggregate::Max ? -HUGE_VAL : 0.0;
  Value* weights = fixed(edit, weight_table(ensemble, order, nothing, aggregate), "leaves");
  Value* each = edit.before("Gather", {weights, leaf}, {{"axis", int64_t{0}}});  // [rows, trees, targets]
  const std::vector<Attribute> flat{{"keepdims", int64_t{0}}};
  const char* reduce = aggregate == TreeAggregate::Min   ? "ReduceMin"
                       : aggregate == TreeAggregate::Max ? "ReduceMax"
                                                         : "ReduceSum";
  Value* scores = edit.before(reduce, {each, edit.ints({1})}, flat);
  if (aggregate == TreeAggregate::Average && ensemble.roots.size() > 1) {
    scores =
        edit.before("Div", {scores, fixed_number(edit, ensemble.dtype, static_cast<double>(ensemble.roots.size()))});
  }
  if (!is_extreme) return scores;
  Value* none = edit.before("Equal", {scores, fixed_number(edit, ensemble.dtype, nothing)});
  return edit.before("Where", {none, fixed_number(edit, ensemble.dtype, 0), scores});
}

}  // namespace tonnx
