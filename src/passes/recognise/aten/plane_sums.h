// plane_sums.h - evaluates chains of gather, select and add, plane by plane.
#pragma once
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// Whether the node gives its elements in their order, with other dimensions.
bool only_reshapes(const Node& node);

/// A tensor each of whose elements is a weighted sum of elements of a plane of another.
struct PlaneSums {
  /// The places in the plane, ascending, and how often each counts.
  using Sum = std::vector<std::pair<int64_t, double>>;

  Value* of = nullptr;       // [lead dimensions, sizes of the plane]
  size_t lead = 0;           // how many dimensions are in front of the plane
  std::vector<size_t> axes;  // which axis each dimension is: those in front of the plane first, then those of `dims`
  std::vector<int64_t> dims;
  std::vector<Sum> sums;  // for each element of `dims`, row by row

  /// Whether the dimensions of the planes come last, in their order.
  bool is_in_order() const;
};

/// Follows the nodes of a graph, in their order.
class PlaneSumsFinder {
 public:
  explicit PlaneSumsFinder(const Graph& graph) : graph_(graph) {}

  /// What the node gives; null where it is nothing of the kind.
  const PlaneSums* find(const Node& node);
  /// The value has what another has, in whose place it is.
  void take_place(const Value* value, const Value* of) { known_[value] = known_.at(of); }

 private:
  std::optional<PlaneSums> made_by(const Node& node) const;
  std::optional<PlaneSums> planes_of(const Node& node, size_t before, size_t count) const;
  std::optional<PlaneSums> gathered(const Node& node) const;
  const PlaneSums* known(const Value* value) const;

  const Graph& graph_;
  std::unordered_map<const Value*, PlaneSums> known_;
  size_t room_ = size_t{1} << 21;  // for places of all sums
};

}  // namespace tonnx
