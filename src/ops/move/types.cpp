// types.cpp - types of what operators give that cut, join, pad and repeat.
#include <algorithm>

#include "ops/frame/result_dtype.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

/// Where a slice begins or ends, counted from the front and within the dimension; nothing where its sign is not known.
std::optional<Dim> bound(const TypeNode& n, std::string_view argument, const Dim& size) {
  const auto given = n.size(argument);
  if (!given || is_of_tensor(n.args().value(argument))) return std::nullopt;
  Dim at = *given;
  if (const auto number = at.constant()) {
    if (*number < 0) at = *number <= -(int64_t{1} << 40) ? Dim(0) : max(size + at, Dim(0));
    if (*number >= int64_t{1} << 40) at = size;
  } else if (!at.is_non_negative()) {
    return std::nullopt;
  }
  return min(at, size);
}

/// Sizes at both ends of the last axes, from the last one on.
void pad_self(TypeNode& n, std::string_view argument) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto pads = n.sizes(argument);
    if (!pads || pads->size() % 2 != 0 || pads->size() / 2 > shape.size()) return std::nullopt;
    for (size_t i = 0; i < pads->size() / 2; ++i)
      shape[shape.size() - 1 - i] = shape[shape.size() - 1 - i] + (*pads)[2 * i] + (*pads)[2 * i + 1];
    return shape;
  });
}

}  // namespace

void types_slice(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    if (!dim) return std::nullopt;
    Dim& size = shape[*dim];
    const auto start = n.args().has("start") ? bound(n, "start", size) : Dim(0);
    const auto end = n.args().has("end") ? bound(n, "end", size) : size;
    const auto step = n.size("step");
    if (!start || !end || !step || step->constant().value_or(0) < 1) {
      size = n.fresh();
      return shape;
    }
    size = ceil_div(max(*end - *start, Dim(0)), *step);
    return shape;
  });
}

void types_narrow(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    if (!dim) return std::nullopt;
    const auto length = n.size("length");
    shape[*dim] = length ? *length : n.fresh();
    return shape;
  });
}

void types_select(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    if (!dim) return std::nullopt;
    shape.erase_at(static_cast<int64_t>(*dim));
    return shape;
  });
}

void types_diagonal(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto a = n.dim("dim1", shape.size()), b = n.dim("dim2", shape.size());
    const auto offset = n.args().find_int("offset");
    if (!a || !b || !offset || *a == *b) return std::nullopt;
    const Dim rows = shape[*a], columns = shape[*b];
    const Dim size = *offset >= 0 ? min(rows, columns - Dim(*offset)) : min(rows + Dim(*offset), columns);
    shape.erase_at(static_cast<int64_t>(std::max(*a, *b)));
    shape.erase_at(static_cast<int64_t>(std::min(*a, *b)));
    shape.push_back(max(size, Dim(0)));
    return shape;
  });
}

/// All elements in a row where no dimension is given; how many there are of each is a number, or a tensor.
void types_repeat_interleave(TypeNode& n) {
  if (n.args().signature().find_input("self") < 0) return n.set(n.dtype("repeats"), Shape{n.fresh()});
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const bool is_flat = !n.args().has("dim");
    if (is_flat) shape = Shape{count_of(shape)};
    const auto dim = is_flat ? 0 : n.dim("dim", shape.size());
    if (!dim) return std::nullopt;
    const auto repeats = n.tensor("repeats") ? std::nullopt : n.size("repeats");
    const auto given = n.args().has("output_size") ? n.size("output_size") : std::nullopt;
    shape[*dim] = given ? *given : repeats ? shape[*dim] * *repeats : n.fresh();
    return shape;
  });
}

void types_pad(TypeNode& n) { pad_self(n, "pad"); }

void types_pixel_shuffle(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto factor = n.args().find_int("upscale_factor");
    if (!factor || *factor <= 0 || shape.size() < 3) return std::nullopt;
    const Dim r = *factor;
    Dim &c = shape[shape.size() - 3], &h = shape[shape.size() - 2], &w = shape[shape.size() - 1];
    c = floor_div(c, r * r);
    h = h * r;
    w = w * r;
    return shape;
  });
}

void types_pixel_unshuffle(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto factor = n.args().find_int("downscale_factor");
    if (!factor || *factor <= 0 || shape.size() < 3) return std::nullopt;
    const Dim r = *factor;
    Dim &c = shape[shape.size() - 3], &h = shape[shape.size() - 2], &w = shape[shape.size() - 1];
    c = c * r * r;
    h = floor_div(h, r);
    w = floor_div(w, r);
    return shape;
  });
}

namespace {

/// `sizes_of` gives the sizes of the parts of a dimension of that size.
template <class SizesOf>
void split_self(TypeNode& n, SizesOf&& sizes_of) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const auto dim = self->shape ? n.dim("dim", self->shape->size()) : std::nullopt;
  if (!dim) {
    for (size_t i = 0; i < n.found().size(); ++i) n.set(i, self->dtype, std::nullopt);
    return;
  }
  const size_t at = *dim;
  const MaybeShape sizes = sizes_of((*self->shape)[at]);
  for (size_t i = 0; i < n.found().size(); ++i) {
    Shape shape = *self->shape;
    shape[at] = sizes && i < sizes->size() ? (*sizes)[i] : n.fresh();
    n.set(i, self->dtype, shape);
  }
}

MaybeShape equal_parts(size_t count, const Dim& whole, const std::optional<Dim>& each) {
  if (!each) return std::nullopt;
  Shape sizes(count, *each);
  if (count > 0) sizes.back() = whole - *each * Dim(static_cast<int64_t>(count) - 1);
  return sizes;
}

}  // namespace

void types_split(TypeNode& n) {
  split_self(n, [&](const Dim& whole) { return equal_parts(n.found().size(), whole, n.size("split_size")); });
}

void types_split_with_sizes(TypeNode& n) {
  split_self(n, [&](const Dim&) { return n.sizes("split_sizes"); });
}

/// Parts that differ by one at most, the larger ones first.
void types_tensor_split(TypeNode& n) {
  split_self(n, [&](const Dim& whole) -> MaybeShape {
    const auto count = static_cast<int64_t>(n.found().size());
    Shape sizes;
    for (int64_t i = 0; i < count; ++i) sizes.push_back(floor_div(whole + Dim(count - 1 - i), Dim(count)));
    return sizes;
  });
}

/// Parts of a known size between indices; those past the end are empty.
void types_split_at(TypeNode& n) {
  split_self(n, [&](const Dim& whole) -> MaybeShape {
    const auto size = whole.constant();
    const MaybeShape indices = n.sizes("indices");
    if (!size || !indices) return std::nullopt;
    Shape sizes;
    int64_t begin = 0;
    for (const Dim& index : *indices) {
      auto end = index.constant();
      if (!end) return std::nullopt;
      end = std::clamp<int64_t>(*end < 0 ? *end + *size : *end, 0, *size);
      sizes.push_back(Dim(std::max<int64_t>(*end - begin, 0)));
      begin = *end;
    }
    sizes.push_back(Dim(*size - begin));
    return sizes;
  });
}

void types_chunk(TypeNode& n) {
  split_self(n, [&](const Dim& whole) -> MaybeShape {
    const auto chunks = n.size("chunks");
    if (!chunks || chunks->is(0)) return std::nullopt;
    const Dim each = ceil_div(whole, *chunks);
    if (n.found().size() < 3 || whole.is_constant()) return equal_parts(n.found().size(), whole, each);
    Shape sizes;  // where the size is small the last parts have fewer elements, or none
    for (size_t i = 0; i < n.found().size(); ++i)
      sizes.push_back(max(Dim(0), min(each, whole - each * Dim(static_cast<int64_t>(i)))));
    return sizes;
  });
}

void types_unbind(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  MaybeShape shape = self->shape;
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim) shape->erase_at(static_cast<int64_t>(*dim));
  for (size_t i = 0; i < n.found().size(); ++i) n.set(i, self->dtype, dim ? shape : std::nullopt);
}

namespace {

using Shapes = std::vector<Shape>;

/// One behind the other along the dimension that `dim` gives for a rank; a list of nothing joins tensors of any rank.
template <class FindDim>
MaybeShape joined_shape(const Shapes& shapes, const FindDim& dim) {
  const auto is_nothing = [](const Shape& shape) { return shape.size() == 1 && shape[0].is(0); };
  const auto first = std::find_if_not(shapes.begin(), shapes.end(), is_nothing);
  if (first == shapes.end()) return shapes.front();
  const std::optional<size_t> at = dim(first->size());
  if (!at || *at >= first->size()) return std::nullopt;
  Shape result = *first;
  for (auto each = first + 1; each != shapes.end(); ++each) {
    if (is_nothing(*each)) continue;
    if (each->size() != result.size()) return std::nullopt;
    result[*at] = result[*at] + (*each)[*at];
  }
  return result;
}

void join_tensors(TypeNode& n, bool stacks) {
  const auto all = n.tensors("tensors");
  if (all.empty()) return;
  DType dtype = DType::Undefined;
  MaybeShape shape;
  bool is_known = true;
  for (const Type* each : all) {
    if (each == nullptr) return;
    dtype = dtype == DType::Undefined ? each->dtype : promoted(dtype, each->dtype);
    is_known = is_known && each->shape;
  }
  if (is_known) {
    shape = all[0]->shape;
    if (!stacks) {
      Shapes shapes;
      for (const Type* each : all) shapes.push_back(*each->shape);
      return n.set(dtype, joined_shape(shapes, [&](size_t rank) { return n.dim("dim", rank); }));
    }
    const auto dim = n.dim("dim", shape->size() + 1);
    if (!dim) return n.set(dtype, std::nullopt);
    shape->insert_at(static_cast<int64_t>(*dim), Dim(static_cast<int64_t>(all.size())));
  }
  n.set(dtype, shape);
}

}  // namespace

void types_cat(TypeNode& n) { join_tensors(n, false); }
void types_stack(TypeNode& n) { join_tensors(n, true); }

namespace {

/// Tensors of at least some dimensions, made so by `widen`, one behind the other along the dimension `dim`.
template <class Widen>
void join_wide(TypeNode& n, const Widen& widen, const std::optional<size_t>& dim) {
  const auto all = n.tensors("tensors");
  if (all.empty()) return;
  DType dtype = DType::Undefined;
  Shapes shapes;
  for (const Type* type : all) {
    if (type == nullptr) return;
    dtype = dtype == DType::Undefined ? type->dtype : promoted(dtype, type->dtype);
    if (type->shape) shapes.push_back(*type->shape);
  }
  if (shapes.size() != all.size()) return n.set(dtype, std::nullopt);
  for (Shape& shape : shapes) widen(shape);
  // hstack: by the first one's rank
  const size_t at = dim.value_or(shapes.front().size() == 1 ? 0 : 1);
  n.set(dtype, joined_shape(shapes, [&](size_t) { return std::optional(at); }));
}

}  // namespace

void types_hstack(TypeNode& n) {
  join_wide(
      n,
      [](Shape& shape) {
        if (shape.empty()) shape.push_back(Dim(1));
      },
      std::nullopt);
}

void types_vstack(TypeNode& n) {
  join_wide(
      n,
      [](Shape& shape) {
        while (shape.size() < 2) shape.insert(shape.begin(), Dim(1));
      },
      size_t{0});
}

void types_dstack(TypeNode& n) {
  join_wide(
      n,
      [](Shape& shape) {
        while (shape.size() < 2) shape.insert(shape.begin(), Dim(1));
        if (shape.size() == 2) shape.push_back(Dim(1));
      },
      size_t{2});
}

void types_column_stack(TypeNode& n) {
  join_wide(
      n,
      [](Shape& shape) {
        while (shape.size() < 2) shape.push_back(Dim(1));
      },
      size_t{1});
}

/// The last dimension becomes a diagonal between two new ones.
void types_diag_embed(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto offset = n.args().find_int("offset");
    const size_t rank = shape.size() + 1;
    const auto first = n.dim("dim1", rank), second = n.dim("dim2", rank);
    if (shape.empty() || !offset || !first || !second || *first == *second) return std::nullopt;
    const Dim size = shape.back() + Dim(std::abs(*offset));
    shape.pop_back();
    for (const size_t at : {std::min(*first, *second), std::max(*first, *second)})
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), size);
    return shape;
  });
}

/// A vector becomes a diagonal, and the other way round.
void types_diag(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto offset = n.args().find_int("diagonal");
    if (!offset) return std::nullopt;
    if (shape.size() == 1) return Shape(2, shape.front() + Dim(std::abs(*offset)));
    if (shape.size() != 2) return std::nullopt;
    const auto rows = shape[0].constant(), columns = shape[1].constant();
    if (!rows || !columns) return Shape{n.fresh()};
    const int64_t length = std::min(*offset < 0 ? *rows + *offset : *rows, *offset > 0 ? *columns - *offset : *columns);
    return Shape{Dim(std::max<int64_t>(length, 0))};
  });
}

void types_trace(TypeNode& n) {
  const DType dtype = n.dtype("self");
  n.set(is_integer(dtype) || dtype == DType::Bool ? DType::Int64 : dtype, Shape());
}

void types_linalg_diagonal(TypeNode& n) {
  const Type* a = n.tensor("A");
  if (a == nullptr) return;
  MaybeShape shape = a->shape;
  const auto first = shape ? n.dim("dim1", shape->size()) : std::nullopt;
  const auto second = shape ? n.dim("dim2", shape->size()) : std::nullopt;
  const auto offset = n.args().find_int("offset");
  if (!first || !second || !offset || *first == *second) return n.set(a->dtype, std::nullopt);
  const Dim rows = (*shape)[*first], columns = (*shape)[*second];
  const Dim size = *offset >= 0 ? min(rows, columns - Dim(*offset)) : min(rows + Dim(*offset), columns);
  shape->erase_at(static_cast<int64_t>(std::max(*first, *second)));
  shape->erase_at(static_cast<int64_t>(std::min(*first, *second)));
  shape->push_back(max(size, Dim(0)));
  n.set(a->dtype, shape);
}

void types_diagflat(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto offset = n.args().find_int("offset").value_or(0);
    if (offset == INT64_MIN) return std::nullopt;
    Dim count(1);
    for (const Dim& dim : shape) count = count * dim;
    const Dim side = count + Dim(offset < 0 ? -offset : offset);
    return Shape{side, side};
  });
}

void types_strided(TypeNode& n) { n.set(n.dtype("self"), n.sizes("size")); }

void types_block_diag(TypeNode& n) {
  const auto parts = n.tensors("tensors");
  Dim rows(0), columns(0);
  for (const Type* part : parts) {
    if (part == nullptr || !part->shape || part->shape->size() > 2 || part->dtype != parts[0]->dtype) return;
    const Shape& shape = *part->shape;
    rows = rows + (shape.size() == 2 ? shape[0] : Dim(1));
    columns = columns + (shape.empty() ? Dim(1) : shape.back());
  }
  if (!parts.empty()) n.set(parts[0]->dtype, Shape{rows, columns});
}

void types_cartesian_prod(TypeNode& n) {
  const auto parts = n.tensors("tensors");
  Dim count(1);
  for (const Type* part : parts) {
    if (part == nullptr || !part->shape || part->shape->size() != 1) return;
    count = count * part->shape->front();
  }
  if (parts.empty()) return;
  n.set(parts[0]->dtype, parts.size() == 1 ? Shape{count} : Shape{count, Dim(static_cast<int64_t>(parts.size()))});
}

void types_combinations(TypeNode& n) {
  const auto taken = n.args().find_int("r").value_or(2);
  if (taken > 0) n.set(n.dtype("self"), Shape{n.fresh(), Dim(taken)});
}

void types_padding(TypeNode& n) { pad_self(n, "padding"); }

}  // namespace tonnx
