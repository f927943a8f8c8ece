// types.cpp - types of what solving and determinants give.
#include "ops/linalg/rows.h"

namespace tonnx {

void types_det(TypeNode& n) {
  const Type* a = n.first();
  if (a == nullptr) return;
  MaybeShape shape = a->shape;
  if (shape && shape->size() >= 2) shape->resize(shape->size() - 2);
  n.set(a->dtype, shape);
}

void types_solve(TypeNode& n) {
  const Type *a = n.tensor("A"), *b = n.tensor("B");
  if (b == nullptr) return;
  const bool fits = a && a->shape && b->shape && a->shape->size() >= 2;
  if (!fits) return n.set(b->dtype, std::nullopt);
  const size_t rank = a->shape->size();
  if (b->shape->size() + 1 == rank) return n.set(b->dtype, b->shape);  // of vectors
  if (b->shape->size() != rank) return n.set(b->dtype, std::nullopt);
  MaybeShape shape =
      joint_shape(Shape(a->shape->begin(), a->shape->end() - 2), Shape(b->shape->begin(), b->shape->end() - 2));
  if (shape) shape->insert(shape->end(), b->shape->end() - 2, b->shape->end());
  n.set(b->dtype, shape);
}

void types_solve_triangular(TypeNode& n) {
  const Type* b = n.tensor("B");
  if (b != nullptr) n.set(b->dtype, b->shape);
}

void types_cdist(TypeNode& n) {
  const Shape *a = n.shape("x1"), *b = n.shape("x2");
  MaybeShape shape;
  if (a && b && a->size() >= 2 && b->size() >= 2) {
    shape = joint_shape(Shape(a->begin(), a->end() - 2), Shape(b->begin(), b->end() - 2));
    if (shape) shape->insert(shape->end(), {(*a)[a->size() - 2], (*b)[b->size() - 2]});
  }
  n.set(n.dtype("x1"), shape);
}

void types_cosine_similarity(TypeNode& n) { types_joint_without_dim(n, "x1", "x2"); }

void types_pairwise_distance(TypeNode& n) {
  const Shape *a = n.shape("x1"), *b = n.shape("x2");
  MaybeShape shape = a && b ? joint_shape(*a, *b) : std::nullopt;
  if (shape && !shape->empty()) {
    shape->pop_back();
    if (n.args().flag("keepdim")) shape->push_back(Dim(1));
  }
  n.set(n.joint_float({"x1", "x2"}), shape);
}

void types_pdist(TypeNode& n) {
  reshape_self(n, [](const Shape& shape) -> MaybeShape {
    if (shape.size() != 2) return std::nullopt;
    return Shape{floor_div(shape[0] * (shape[0] - Dim(1)), Dim(2))};
  });
}

void types_with_info(TypeNode& n) {
  const Type* a = n.first();
  if (a == nullptr) return;
  n.set(0, a->dtype, a->shape);
  const bool is_matrix = a->shape && a->shape->size() >= 2;
  n.set(1, DType::Int32, is_matrix ? MaybeShape(Shape(a->shape->begin(), a->shape->end() - 2)) : std::nullopt);
}

void types_slogdet(TypeNode& n) {
  const Type* a = n.first();
  if (a == nullptr || is_complex(a->dtype)) return;
  const bool is_matrix = a->shape && a->shape->size() >= 2;
  for (const size_t i : {0, 1})
    n.set(i, a->dtype, is_matrix ? MaybeShape(Shape(a->shape->begin(), a->shape->end() - 2)) : std::nullopt);
}

void types_tensorinv(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto first = n.args().find_int("ind").value_or(2);
    if (first < 1 || first > static_cast<int64_t>(shape.size())) return std::nullopt;
    Shape result(shape.begin() + first, shape.end());
    result.insert(result.end(), shape.begin(), shape.begin() + first);
    return result;
  });
}

}  // namespace tonnx
