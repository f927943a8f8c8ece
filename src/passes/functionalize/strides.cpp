// strides.cpp - where the elements of views lie in memory, as far as symbolic sizes tell.
#include <algorithm>

#include "passes/functionalize/views.h"

namespace tonnx {
namespace {

const Attribute* find_argument(const AtenCall& call, std::string_view name) {
  for (const Attribute& attribute : call.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

/// An argument that is a number, counted from the front where it is a dimension of `rank` ones.
std::optional<int64_t> number(const AtenCall& call, std::string_view name, int64_t otherwise) {
  const Attribute* found = find_argument(call, name);
  if (found == nullptr) return otherwise;
  const auto* given = found->value.get<int64_t>();
  return given ? std::optional(*given) : std::nullopt;
}

std::optional<size_t> dimension(const AtenCall& call, std::string_view name, int64_t otherwise, size_t rank) {
  const auto given = number(call, name, otherwise);
  const auto count = static_cast<int64_t>(rank);
  if (!given || *given < -count || *given >= count) return std::nullopt;
  return static_cast<size_t>(*given < 0 ? *given + count : *given);
}

/// Of as_strided: those that it asks for, whatever it looks at.
std::optional<Strides> asked_strides(const View& view) {
  const Attribute* given = find_argument(view.call, "stride");
  const auto* all = given ? given->value.get<std::vector<int64_t>>() : nullptr;
  return all ? std::optional(Strides(all->begin(), all->end())) : std::nullopt;
}

std::optional<Strides> part_strides(const View& view, Strides strides) {
  if (view.rule == ViewRule::Diagonal) {
    const auto a = dimension(view.call, "dim1", 0, strides.size()), b = dimension(view.call, "dim2", 1, strides.size());
    if (!a || !b || *a == *b) return std::nullopt;
    const Dim both = strides[*a] + strides[*b];
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(std::max(*a, *b)));
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(std::min(*a, *b)));
    strides.push_back(both);
    return strides;
  }
  const auto dim = dimension(view.call, "dim", 0, strides.size());
  if (!dim) return std::nullopt;
  if (view.rule == ViewRule::Select) {
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(*dim));
    return strides;
  }
  const auto step = number(view.call, "step", 1);
  if (view.rule != ViewRule::Slice || !step) return std::nullopt;
  if (*step != 1) strides[*dim] = strides[*dim] * Dim(*step);
  return strides;
}

/// Of views that nothing is written through, but which a reshape behind them may have to copy.
std::optional<Strides> other_strides(const View& view, const Shape& of, Strides strides) {
  if (view.rule == ViewRule::Unfold) {
    const auto dim = dimension(view.call, "dimension", 0, strides.size());
    const auto step = number(view.call, "step", 1);
    if (!dim || !step) return std::nullopt;
    strides.push_back(strides[*dim]);
    strides[*dim] = strides[*dim] * Dim(*step);
    return strides;
  }
  const bool fits = view.type.shape && view.type.shape->size() >= of.size();
  if (view.rule != ViewRule::Expand || !fits) return std::nullopt;
  const size_t added = view.type.shape->size() - of.size();
  Strides result(added, Dim(0));
  for (size_t i = 0; i < of.size(); ++i) {
    const bool repeats = of[i].is(1) && !(*view.type.shape)[i + added].is(1);
    result.push_back(repeats ? Dim(0) : strides[i]);
  }
  return result;
}

/// The sign of the difference; nothing where it depends on what symbols stand for. Strides that are rows of rows of
/// others divide.
std::optional<int> order_of(const Dim& a, const Dim& b) {
  if (a == b) return 0;
  if (const auto x = a.constant(), y = b.constant(); x && y) return *x < *y ? -1 : 1;
  if (!b.is(0) && exact_div(a, b)) return 1;
  if (!a.is(0) && exact_div(b, a)) return -1;
  return std::nullopt;
}

/// Whether a dimension lies outside of another in the first tensor that tells: 1, or -1 where it lies inside, or 0.
std::optional<int> lies_outside(size_t dim, size_t other, const Shape& shape, const std::vector<Strides>& of) {
  if (shape[dim].is(1) || shape[other].is(1)) return 0;
  for (const Strides& strides : of) {
    if (strides[dim].is(0) || strides[other].is(0)) continue;
    auto sign = order_of(strides[dim], strides[other]);
    if (sign == 0) {  // the elements overlap: the longer one is outside
      sign = order_of(shape[dim], shape[other]);
      if (sign == -1) sign = 0;
    }
    if (!sign || *sign != 0) return sign;
  }
  return 0;
}

}  // namespace

std::optional<Strides> dense_strides(const Type& type) {
  if (!type.shape) return std::nullopt;
  Strides strides(type.shape->size());
  Dim count = 1;
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = count;
    count = count * (*type.shape)[i];
  }
  return strides;
}

std::optional<Strides> reshape_strides(const Shape& from, const Strides& strides, const Shape& to) {
  if (from.size() != strides.size()) return std::nullopt;
  Strides result(to.size(), Dim(1));
  if (from.empty()) return result;
  size_t left = to.size();  // dimensions of the new shape that are not placed yet, from the back
  Dim base = strides.back(), held = 1;
  // runs of dimensions that lie behind each other in memory; each has to be a run of new dimensions
  for (size_t d = from.size(); d-- > 0;) {
    held = held * from[d];
    const bool goes_on = d > 0 && (from[d - 1].is(1) || strides[d - 1] == held * base);
    if (goes_on) continue;
    Dim placed = 1;
    while (left > 0 && (!(placed == held) || to[left - 1].is(1))) {
      --left;
      result[left] = placed * base;
      placed = placed * to[left];
    }
    if (!(placed == held)) return std::nullopt;
    if (d > 0) base = strides[d - 1];
    held = 1;
  }
  return left == 0 ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<Strides> kept_strides(const Type& type, const std::vector<Strides>& of) {
  if (!type.shape) return std::nullopt;
  const Shape& shape = *type.shape;
  std::vector<size_t> order(shape.size());  // from the innermost dimension to the outermost
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  // PyTorch's own steps, as what lies nowhere in particular makes the outcome depend on them
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t k = i; k-- > 0;) {
      const auto turned = lies_outside(order[k], order[at], shape, of);
      if (!turned) return std::nullopt;
      if (*turned < 0) break;
      if (*turned == 0) continue;
      std::swap(order[k], order[at]);
      at = k;
    }
  }
  Strides result(shape.size());
  Dim count = 1;
  for (const size_t dim : order) {
    result[dim] = count;
    count = count * shape[dim];
  }
  return result;
}

std::optional<Strides> view_strides(const View& view, const Type& of, const std::optional<Strides>& strides) {
  if (view.rule == ViewRule::AsStrided) return asked_strides(view);
  if (!strides || !of.shape || of.shape->size() != strides->size()) return std::nullopt;
  Strides result;
  switch (view.kind) {
    case View::Kind::Merged:
    case View::Kind::Same: return strides;
    case View::Kind::Scatter: return part_strides(view, *strides);
    case View::Kind::Reshape:
      return view.type.shape ? reshape_strides(*of.shape, *strides, *view.type.shape) : std::nullopt;
    case View::Kind::Permute:
      for (const int64_t dim : view.dims) result.push_back((*strides)[static_cast<size_t>(dim)]);
      return result;
    case View::Kind::Squeeze:
      for (size_t i = 0; i < strides->size(); ++i) {
        const bool is_gone = std::find(view.dims.begin(), view.dims.end(), static_cast<int64_t>(i)) != view.dims.end();
        if (!is_gone) result.push_back((*strides)[i]);
      }
      return result;
    case View::Kind::Unsqueeze: {
      // PyTorch's own stride of the new dimension; it matters to nobody, as reshape skips sizes of 1
      const auto at = static_cast<size_t>(view.dims[0]);
      result = *strides;
      const Dim own = at < strides->size() ? (*of.shape)[at] * (*strides)[at] : Dim(1);
      result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), own);
      return result;
    }
    case View::Kind::Expanded:
    case View::Kind::Windows:
    case View::Kind::Opaque: return other_strides(view, *of.shape, *strides);
    default: return std::nullopt;
  }
}

}  // namespace tonnx
