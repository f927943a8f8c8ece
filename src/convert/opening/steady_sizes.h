// steady_sizes.h - the open sizes inside a model that follow from the sizes of its inputs, whatever their elements are.
#pragma once
#include <set>
#include <string>
#include <unordered_set>

#include "convert/opening/fixed_types.h"
#include "ir/dim.h"

namespace tonnx {

class SteadySizes {
 public:
  SteadySizes(const Graph& graph, const FixedTypes& types);

  /// False where the size may differ from one run to the next at the same sizes of inputs.
  bool contains(const Dim& size) const;

 private:
  void note(const Node& node);

  const FixedTypes& types_;
  std::set<std::string, std::less<>> names_;
  std::unordered_set<const Value*> data_;  // values that depend on the elements of inputs
};

}  // namespace tonnx
