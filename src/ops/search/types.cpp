// types.cpp - types of what sorting and searching give.
#include "ops/search/types.h"

namespace tonnx {

void types_unique_dim(TypeNode& n) {
  const Shape* shape = n.shape("self");
  const Dim count = n.fresh();
  MaybeShape result = shape ? MaybeShape(*shape) : std::nullopt;
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim) (*result)[*dim] = count;
  n.set(0, n.dtype("self"), dim ? result : std::nullopt);
  n.set(1, DType::Int64, dim ? MaybeShape(Shape{(*shape)[*dim]}) : std::nullopt);
  n.set(2, DType::Int64, Shape{n.args().flag("return_counts") ? count : Dim(0)});
}

void types_unique(TypeNode& n) {
  const Shape* shape = n.shape("self");
  const Dim count = n.fresh();
  n.set(0, n.dtype("self"), Shape{count});
  const bool inverse = n.args().flag("return_inverse"), counts = n.args().flag("return_counts");
  n.set(1, DType::Int64, inverse ? (shape ? MaybeShape(*shape) : std::nullopt) : MaybeShape(Shape{Dim(0)}));
  n.set(2, DType::Int64, Shape{counts ? count : Dim(0)});
}

void types_argsort(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self != nullptr) n.set(DType::Int64, self->shape);
}

void types_values_and_places(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(0, self->dtype, self->shape);
  n.set(1, DType::Int64, self->shape);
}

void types_topk(TypeNode& n) {
  const Shape* shape = n.shape("self");
  MaybeShape result;
  if (shape != nullptr) {
    const auto dim = n.dim("dim", shape->size());
    const auto k = n.size("k");
    if (dim) {
      result = *shape;
      (*result)[*dim] = k ? *k : n.fresh();
    }
    if (shape->empty()) result = Shape();
  }
  n.set(0, n.dtype("self"), result);
  n.set(1, DType::Int64, result);
}

void types_bucketize(TypeNode& n) {
  const Type* values = n.tensor("self");
  const bool is_int32 = n.args().flag("out_int32");
  if (values != nullptr) n.set(is_int32 ? DType::Int32 : DType::Int64, values->shape);
}

}  // namespace tonnx
