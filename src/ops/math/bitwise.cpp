// bitwise.cpp - operations on bits, in operators of before opset 18: each bit by itself, in a dimension of its own.
#include "ops/math/bitwise.h"

#include <algorithm>
#include <cmath>

#include "ops/frame/expansion.h"

namespace tonnx {

bool bitwise_in_older(const NodeView& n, OnnxEdit& edit, std::string_view logic) {
  Expansion make(edit);
  const DType dtype = n.dtype("A");
  const auto rank_a = n.find_rank("A"), rank_b = n.find_rank("B");
  if (!is_integer(dtype) || !rank_a || !rank_b) return false;
  std::vector<double> places;
  for (int bit = 0; bit < info(dtype).bits; ++bit) places.push_back(bit);
  Value* shifts = make.numbers(DType::UInt64, {info(dtype).bits}, places);
  const auto bits_of = [&](Value* x, int64_t rank) {
    Value* wide = make.unsqueeze(make.cast(x, DType::UInt64), {rank});
    Value* shifted = make("BitShift", {wide, shifts}, {{"direction", std::string("RIGHT")}});
    return make.cast(make("Mod", {shifted, make.number(DType::UInt64, 2)}), DType::Bool);
  };
  Value* bits = make(logic, {bits_of(n.node().input(0), *rank_a), bits_of(n.node().input(1), *rank_b)});
  bits = make.cast(bits, DType::Int64);
  // ONNX Runtime adds up int64 no more exactly than float64, so that each half is a sum of its own
  const auto half = [&](int first) {
    std::vector<double> weights(places.size(), 0.0);
    for (int bit = first; bit < first + 32 && bit < info(dtype).bits; ++bit)
      weights[static_cast<size_t>(bit)] = std::ldexp(1.0, bit - first);
    Value* weighted = make("Mul", {bits, make.numbers(DType::Int64, {info(dtype).bits}, weights)});
    return make("ReduceSum", {weighted, make.ints({std::max(*rank_a, *rank_b)})}, {{"keepdims", int64_t{0}}});
  };
  Value* sum = half(0);
  if (info(dtype).bits > 32)
    sum = make("Add", {sum, make("Mul", {half(32), make.number(DType::Int64, std::ldexp(1.0, 32))})});
  return edit.replace_with({make.cast(sum, dtype)});
}

/// -1 - x
bool bitwise_not_in_older(const NodeView& n, OnnxEdit& edit) {
  const DType dtype = n.dtype("X");
  if (!is_signed_int(dtype)) return false;
  Expansion make(edit);
  return edit.replace_with({make("Sub", {make.number(dtype, -1), n.node().input(0)})});
}

}  // namespace tonnx
