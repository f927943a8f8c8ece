// types_move.cpp - types of what operators give that move, pick or make elements.
#include <algorithm>

#include "passes/aten/result_dtype.h"
#include "passes/aten/types.h"

namespace tonnx {
namespace {

using MaybeShape = std::optional<Shape>;

/// Runs `change` on a copy of the shape of `self`, where it is known, and gives the result `self`'s element type.
template <class Change>
void reshape_self(TypeNode& n, Change&& change) {
  const Shape* shape = n.shape("self");
  n.set(n.dtype("self"), shape ? change(*shape) : MaybeShape());
}

void rule_same(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) self = n.first();
  if (self != nullptr) n.set(self->dtype, self->shape);
}

void rule_to(TypeNode& n) {
  const Type* other = n.tensor("other");
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(other ? other->dtype : n.given_dtype().value_or(self->dtype), self->shape);
}

void rule_unsqueeze(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size() + 1);
    if (!dim) return std::nullopt;
    shape.insert_at(static_cast<int64_t>(*dim), Dim(1));
    return shape;
  });
}

void rule_squeeze(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto given = n.node().find_attribute("dim") ? n.args().find_ints("dim") : std::nullopt;
    Shape result;
    for (size_t i = 0; i < shape.size(); ++i) {
      const auto rank = static_cast<int64_t>(shape.size()), at = static_cast<int64_t>(i);
      const bool is_asked =
          !given || std::any_of(given->begin(), given->end(), [&](int64_t d) { return d == at || d == at - rank; });
      if (is_asked && !given && !shape[i].is_constant()) return std::nullopt;
      if (!is_asked || !(shape[i].is(1) || !shape[i].is_constant())) result.push_back(shape[i]);
    }
    return result;
  });
}

void rule_transpose(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    if (n.op() == "t" || n.op() == "mT") {
      if (shape.size() >= 2) std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
      return shape;
    }
    const auto a = n.dim("dim0", shape.size()), b = n.dim("dim1", shape.size());
    if (!a || !b) return std::nullopt;
    std::swap(shape[*a], shape[*b]);
    return shape;
  });
}

void rule_permute(TypeNode& n) {
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

void rule_movedim(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto from = n.dim("source", shape.size()), to = n.dim("destination", shape.size());
    if (!from || !to) return std::nullopt;
    const Dim moved = shape[*from];
    shape.erase_at(static_cast<int64_t>(*from));
    shape.insert_at(static_cast<int64_t>(*to), moved);
    return shape;
  });
}

void rule_flatten(TypeNode& n) {
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

void rule_reshape(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  if (const auto dtype = n.given_dtype(); dtype && n.op() == "view") {  // view.dtype
    MaybeShape shape = self->shape;
    const int from = info(self->dtype).bits, to = info(*dtype).bits;
    if (shape && !shape->empty() && from != to && from > 0 && to > 0)
      shape->back() = from > to ? shape->back() * Dim(from / to) : floor_div(shape->back(), Dim(to / from));
    return n.set(*dtype, shape);
  }
  const auto sizes = n.sizes(n.op() == "reshape" ? "shape" : "size");
  if (!sizes) return n.set(self->dtype, std::nullopt);
  const bool has_rest = std::any_of(sizes->begin(), sizes->end(), [](const Dim& size) { return size.is(-1); });
  if (has_rest && !self->shape) {
    Shape shape = *sizes;
    for (Dim& size : shape) size = size.is(-1) ? n.fresh() : size;
    return n.set(self->dtype, shape);
  }
  n.set(self->dtype, has_rest ? with_rest(n, *sizes, count_of(*self->shape)) : *sizes);
}

void rule_unflatten(TypeNode& n) {
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

void rule_expand(TypeNode& n) {
  if (n.op() == "expand_as") {
    const Type *self = n.tensor("self"), *other = n.tensor("other");
    if (self && other) n.set(self->dtype, other->shape);
    return;
  }
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

/// Where a slice begins or ends, counted from the front and within the dimension.
std::optional<Dim> bound(std::optional<Dim> given, const Dim& size) {
  if (!given) return std::nullopt;
  Dim at = *given;
  if (const auto number = at.constant()) {
    if (*number < 0) at = *number <= -(int64_t{1} << 40) ? Dim(0) : max(size + at, Dim(0));
    if (*number >= int64_t{1} << 40) at = size;
  } else if (!at.is_non_negative()) {
    return std::nullopt;
  }
  return min(at, size);
}

void rule_slice(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    if (!dim) return std::nullopt;
    Dim& size = shape[*dim];
    const auto start = n.args().has("start") ? bound(n.size("start"), size) : Dim(0);
    const auto end = n.args().has("end") ? bound(n.size("end"), size) : size;
    const auto step = n.size("step");
    if (!start || !end || !step || step->constant().value_or(0) < 1) {
      size = n.fresh();
      return shape;
    }
    size = ceil_div(max(*end - *start, Dim(0)), *step);
    return shape;
  });
}

void rule_narrow(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    if (!dim) return std::nullopt;
    const auto length = n.size("length");
    shape[*dim] = length ? *length : n.fresh();
    return shape;
  });
}

void rule_select(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    if (!dim) return std::nullopt;
    shape.erase_at(static_cast<int64_t>(*dim));
    return shape;
  });
}

void rule_unfold(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dimension", shape.size());
    const auto size = n.size("size"), step = n.size("step");
    if (!dim || !size || !step || step->is(0)) return std::nullopt;
    shape[*dim] = floor_div(shape[*dim] - *size, *step) + Dim(1);
    shape.push_back(*size);
    return shape;
  });
}

void rule_diagonal(TypeNode& n) {
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

void rule_repeat(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto repeats = n.sizes(n.op() == "tile" ? "dims" : "repeats");
    if (!repeats) return std::nullopt;
    Shape times = *repeats;
    while (times.size() < shape.size()) times.insert(times.begin(), Dim(1));
    while (shape.size() < times.size()) shape.insert(shape.begin(), Dim(1));
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = shape[i] * times[i];
    return shape;
  });
}

void rule_repeat_interleave(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    const auto repeats = n.size("repeats");
    if (!dim || !repeats) return std::nullopt;
    shape[*dim] = shape[*dim] * *repeats;
    return shape;
  });
}

void rule_pad(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto pads = n.sizes("pad");
    if (!pads || pads->size() % 2 != 0 || pads->size() / 2 > shape.size()) return std::nullopt;
    for (size_t i = 0; i < pads->size() / 2; ++i)
      shape[shape.size() - 1 - i] = shape[shape.size() - 1 - i] + (*pads)[2 * i] + (*pads)[2 * i + 1];
    return shape;
  });
}

void rule_pixel_shuffle(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const bool shuffles = n.op() == "pixel_shuffle";
    const auto factor = n.args().find_int(shuffles ? "upscale_factor" : "downscale_factor");
    if (!factor || *factor <= 0 || shape.size() < 3) return std::nullopt;
    const Dim r = *factor;
    Dim &c = shape[shape.size() - 3], &h = shape[shape.size() - 2], &w = shape[shape.size() - 1];
    c = shuffles ? floor_div(c, r * r) : c * r * r;
    h = shuffles ? h * r : floor_div(h, r);
    w = shuffles ? w * r : floor_div(w, r);
    return shape;
  });
}

void rule_split(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const size_t count = n.found().size();
  const auto dim = self->shape ? n.dim("dim", self->shape->size()) : std::nullopt;
  std::optional<Shape> sizes;
  if (dim) {
    const Dim whole = (*self->shape)[*dim];
    if (n.op() == "split_with_sizes" || n.node().overload == Symbol("sizes")) {
      sizes = n.sizes(n.op() == "split_with_sizes" ? "split_sizes" : "split_size");
    } else {
      auto each = n.op() == "chunk" ? n.size("chunks") : n.size("split_size");
      if (each && n.op() == "chunk" && !each->is(0)) each = ceil_div(whole, *each);
      if (each) {
        sizes = Shape(count, *each);
        if (count > 0) sizes->back() = whole - *each * Dim(static_cast<int64_t>(count) - 1);
      }
    }
  }
  for (size_t i = 0; i < count; ++i) {
    MaybeShape shape = dim ? self->shape : std::nullopt;
    if (shape) (*shape)[*dim] = sizes && i < sizes->size() ? (*sizes)[i] : n.fresh();
    n.set(i, self->dtype, shape);
  }
}

void rule_unbind(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  MaybeShape shape = self->shape;
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim) shape->erase_at(static_cast<int64_t>(*dim));
  for (size_t i = 0; i < n.found().size(); ++i) n.set(i, self->dtype, dim ? shape : std::nullopt);
}

void rule_cat(TypeNode& n) {
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
    const bool stacks = n.op() == "stack";
    const auto dim = n.dim("dim", shape->size() + (stacks ? 1 : 0));
    if (!dim) return n.set(dtype, std::nullopt);
    if (stacks) {
      shape->insert_at(static_cast<int64_t>(*dim), Dim(static_cast<int64_t>(all.size())));
    } else {
      for (size_t i = 1; i < all.size(); ++i) {
        if (all[i]->shape->size() != shape->size()) return n.set(dtype, std::nullopt);
        (*shape)[*dim] = (*shape)[*dim] + (*all[i]->shape)[*dim];
      }
    }
  }
  n.set(dtype, shape);
}

void rule_arange(TypeNode& n) {
  const std::string_view overload = n.node().overload.view();
  const bool has_start = !overload.empty();
  const auto start = has_start ? n.size("start") : Dim(0), end = n.size("end");
  const auto step = overload == "start_step" ? n.size("step") : Dim(1);
  const auto is_float = [&](std::string_view name) {
    const AttrValue* given = n.args().constant(name);
    const Value* value = n.args().value(name);
    return given->get<double>() != nullptr || (value != nullptr && value->type.kind == Type::Kind::Float);
  };
  bool floats = is_float("end") || (has_start && is_float("start"));
  if (overload == "start_step") floats = floats || is_float("step");
  const DType dtype = n.given_dtype().value_or(floats ? DType::Float32 : DType::Int64);
  if (!start || !end || !step || step->is(0)) return n.set(dtype, Shape{n.fresh()});
  n.set(dtype, Shape{max(ceil_div(*end - *start, *step), Dim(0))});
}

void rule_full(TypeNode& n) {
  DType dtype = n.given_dtype().value_or(DType::Float32);
  if (n.op() == "full" && !n.given_dtype()) {
    const AttrValue* value = n.args().constant("fill_value");
    if (value->get<int64_t>()) dtype = DType::Int64;
    if (value->get<bool>()) dtype = DType::Bool;
  }
  if (n.op() == "scalar_tensor") return n.set(dtype, Shape());
  n.set(dtype, n.sizes("size"));
}

void rule_eye(TypeNode& n) {
  const auto rows = n.size("n");
  const auto columns = n.node().overload == Symbol("m") ? n.size("m") : rows;
  n.set(n.given_dtype().value_or(DType::Float32), rows && columns ? MaybeShape(Shape{*rows, *columns}) : std::nullopt);
}

void rule_window(TypeNode& n) {
  const auto length = n.size("window_length");
  n.set(n.given_dtype().value_or(DType::Float32), Shape{length ? *length : n.fresh()});
}

void rule_index_select(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    const Shape* index = n.shape("index");
    if (!dim || index == nullptr) return std::nullopt;
    shape[*dim] = count_of(*index);
    return shape;
  });
}

void rule_gather(TypeNode& n) {
  const Shape* index = n.shape("index");
  n.set(n.dtype("self"), index ? MaybeShape(*index) : std::nullopt);
}

void rule_index(TypeNode& n) {
  reshape_self(n, [&](const Shape& shape) -> MaybeShape {
    const auto indices = n.tensors("indices");
    if (indices.size() > shape.size()) return std::nullopt;
    Shape result, common;
    size_t first = 0, last = 0, at = 0;  // at: dimensions of `shape` that are used up
    bool any = false, is_split = false;
    std::vector<size_t> places;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Type* index = indices[i];
      if (index == nullptr) {
        ++at;
        continue;
      }
      if (!index->shape) return std::nullopt;
      if (index->dtype == DType::Bool || index->dtype == DType::UInt8) {
        if (indices.size() != 1) return std::nullopt;
        if (index->shape->size() > shape.size()) return std::nullopt;
        Shape rest(shape.begin() + static_cast<std::ptrdiff_t>(index->shape->size()), shape.end());
        rest.insert(rest.begin(), n.fresh());
        return rest;
      }
      const auto both = broadcast(common, *index->shape);
      if (!both) return std::nullopt;
      common = *both;
      if (!any) first = i;
      is_split = is_split || (any && i != last + 1);
      last = i;
      any = true;
      places.push_back(i);
      ++at;
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

void rule_nonzero(TypeNode& n) {
  const Shape* shape = n.shape("self");
  n.set(DType::Int64, shape ? MaybeShape(Shape{n.fresh(), Dim(static_cast<int64_t>(shape->size()))}) : std::nullopt);
}

void rule_masked_select(TypeNode& n) { n.set(n.dtype("self"), Shape{n.fresh()}); }

void rule_unique(TypeNode& n) {
  const Shape* shape = n.shape("self");
  const Dim count = n.fresh();
  if (n.op() == "unique_dim") {
    MaybeShape result = shape ? MaybeShape(*shape) : std::nullopt;
    const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
    if (dim) (*result)[*dim] = count;
    n.set(0, n.dtype("self"), dim ? result : std::nullopt);
    n.set(1, DType::Int64, dim ? MaybeShape(Shape{(*shape)[*dim]}) : std::nullopt);
    const bool counts = n.args().flag("return_counts");
    return n.set(2, DType::Int64, Shape{counts ? count : Dim(0)});
  }
  n.set(0, n.dtype("self"), Shape{count});
  const bool inverse = n.args().flag("return_inverse"), counts = n.args().flag("return_counts");
  n.set(1, DType::Int64, inverse ? (shape ? MaybeShape(*shape) : std::nullopt) : MaybeShape(Shape{Dim(0)}));
  n.set(2, DType::Int64, Shape{counts ? count : Dim(0)});
}

void rule_embedding(TypeNode& n) {
  const Shape *weight = n.shape("weight"), *indices = n.shape("indices");
  MaybeShape shape;
  if (weight && indices && !weight->empty()) {
    shape = *indices;
    shape->push_back(weight->back());
  }
  n.set(n.dtype("weight"), shape);
}

void rule_one_hot(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto classes = n.size("num_classes");
    shape.push_back(classes && !classes->is(-1) ? *classes : n.fresh());
    return shape;
  });
}

void rule_view_as_complex(TypeNode& n) {
  reshape_self(n, [](Shape shape) -> MaybeShape {
    if (!shape.empty()) shape.pop_back();
    return shape;
  });
  n.found()[0].dtype = n.dtype("self") == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

DType real_part(DType dtype) {
  return dtype == DType::Complex128 ? DType::Float64 : dtype == DType::Complex64 ? DType::Float32 : dtype;
}

void rule_real(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  MaybeShape shape = self->shape;
  if (shape && n.op() == "view_as_real") shape->push_back(Dim(2));
  n.set(real_part(self->dtype), shape);
}

constexpr TypeRow kRows[] = {
    {"to", rule_to},
    {"_to_copy", rule_to},
    {"type_as", rule_to},
    {"unsqueeze", rule_unsqueeze},
    {"squeeze", rule_squeeze},
    {"transpose", rule_transpose},
    {"swapaxes", rule_transpose},
    {"t", rule_transpose},
    {"mT", rule_transpose},
    {"permute", rule_permute},
    {"movedim", rule_movedim},
    {"flatten", rule_flatten},
    {"unflatten", rule_unflatten},
    {"reshape", rule_reshape},
    {"view", rule_reshape},
    {"expand", rule_expand},
    {"expand_as", rule_expand},
    {"broadcast_to", rule_expand},
    {"slice", rule_slice},
    {"narrow", rule_narrow},
    {"select", rule_select},
    {"unfold", rule_unfold},
    {"diagonal", rule_diagonal},
    {"repeat", rule_repeat},
    {"tile", rule_repeat},
    {"repeat_interleave", rule_repeat_interleave},
    {"pad", rule_pad},
    {"constant_pad_nd", rule_pad},
    {"pixel_shuffle", rule_pixel_shuffle},
    {"pixel_unshuffle", rule_pixel_shuffle},
    {"split", rule_split},
    {"split_with_sizes", rule_split},
    {"chunk", rule_split},
    {"unbind", rule_unbind},
    {"cat", rule_cat},
    {"stack", rule_cat},
    {"arange", rule_arange},
    {"zeros", rule_full},
    {"ones", rule_full},
    {"empty", rule_full},
    {"full", rule_full},
    {"rand", rule_full},
    {"randn", rule_full},
    {"scalar_tensor", rule_full},
    {"eye", rule_eye},
    {"hann_window", rule_window},
    {"hamming_window", rule_window},
    {"blackman_window", rule_window},
    {"index_select", rule_index_select},
    {"gather", rule_gather},
    {"take_along_dim", rule_gather},
    {"index", rule_index},
    {"nonzero", rule_nonzero},
    {"masked_select", rule_masked_select},
    {"_unique2", rule_unique},
    {"unique_dim", rule_unique},
    {"embedding", rule_embedding},
    {"one_hot", rule_one_hot},
    {"view_as_complex", rule_view_as_complex},
    {"view_as_real", rule_real},
    {"real", rule_real},
    {"imag", rule_real},
    {"scatter", rule_same},
    {"scatter_add", rule_same},
    {"scatter_reduce", rule_same},
    {"index_put", rule_same},
    {"index_add", rule_same},
    {"flip", rule_same},
    {"roll", rule_same},
    {"tril", rule_same},
    {"triu", rule_same},
    {"contiguous", rule_same},
};

}  // namespace

std::span<const TypeRow> move_type_rules() { return kRows; }

}  // namespace tonnx
