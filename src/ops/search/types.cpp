// types.cpp - types of what sorting and searching give.
#include "ops/search/rows.h"

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
  n.set(is_int32 ? DType::Int32 : DType::Int64, values ? values->shape : MaybeShape(Shape()));
}

void types_isin(TypeNode& n) {
  const Type* elements = n.tensor("elements");
  n.set(DType::Bool, elements ? elements->shape : MaybeShape(Shape()));
}

void types_bincount(TypeNode& n) {
  const Type* weights = n.tensor("weights");
  const DType dtype = weights == nullptr                 ? DType::Int64
                      : weights->dtype == DType::Float32 ? DType::Float32
                                                         : DType::Float64;
  n.set(dtype, Shape{n.fresh()});
}

void types_histc(TypeNode& n) {
  const auto bins = n.args().find_int("bins").value_or(100);
  n.set(n.dtype("self"), Shape{Dim(bins)});
}

void types_quantile(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr || !self->shape) return;
  const bool keeps = n.args().flag("keepdim");
  Shape shape = *self->shape;
  if (!n.args().has("dim")) {
    shape = keeps ? Shape(std::vector<Dim>(shape.size(), Dim(1))) : Shape();
  } else {
    const auto dim = n.dim("dim", shape.size());
    if (!dim) return;
    if (keeps) shape[*dim] = Dim(1);
    if (!keeps) shape.erase_at(static_cast<int64_t>(*dim));
  }
  const Type* q = n.tensor("q");
  if (q != nullptr && !q->shape) return;
  if (q != nullptr && q->shape->size() == 1) shape.insert(shape.begin(), q->shape->front());
  n.set(self->dtype, std::move(shape));
}

}  // namespace tonnx
