// rounding.h - how far two values of two models may be apart: by their types, and by how much was added up behind them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/model.h"

namespace tonnx::judge {

/// How much rounding a value has behind it.
struct Depth {
  double layers = 0;   // that add up many numbers
  double numbers = 0;  // that these add up for one element, together
};
Depth deepest(const Depth& a, const Depth& b);
Depth operator+(const Depth& a, const Depth& b);

/// The coarsest type that a model computes in.
enum class Precision : uint8_t { Float64, Float32, Float16, BFloat16, Quantised };

/// What rounding does to the values of a model.
struct Rounding {
  Depth depth;
  Precision precision = Precision::Float32;
};

/// What one node or step adds up.
Depth depth_of(const Node& node);
Depth depth_of(std::string_view op);

/// The rounding of a graph, and the depth of each of its values by name.
class GraphDepths {
 public:
  explicit GraphDepths(const Model& model);

  const Rounding& whole() const { return whole_; }
  /// Of a value inside; null where the graph does not have it.
  const Depth* find(const std::string& value) const;
  /// What the node that computes a value adds up by itself.
  const Depth* find_own(const std::string& value) const;

 private:
  struct Found {
    Depth all, own;
  };
  Depth walk(const Graph& graph, std::unordered_map<const Value*, Depth>& depths);

  Rounding whole_;
  bool has_quantised_ = false;
  std::unordered_map<std::string, Found> by_name_;
};

/// Tolerances that were given, or those that fit types and depth.
struct Tolerance {
  std::optional<double> rtol, atol;
  std::vector<Precision> precisions;

  bool is_given() const { return rtol || atol; }
  bool is_quantised() const;
  /// rtol and atol of floats whose largest element is `largest`.
  std::pair<double, double> of(DType a, DType b, const Depth& depth, double largest) const;
};

/// As far off as rounding could make it; nothing for types that are not rounded.
std::optional<double> noise_of_type(DType dtype);

}  // namespace tonnx::judge
