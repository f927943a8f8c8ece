// grow.h - values that a model computes of constants alone, made as long as a size that became open.
#pragma once
#include <functional>

#include "convert/opening/size_values.h"
#include "ops/frame/open_node.h"

namespace tonnx {

class Grower {
 public:
  /// `is_fixed`: whether a value depends on no data of an opened input.
  Grower(SizeValues& sizes, std::function<bool(const Value*)> is_fixed)
      : sizes_(sizes), is_fixed_(std::move(is_fixed)) {}

  /// What stands for the value, which has a fixed size along that axis, where it has to be as long as `size`; made in
  /// front of `before`. Null where nothing tells what the further elements are.
  Value* grown(Value* value, size_t axis, const Dim& size, Node& before, int depth = 0);
  /// The value once for each sample, where the axis counts the elements of all samples: `parts` says in which order.
  Value* repeated_for_samples(Value* value, size_t axis, const SizeParts& parts, Node& before);

 private:
  Value* repeated(Value* value, size_t axis, const Dim& size, Node& before);
  Value* longer_constant(const Value& value, size_t axis, const Dim& size, Node& before);
  Value* longer_count(const Value& value, size_t axis, const Dim& size, Node& before);
  Value* longer_triangle(const Value& value, size_t axis, const Dim& size, Node& before);
  Value* longer_part(Node& slice, size_t axis, const Dim& size, Node& before, int depth);
  Value* longer_lookup(Node& gather, size_t axis, const Dim& size, Node& before, int depth);
  Value* longer_moved(Node& node, size_t axis, const Dim& size, Node& before, int depth);
  Value* longer_expanded(Node& node, size_t axis, const Dim& size, Node& before, int depth);
  Value* longer_joined(Node& concat, size_t axis, const Dim& size, Node& before, int depth);
  Value* with_list(Node& node, size_t input, size_t place, const Dim& size, Node& before);
  Value* copied(Node& node, size_t input, Value* by, Node& before);

  SizeValues& sizes_;
  std::function<bool(const Value*)> is_fixed_;
};

}  // namespace tonnx
