// types.cpp - the types of random numbers.
#include "ops/random/rows.h"

namespace tonnx {

void types_multinomial(TypeNode& n) {
  const Shape* weights = n.shape("self");
  const auto count = n.size("num_samples");
  MaybeShape shape;
  if (weights && !weights->empty()) {
    shape = *weights;
    shape->back() = count ? *count : n.fresh();
  }
  n.set(DType::Int64, shape);
}

void types_of_integers(TypeNode& n) { n.set(n.given_dtype().value_or(DType::Int64), n.sizes("size")); }

void types_permutation(TypeNode& n) {
  const auto count = n.size("n");
  n.set(n.given_dtype().value_or(DType::Int64), Shape{count ? *count : n.fresh()});
}

void types_native_dropout(TypeNode& n) {
  const Type* input = n.tensor("input");
  if (input == nullptr) return;
  n.set(0, input->dtype, input->shape);
  n.set(1, DType::Bool, input->shape);
}

void types_normal(TypeNode& n) {
  const Shape *mean = n.shape("mean"), *std = n.shape("std");
  n.set(n.dtype("mean"), mean && std ? joint_shape(*mean, *std) : std::nullopt);
}

void types_dropout_backward(TypeNode& n) {
  const Shape *grad = n.shape("grad_output"), *mask = n.shape("mask");
  n.set(n.joint_float({"grad_output", "mask"}), grad && mask ? joint_shape(*grad, *mask) : std::nullopt);
}

}  // namespace tonnx
