// types.cpp - types of what is picked by indices.
#include <algorithm>

#include "ops/index/rows.h"

namespace tonnx {

void types_index_select(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    const Shape* index = n.shape("index");
    if (!dim || index == nullptr) return std::nullopt;
    shape[*dim] = count_of(*index);
    return shape;
  });
}

void types_gather(TypeNode& n) {
  const Shape* index = n.shape("index");
  n.set(n.dtype("self"), index ? MaybeShape(*index) : std::nullopt);
}

void types_take_along_dim(TypeNode& n) {
  const Shape *self = n.shape("self"), *indices = n.shape("indices");
  MaybeShape shape;
  if (!n.args().find_int("dim")) {
    if (indices != nullptr) shape = Shape{count_of(*indices)};  // of both as one row
  } else if (self != nullptr && indices != nullptr && self->size() == indices->size()) {
    Shape others = *self;
    if (const auto dim = n.dim("dim", self->size())) {
      others[*dim] = (*indices)[*dim];
      shape = joint_shape(others, *indices);
    }
  }
  n.set(n.dtype("self"), shape);
}

void types_masked_scatter(TypeNode& n) {
  const Shape *self = n.shape("self"), *mask = n.shape("mask");
  n.set(n.dtype("self"), self && mask ? joint_shape(*self, *mask) : std::nullopt);
}

/// Flags pick as many elements as are true of the dimensions that they have, and count as one list of places for each.
void types_index(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    Shape result, common;
    size_t at = 0, first = 0, last = 0, flags = 0;  // places in the shape
    bool any = false, is_split = false;
    std::vector<bool> is_gone(shape.size(), false);
    for (const Type* index : n.tensors("indices")) {
      if (index == nullptr) {
        ++at;
        continue;
      }
      if (!index->shape) return std::nullopt;
      const bool is_flags = index->dtype == DType::Bool || index->dtype == DType::UInt8;
      const size_t count = is_flags ? index->shape->size() : 1;
      if (count == 0 || count > shape.size() || at + count > shape.size()) return std::nullopt;
      // of two masks, as many as the run finds, or one
      const bool is_second = is_flags && flags++ > 0;
      const auto both = is_second ? Shape{n.fresh()} : joint_shape(common, is_flags ? Shape{n.fresh()} : *index->shape);
      if (!both || both->size() < common.size()) return std::nullopt;
      common = *both;
      if (!any) first = at;
      is_split = is_split || (any && at != last + 1);
      for (size_t i = 0; i < count; ++i) is_gone[at++] = true;
      last = at - 1;
      any = true;
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (!is_gone[i]) result.push_back(shape[i]);
    }
    const size_t where = is_split ? 0 : first;
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(std::min(where, result.size())), common.begin(),
                  common.end());
    return result;
  });
}

void types_nonzero(TypeNode& n) {
  const Shape* shape = n.shape("self");
  n.set(DType::Int64, shape ? MaybeShape(Shape{n.fresh(), Dim(static_cast<int64_t>(shape->size()))}) : std::nullopt);
}

void types_masked_select(TypeNode& n) { n.set(n.dtype("self"), Shape{n.fresh()}); }

void types_embedding(TypeNode& n) {
  const Shape *weight = n.shape("weight"), *indices = n.shape("indices");
  MaybeShape shape;
  if (weight && indices && !weight->empty()) {
    shape = *indices;
    shape->push_back(weight->back());
  }
  n.set(n.dtype("weight"), shape);
}

/// A row for each bag; what else comes is for the gradient.
void types_embedding_bag(TypeNode& n) {
  const Shape *weight = n.shape("weight"), *offsets = n.shape("offsets");
  MaybeShape shape;
  if (weight && offsets && weight->size() == 2 && offsets->size() == 1)
    shape = Shape{offsets->front() - Dim(n.args().flag("include_last_offset") ? 1 : 0), weight->back()};
  n.set(0, n.dtype("weight"), shape);
  for (size_t i = 1; i < 4; ++i) n.set(i, DType::Int64, Shape{n.fresh()});
}

void types_one_hot(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto classes = n.size("num_classes");
    shape.push_back(classes && !classes->is(-1) ? *classes : n.fresh());
    return shape;
  });
}

void types_take(TypeNode& n) {
  const Shape* index = n.shape("index");
  n.set(n.dtype("self"), index ? MaybeShape(*index) : std::nullopt);
}

void types_nonzero_static(TypeNode& n) {
  const Shape* shape = n.shape("self");
  const auto size = n.size("size");
  if (!shape || !size) return n.set(DType::Int64, std::nullopt);
  n.set(DType::Int64, Shape{*size, Dim(static_cast<int64_t>(shape->size()))});
}

}  // namespace tonnx
