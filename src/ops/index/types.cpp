// types.cpp - types of what is picked by indices.
#include "ops/index/types.h"

#include <algorithm>

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

void types_index(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto indices = n.tensors("indices");
    if (indices.size() > shape.size()) return std::nullopt;
    Shape result, common;
    size_t first = 0, last = 0;
    bool any = false, is_split = false;
    std::vector<size_t> places;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Type* index = indices[i];
      if (index == nullptr) continue;
      if (!index->shape) return std::nullopt;
      if (index->dtype == DType::Bool || index->dtype == DType::UInt8) {
        if (indices.size() != 1) return std::nullopt;
        if (index->shape->size() > shape.size()) return std::nullopt;
        Shape rest(shape.begin() + static_cast<std::ptrdiff_t>(index->shape->size()), shape.end());
        rest.insert(rest.begin(), n.fresh());
        return rest;
      }
      const auto both = joint_shape(common, *index->shape);
      if (!both) return std::nullopt;
      common = *both;
      if (!any) first = i;
      is_split = is_split || (any && i != last + 1);
      last = i;
      any = true;
      places.push_back(i);
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (std::find(places.begin(), places.end(), i) == places.end()) result.push_back(shape[i]);
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
