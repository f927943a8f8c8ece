// types.cpp - types of what changes of shape give, and of sizes.
#include <algorithm>

#include "ops/shape/rows.h"

namespace tonnx {

void types_unsqueeze(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size() + 1);
    if (!dim) return std::nullopt;
    shape.insert_at(static_cast<int64_t>(*dim), Dim(1));
    return shape;
  });
}

void types_squeeze(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto given = n.node().find_attribute("dim") ? n.args().find_ints("dim") : std::nullopt;
    Shape result;
    for (size_t i = 0; i < shape.size(); ++i) {
      const auto rank = static_cast<int64_t>(shape.size()), at = static_cast<int64_t>(i);
      const bool is_asked =
          !given || std::any_of(given->begin(), given->end(), [&](int64_t d) { return d == at || d == at - rank; });
      // a size that only the run tells is 1 where it is named, and another where all are meant, as in torch.export
      const bool is_gone = is_asked && (shape[i].is(1) || (given && !shape[i].is_constant()));
      if (!is_gone) result.push_back(shape[i]);
    }
    return result;
  });
}

void types_transposed(TypeNode& n) {
  reshape_self(n, [](Shape shape) -> MaybeShape {
    if (shape.size() >= 2) std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
    return shape;
  });
}

void types_transpose(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto a = n.dim("dim0", shape.size()), b = n.dim("dim1", shape.size());
    if (!a || !b) return std::nullopt;
    std::swap(shape[*a], shape[*b]);
    return shape;
  });
}

void types_permute(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto dims = n.args().find_ints("dims");
    if (!dims || dims->size() != shape.size()) return std::nullopt;
    Shape result;
    for (int64_t dim : *dims) {
      if (dim < 0) dim += static_cast<int64_t>(shape.size());
      if (dim < 0 || dim >= static_cast<int64_t>(shape.size())) return std::nullopt;
      result.push_back(shape[static_cast<size_t>(dim)]);
    }
    return result;
  });
}

void types_movedim(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto from = n.dim("source", shape.size()), to = n.dim("destination", shape.size());
    if (!from || !to) return std::nullopt;
    const Dim moved = shape[*from];
    shape.erase_at(static_cast<int64_t>(*from));
    shape.insert_at(static_cast<int64_t>(*to), moved);
    return shape;
  });
}

void types_flatten(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    if (shape.empty()) return Shape{Dim(1)};
    const auto begin = n.dim("start_dim", shape.size()), end = n.dim("end_dim", shape.size());
    if (!begin || !end || *begin > *end) return std::nullopt;
    Shape result(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(*begin));
    Dim all = 1;
    for (size_t i = *begin; i <= *end; ++i) all = all * shape[i];
    result.push_back(all);
    result.insert(result.end(), shape.begin() + static_cast<std::ptrdiff_t>(*end) + 1, shape.end());
    return result;
  });
}

namespace {

/// The one size of -1 is what is left of `count`.
MaybeShape with_rest(TypeNode& n, Shape sizes, const Dim& count) {
  Dim others = 1;
  Dim* rest = nullptr;
  for (Dim& size : sizes) {
    if (size.is(-1)) {
      if (rest != nullptr) return std::nullopt;
      rest = &size;
    } else {
      others = others * size;
    }
  }
  if (rest == nullptr) return sizes;
  if (others.is(0)) {
    *rest = 0;
    return sizes;
  }
  const auto exact = exact_div(count, others);
  *rest = exact ? *exact : others.is_constant() ? floor_div(count, others) : n.fresh();
  return sizes;
}

}  // namespace

void types_view_dtype(TypeNode& n) {
  const Type* self = n.tensor("self");
  const auto dtype = n.given_dtype();
  if (self == nullptr || !dtype) return;
  MaybeShape shape = self->shape;
  const int from = info(self->dtype).bits, to = info(*dtype).bits;
  if (shape && !shape->empty() && from != to && from > 0 && to > 0)
    shape->back() = from > to ? shape->back() * Dim(from / to) : floor_div(shape->back(), Dim(to / from));
  n.set(*dtype, shape);
}

namespace {

void reshape_to(TypeNode& n, const MaybeShape& sizes) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  if (!sizes) return n.set(self->dtype, std::nullopt);
  const bool has_rest = std::any_of(sizes->begin(), sizes->end(), [](const Dim& size) { return size.is(-1); });
  if (has_rest && !self->shape) {
    Shape shape = *sizes;
    for (Dim& size : shape) size = size.is(-1) ? n.fresh() : size;
    return n.set(self->dtype, shape);
  }
  n.set(self->dtype, has_rest ? with_rest(n, *sizes, count_of(*self->shape)) : *sizes);
}

}  // namespace

void types_reshape(TypeNode& n) { reshape_to(n, n.new_sizes("shape")); }
void types_view(TypeNode& n) { reshape_to(n, n.new_sizes("size")); }

void types_unflatten(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    const auto sizes = n.sizes("sizes");
    const auto inner = dim && sizes ? with_rest(n, *sizes, shape[*dim]) : std::nullopt;
    if (!inner) return std::nullopt;
    Shape result(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(*dim));
    result.insert(result.end(), inner->begin(), inner->end());
    result.insert(result.end(), shape.begin() + static_cast<std::ptrdiff_t>(*dim) + 1, shape.end());
    return result;
  });
}

void types_expand_as(TypeNode& n) {
  const Type *self = n.tensor("self"), *other = n.tensor("other");
  if (self && other) n.set(self->dtype, other->shape);
}

void types_expand(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    auto sizes = n.sizes("size");
    if (!sizes || sizes->size() < shape.size()) return std::nullopt;
    const size_t offset = sizes->size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      if ((*sizes)[offset + i].is(-1)) (*sizes)[offset + i] = shape[i];
    }
    return sizes;
  });
}

namespace {

void repeat_by(TypeNode& n, const MaybeShape& repeats) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    if (!repeats) return std::nullopt;
    Shape times = *repeats;
    while (times.size() < shape.size()) times.insert(times.begin(), Dim(1));
    while (shape.size() < times.size()) shape.insert(shape.begin(), Dim(1));
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = shape[i] * times[i];
    return shape;
  });
}

}  // namespace

void types_repeat(TypeNode& n) { repeat_by(n, n.sizes("repeats")); }
void types_tile(TypeNode& n) { repeat_by(n, n.sizes("dims")); }

void types_size(TypeNode& n) {
  const Shape* shape = n.shape("self");
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim && (*shape)[*dim].symbol_name() != "") n.set_number((*shape)[*dim]);
}

void types_count(TypeNode& n) {
  if (const Shape* shape = n.shape("self")) n.set_number(count_of(*shape));
}

void types_dim(TypeNode& n) {
  if (const Shape* shape = n.shape("self")) n.set_number(Dim(static_cast<int64_t>(shape->size())));
}

void types_same_number(TypeNode& n) {
  if (const auto a = n.size("a")) n.set_number(*a);
}

void types_negative(TypeNode& n) {
  if (const auto a = n.size("a")) n.set_number(Dim(0) - *a);
}

namespace {

template <class Compute>
void compute_number(TypeNode& n, Compute&& compute) {
  const auto a = n.size("a"), b = n.size("b");
  if (a && b) n.set_number(compute(*a, *b));
}

}  // namespace

void types_sum_of_numbers(TypeNode& n) {
  compute_number(n, [](const Dim& a, const Dim& b) { return a + b; });
}

void types_difference(TypeNode& n) {
  compute_number(n, [](const Dim& a, const Dim& b) { return a - b; });
}

void types_product(TypeNode& n) {
  compute_number(n, [](const Dim& a, const Dim& b) { return a * b; });
}

void types_quotient(TypeNode& n) {
  compute_number(n, [](const Dim& a, const Dim& b) { return floor_div(a, b); });
}

void types_rest(TypeNode& n) {
  compute_number(n, [](const Dim& a, const Dim& b) { return mod(a, b); });
}

namespace {

/// The larger or the smaller one of two, where the symbols in them are sizes.
void compute_bound(TypeNode& n, Dim (*choose)(const Dim&, const Dim&)) {
  const auto& inputs = n.node().inputs();
  if (std::none_of(inputs.begin(), inputs.end(), is_of_tensor)) compute_number(n, choose);
}

}  // namespace

void types_larger(TypeNode& n) { compute_bound(n, max); }

void types_smaller(TypeNode& n) { compute_bound(n, min); }

void types_reshape_as(TypeNode& n) {
  const Shape* other = n.shape("other");
  n.set(n.dtype("self"), other ? MaybeShape(*other) : std::nullopt);
}

void types_meshgrid(TypeNode& n) {
  const std::vector<const Type*> tensors = n.tensors("tensors");
  Shape grid;
  for (const Type* tensor : tensors) {
    if (tensor == nullptr || !tensor->shape || tensor->shape->size() > 1) return;
    grid.push_back(tensor->shape->empty() ? Dim(1) : tensor->shape->front());
  }
  const bool has_order = n.args().signature().find_input("indexing") >= 0;
  if (has_order && n.args().string("indexing") == "xy" && grid.size() > 1) std::swap(grid[0], grid[1]);
  for (size_t i = 0; i < n.found().size() && i < tensors.size(); ++i) n.set(i, tensors[i]->dtype, grid);
}

void types_ravel(TypeNode& n) {
  reshape_self(n, [](const Shape& shape) -> MaybeShape {
    Dim count(1);
    for (const Dim& size : shape) count = count * size;
    return Shape{count};
  });
}

void types_reversed(TypeNode& n) {
  reshape_self(n, [](Shape shape) -> MaybeShape {
    std::reverse(shape.begin(), shape.end());
    return shape;
  });
}

void types_rot90(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto turns = n.args().find_int("k");
    const Shape dims = n.list("dims");
    if (!turns || dims.size() != 2) return std::nullopt;
    if (*turns % 2 == 0) return shape;
    std::vector<size_t> places;
    for (const Dim& dim : dims) {
      const auto at = dim.constant();
      const auto rank = static_cast<int64_t>(shape.size());
      if (!at || *at < -rank || *at >= rank) return std::nullopt;
      places.push_back(static_cast<size_t>(*at < 0 ? *at + rank : *at));
    }
    std::swap(shape[places[0]], shape[places[1]]);
    return shape;
  });
}

void types_broadcast_tensors(TypeNode& n) {
  const auto all = n.tensors("tensors");
  MaybeShape shape = Shape();
  for (const Type* type : all) {
    if (shape) shape = type && type->shape ? joint_shape(*shape, *type->shape) : std::nullopt;
  }
  for (size_t i = 0; i < n.found().size() && i < all.size(); ++i) {
    if (all[i] != nullptr) n.set(i, all[i]->dtype, shape);
  }
}

void set_at_least(TypeNode& n, size_t rank) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    if (shape.size() >= rank) return shape;
    if (rank == 3 && shape.size() == 2) return Shape{shape[0], shape[1], Dim(1)};
    if (rank == 3 && shape.size() == 1) return Shape{Dim(1), shape[0], Dim(1)};
    while (shape.size() < rank) shape.insert(shape.begin(), Dim(1));
    return shape;
  });
}

void types_shape_as_tensor(TypeNode& n) {
  const Shape* shape = n.shape("self");
  n.set(DType::Int64, shape ? MaybeShape(Shape{Dim(static_cast<int64_t>(shape->size()))}) : std::nullopt);
}

}  // namespace tonnx
