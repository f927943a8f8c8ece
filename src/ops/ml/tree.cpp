// tree.cpp - ensembles of decision trees: TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.
#include "ops/ml/tree.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace tonnx {
namespace {

constexpr std::string_view kPost[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

/// A list of numbers that is given as floats, or, in double precision, as a tensor.
std::optional<std::vector<double>> find_numbers(const NodeView& n, const std::string& name, DType* dtype = nullptr) {
  if (const TensorPtr tensor = n.find_tensor(name + "_as_tensor")) {
    if (dtype != nullptr) *dtype = tensor->dtype;
    auto numbers = floats_of(*tensor, INT64_MAX);
    require(numbers.has_value(), "{}_as_tensor has no numbers", name);
    if (!numbers->empty()) return numbers;
  }
  return n.find_floats(name);
}

std::optional<TreeMode> find_mode(const std::string& name) {
  if (name == "LEAF") return std::nullopt;
  if (name == "BRANCH_LEQ") return TreeMode::LessEqual;
  if (name == "BRANCH_LT") return TreeMode::Less;
  if (name == "BRANCH_GTE") return TreeMode::GreaterEqual;
  if (name == "BRANCH_GT") return TreeMode::Greater;
  if (name == "BRANCH_EQ") return TreeMode::Equal;
  if (name == "BRANCH_NEQ") return TreeMode::NotEqual;
  fail_invalid("a node of a tree has the mode '{}'", name);
}

/// The trees of the two older operators, whose nodes are known by the numbers of their tree and their own.
/// `prefix` is that of the lists of leaf weights: class or target.
TreeEnsemble older_ensemble(const NodeView& n, const std::string& prefix) {
  const auto trees = n.ints("nodes_treeids"), ids = n.ints("nodes_nodeids"), features = n.ints("nodes_featureids"),
             yes = n.ints("nodes_truenodeids"), no = n.ints("nodes_falsenodeids");
  const auto modes = n.find_strings("nodes_modes");
  const auto missing = n.find_ints("nodes_missing_value_tracks_true");
  TreeEnsemble result;
  const auto values = find_numbers(n, "nodes_values", &result.dtype);
  find_numbers(n, "nodes_hitrates");
  const size_t count = ids.size();
  require(values && modes && trees.size() == count && features.size() == count && yes.size() == count &&
              no.size() == count && values->size() == count && modes->size() == count &&
              (!missing || missing->empty() || missing->size() == count),
          "the lists of nodes are not of one length");
  std::map<std::pair<int64_t, int64_t>, int64_t> place_of;
  for (size_t i = 0; i < count; ++i) {
    require(place_of.emplace(std::pair(trees[i], ids[i]), static_cast<int64_t>(i)).second, "tree {} has two nodes {}",
            trees[i], ids[i]);
  }
  const auto place = [&](int64_t tree, int64_t id) {
    const auto at = place_of.find({tree, id});
    require(at != place_of.end(), "tree {} has no node {}", tree, id);
    return at->second;
  };
  std::set<int64_t> with_root;
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    const auto mode = find_mode((*modes)[i]);
    node.is_leaf = !mode;
    node.feature = features[i];
    node.value = (*values)[i];
    node.missing_is_true = missing && !missing->empty() && (*missing)[i] != 0;
    if (mode) {
      node.mode = *mode;
      node.when_true = place(trees[i], yes[i]);
      node.when_false = place(trees[i], no[i]);
    }
    result.nodes.push_back(std::move(node));
    if (with_root.insert(trees[i]).second)
      result.roots.push_back(static_cast<int64_t>(i));  // the first node is the root
  }
  const auto leaf_trees = n.ints(prefix + "_treeids"), leaf_ids = n.ints(prefix + "_nodeids"),
             targets = n.ints(prefix + "_ids");
  const auto weights = find_numbers(n, prefix + "_weights", &result.dtype);
  require(weights && leaf_ids.size() == leaf_trees.size() && targets.size() == leaf_trees.size() &&
              weights->size() == leaf_trees.size(),
          "the lists of leaf weights are not of one length");
  for (size_t i = 0; i < leaf_trees.size(); ++i) {
    TreeNode& leaf = result.nodes[static_cast<size_t>(place(leaf_trees[i], leaf_ids[i]))];
    if (leaf.is_leaf) leaf.weights.emplace_back(targets[i], (*weights)[i]);
  }
  if (result.dtype != DType::Float64) result.dtype = DType::Float32;
  if (n.dtype("X") == DType::Float64)
    result.dtype = DType::Float64;  // a wider input is not rounded before it is compared
  return result;
}

Value* rows_as_they_are(OnnxEdit& edit, DType dtype) {
  Value* x = edit.node().input(0);
  return x->type.dtype == DType::Float64 && dtype == DType::Float64 && x->type.rank().value_or(2) == 2
             ? x
             : rows_of(edit, x);
}

Value* with_base(OnnxEdit& edit, Value* scores, const std::optional<std::vector<double>>& base, int64_t targets,
                 DType dtype) {
  if (!base || base->empty() || std::all_of(base->begin(), base->end(), [](double b) { return b == 0; })) return scores;
  require(static_cast<int64_t>(base->size()) == targets || base->size() == 1, "there are {} base values for {} targets",
          base->size(), targets);
  return edit.before("Add", {scores, fixed(edit, make_floats(dtype, {static_cast<int64_t>(base->size())}, *base))});
}

// TreeEnsembleRegressor

TreeAggregate aggregate_of(const std::string& name) {
  if (name == "SUM") return TreeAggregate::Sum;
  if (name == "AVERAGE") return TreeAggregate::Average;
  if (name == "MIN") return TreeAggregate::Min;
  require(name == "MAX", "aggregate_function is '{}'", name);
  return TreeAggregate::Max;
}

bool expand_tree_regressor(const NodeView& n, OnnxEdit& edit) {
  TreeEnsemble ensemble = older_ensemble(n, "target");
  ensemble.targets = n.find_i("n_targets").value_or(1);
  const DType dtype = ensemble.dtype;
  const int64_t targets = ensemble.targets;
  Value* x = rows_as_they_are(edit, dtype);
  Value* scores = tree_scores(edit, x, std::move(ensemble), aggregate_of(n.s("aggregate_function")));
  scores = cast_to(edit, with_base(edit, scores, find_numbers(n, "base_values"), targets, dtype), DType::Float32);
  return edit.replace_with({transformed_scores(edit, scores, n.s("post_transform"))});
}

// TreeEnsembleClassifier

/// Two classes, and leaves of one of them only: the score of the other follows.
bool expand_binary(const NodeView& n, OnnxEdit& edit, TreeEnsemble ensemble, const ClassLabels& labels, int64_t only) {
  const std::string post = n.s("post_transform");
  bool is_positive = true;
  for (TreeNode& node : ensemble.nodes) {
    for (auto& [target, weight] : node.weights) {
      is_positive = is_positive && weight >= 0;
      target = 0;
    }
  }
  ensemble.targets = 1;
  const DType dtype = ensemble.dtype;
  const auto base = find_numbers(n, "base_values");
  const bool has_base = base && !base->empty();
  if (has_base && (only != 0 || base->size() != 1)) {
    fail_unsupported("{} base values where all leaves are of class {}", base->size(), only);
  }
  Value* x = rows_as_they_are(edit, dtype);
  Value* score = tree_scores(edit, x, std::move(ensemble), TreeAggregate::Sum);
  score = cast_to(edit, with_base(edit, score, base, 1, dtype), DType::Float32);
  const double middle = is_positive ? 0.5 : 0.0;
  Value* above = edit.before("Greater", {score, fixed_number(edit, DType::Float32, middle)});
  Value* number = cast_to(edit, edit.before("Squeeze", {above, edit.ints({1})}), DType::Int64);
  Value* scores = nullptr;
  if (only == 0) {
    scores = scores_of_two(edit, score, post, is_positive);
  } else {
    Value* zero = edit.before("Mul", {score, fixed_number(edit, DType::Float32, 0)});
    scores = transformed_scores(edit, edit.before("Concat", {zero, score}, {{"axis", int64_t{1}}}), post);
  }
  return edit.replace_with({labels_of(edit, number, labels), scores});
}

bool expand_tree_classifier(const NodeView& n, OnnxEdit& edit) {
  TreeEnsemble ensemble = older_ensemble(n, "class");
  const ClassLabels labels = class_labels(n, "classlabels_int64s");
  const auto ids = n.ints("class_ids");
  const bool is_one = !ids.empty() && std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == ids[0]; });
  if (labels.count() == 2 && is_one) {
    require(ids[0] == 0 || ids[0] == 1, "a leaf is for class {} of 2", ids[0]);
    return expand_binary(n, edit, std::move(ensemble), labels, ids[0]);
  }
  ensemble.targets = labels.count();
  const DType dtype = ensemble.dtype;
  Value* x = rows_as_they_are(edit, dtype);
  Value* scores = tree_scores(edit, x, std::move(ensemble), TreeAggregate::Sum);
  scores =
      cast_to(edit, with_base(edit, scores, find_numbers(n, "base_values"), labels.count(), dtype), DType::Float32);
  return edit.replace_with(
      {labels_of(edit, best_class(edit, scores), labels), transformed_scores(edit, scores, n.s("post_transform"))});
}

// TreeEnsemble

/// Leaves have a list of their own here, and follow the nodes.
TreeEnsemble newer_ensemble(const NodeView& n) {
  const auto features = n.ints("nodes_featureids"), yes = n.ints("nodes_truenodeids"),
             no = n.ints("nodes_falsenodeids"), yes_is_leaf = n.ints("nodes_trueleafs"),
             no_is_leaf = n.ints("nodes_falseleafs"), targets = n.ints("leaf_targetids");
  const auto missing = n.find_ints("nodes_missing_value_tracks_true");
  const TensorPtr modes = n.find_tensor("nodes_modes"), splits = n.find_tensor("nodes_splits"),
                  weights = n.find_tensor("leaf_weights"), members = n.find_tensor("membership_values");
  n.find_tensor("nodes_hitrates");
  require(modes && splits && weights, "nodes_modes, nodes_splits or leaf_weights is missing");
  const size_t count = features.size();
  const auto fits = [&](const Tensor& tensor, size_t size) { return tensor.count() == static_cast<int64_t>(size); };
  require(yes.size() == count && no.size() == count && yes_is_leaf.size() == count && no_is_leaf.size() == count &&
              fits(*modes, count) && fits(*splits, count) && (!missing || missing->empty() || missing->size() == count),
          "the lists of nodes are not of one length");
  require(fits(*weights, targets.size()), "there are {} leaf weights for {} targets", weights->count(), targets.size());
  TreeEnsemble result;
  result.dtype = splits->dtype;
  int64_t next_member = 0;
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    node.feature = features[i];
    node.value = element_as_double(*splits, static_cast<int64_t>(i));
    const int64_t mode = element_as_int(*modes, static_cast<int64_t>(i));
    require(mode >= 0 && mode <= 6, "a node has the mode {}", mode);
    node.mode = static_cast<TreeMode>(mode);
    node.missing_is_true = missing && !missing->empty() && (*missing)[i] != 0;
    const auto place = [&](int64_t id, bool is_leaf) {
      const size_t size = is_leaf ? targets.size() : count;
      require(id >= 0 && id < static_cast<int64_t>(size), "there is no {} {}", is_leaf ? "leaf" : "node", id);
      return is_leaf ? static_cast<int64_t>(count) + id : id;
    };
    node.when_true = place(yes[i], yes_is_leaf[i] != 0);
    node.when_false = place(no[i], no_is_leaf[i] != 0);
    if (node.mode == TreeMode::Member) {  // the sets follow one another, each with NaN behind it
      require(members != nullptr, "membership_values is missing");
      for (; next_member < members->count(); ++next_member) {
        const double member = element_as_double(*members, next_member);
        if (std::isnan(member)) break;
        node.members.push_back(member);
      }
      ++next_member;
    }
    result.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    TreeNode leaf;
    leaf.is_leaf = true;
    leaf.weights.emplace_back(targets[i], element_as_double(*weights, static_cast<int64_t>(i)));
    result.nodes.push_back(std::move(leaf));
  }
  return result;
}

bool expand_tree_ensemble(const NodeView& n, OnnxEdit& edit) {
  TreeEnsemble ensemble = newer_ensemble(n);
  // a tree that is a leaf is written as a node both of whose branches lead there
  for (size_t i = 0; i < ensemble.nodes.size(); ++i) {
    if (ensemble.nodes[i].is_leaf || ensemble.nodes[i].when_true != ensemble.nodes[i].when_false) continue;
    const TreeNode leaf = ensemble.nodes[static_cast<size_t>(ensemble.nodes[i].when_true)];
    if (!leaf.is_leaf) continue;
    ensemble.nodes[i].when_false = static_cast<int64_t>(ensemble.nodes.size());
    ensemble.nodes.push_back(leaf);
  }
  ensemble.roots = n.ints("tree_roots");
  ensemble.targets = n.find_i("n_targets").value_or(1);
  const int64_t aggregate = n.i("aggregate_function"), post = n.i("post_transform");
  constexpr TreeAggregate kAggregates[] = {TreeAggregate::Average, TreeAggregate::Sum, TreeAggregate::Min,
                                           TreeAggregate::Max};
  require(aggregate >= 0 && aggregate < 4, "aggregate_function is {}", aggregate);
  require(post >= 0 && post < 5, "post_transform is {}", post);
  const DType dtype = n.dtype("X");
  const DType wide = dtype == DType::Float16 ? DType::Float32 : dtype;
  ensemble.dtype = wide;
  Value* x = edit.node().input(0);
  require(x->type.rank().value_or(2) == 2, "the input has {} dimensions where it needs two",
          x->type.rank().value_or(0));
  Value* scores = tree_scores(edit, x, std::move(ensemble), kAggregates[aggregate]);
  scores = transformed_scores(edit, scores, std::string(kPost[post]));
  return edit.replace_with({cast_to(edit, edit.before("Identity", {scores}), dtype)});
}

/// Version 3 brought tensors for double precision; in version 5 TreeEnsemble took the place of both.
constexpr OpsetStep kHistory[] = {{.to = 3}, {.to = 5}};

#define NODES                                                                                                   \
  "ints? nodes_nodeids, ints? nodes_treeids, ints? nodes_featureids, floats? nodes_values, tensor? "            \
  "nodes_values_as_tensor, ints? nodes_truenodeids, ints? nodes_falsenodeids, floats? nodes_hitrates, tensor? " \
  "nodes_hitrates_as_tensor, floats? base_values, tensor? base_values_as_tensor, ints? "                        \
  "nodes_missing_value_tracks_true, strs? nodes_modes, str post_transform=\"NONE\""
constexpr OnnxOp kMlTreeOnnx[] = {
    {.sig =
         "ai.onnx.ml::TreeEnsembleRegressor(T X, *, " NODES ", str aggregate_function=\"SUM\", int? n_targets, ints? "
         "target_treeids, ints? target_nodeids, ints? target_ids, "
         "floats? target_weights, tensor? target_weights_as_tensor) -> tensor(float) Y",
     .since = 1,
     .history = kHistory,
     .expand = expand_tree_regressor},
    {.sig = "ai.onnx.ml::TreeEnsembleClassifier(T1 X, *, " NODES
            ", ints? classlabels_int64s, strs? classlabels_strings, ints? class_treeids, ints? class_nodeids, ints? "
            "class_ids, "
            "floats? class_weights, tensor? class_weights_as_tensor) -> (T2 Y, tensor(float) Z)",
     .since = 1,
     .history = kHistory,
     .note = kLabelNote,
     .expand = expand_tree_classifier},
    {.sig =
         "ai.onnx.ml::TreeEnsemble(T X, *, int aggregate_function=1, int post_transform=0, ints tree_roots, tensor? "
         "nodes_hitrates, ints? nodes_missing_value_tracks_true, tensor nodes_modes, tensor leaf_weights, ints "
         "leaf_targetids, ints nodes_falsenodeids, int? n_targets, ints nodes_trueleafs, ints nodes_featureids, tensor "
         "nodes_splits, ints nodes_falseleafs, ints nodes_truenodeids, tensor? membership_values) -> T Y",
     .since = 5,
     .expand = expand_tree_ensemble},
};
#undef NODES

}  // namespace

extern const OpFamily kMlTreeOps;
constinit const OpFamily kMlTreeOps{"ml_tree", kMlTreeOnnx, {}};

}  // namespace tonnx
