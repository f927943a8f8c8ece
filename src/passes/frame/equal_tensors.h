// equal_tensors.h - finds constants that are equal without reading all of most of them.
#pragma once
#include <unordered_map>

#include "ir/graph.h"

namespace tonnx {

/// The constants of a graph, each of them once.
class EqualTensors {
 public:
  explicit EqualTensors(const EqualTensors* around = nullptr) : around_(around) {}
  /// A constant of this graph or one around it that is equal; else null, and the constant is one of this graph's.
  Value* find_or_add(Value* value);

 private:
  const EqualTensors* around_;
  std::unordered_multimap<size_t, Value*> known_;  // by what they look like
};

}  // namespace tonnx
