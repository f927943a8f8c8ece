// tree.h - decision trees as tables: one row for each node of all trees, leaves last.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ops/ml/labels.h"

namespace tonnx {

enum class TreeMode : uint8_t { LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual, Member };

/// A file's nodes, any of which may be a leaf.
struct TreeNode {
  bool is_leaf = false;
  int64_t feature = 0;
  double value = 0;
  TreeMode mode = TreeMode::LessEqual;
  bool missing_is_true = false;
  int64_t when_true = 0, when_false = 0;            // places in the list of nodes
  std::vector<double> members;                      // for TreeMode::Member
  std::vector<std::pair<int64_t, double>> weights;  // of a leaf: target and weight
};

struct TreeEnsemble {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  int64_t targets = 1;
  DType dtype = DType::Float32;  // of thresholds and weights
};

enum class TreeAggregate { Sum, Average, Min, Max };

/// The scores [rows, targets] of the trees for the rows of x, in the type of the ensemble.
Value* tree_scores(OnnxEdit& edit, Value* x, TreeEnsemble ensemble, TreeAggregate aggregate);

}  // namespace tonnx
