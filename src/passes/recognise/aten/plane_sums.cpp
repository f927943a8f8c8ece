// plane_sums.cpp - computes with sums of elements of a plane in place of numbers.
#include "passes/recognise/aten/plane_sums.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/computed.h"
#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

using Sums = std::optional<PlaneSums>;
constexpr int64_t kMostElements = 1 << 16;  // of a constant

/// The sizes from a dimension on; nothing where one is not known.
std::optional<std::vector<int64_t>> sizes_from(const Value& value, size_t first) {
  if (!value.type.shape || value.type.shape->size() < first) return std::nullopt;
  std::vector<int64_t> sizes;
  for (size_t i = first; i < value.type.shape->size(); ++i) {
    const auto size = (*value.type.shape)[i].constant();
    if (!size || *size < 1) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

int64_t product_of(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes)
    product = product > kMostElements ? product : product * std::min(size, kMostElements);
  return product;
}

std::vector<int64_t> list_of(const Node& node, std::string_view argument) {
  const Attribute* found = node.find_attribute(argument);
  const auto* all = found ? found->value.get<std::vector<int64_t>>() : nullptr;
  return all ? *all : std::vector<int64_t>();
}

/// The indices of an element.
std::vector<int64_t> indices_of(int64_t element, const std::vector<int64_t>& dims) {
  std::vector<int64_t> indices(dims.size());
  for (size_t i = dims.size(); i-- > 0; element /= dims[i]) indices[i] = element % dims[i];
  return indices;
}

/// The element of a tensor that is stretched to more dimensions, and along those of size 1.
int64_t stretched(const std::vector<int64_t>& indices, const std::vector<int64_t>& dims) {
  int64_t element = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    element = element * dims[i] + (dims[i] == 1 ? 0 : indices[indices.size() - dims.size() + i]);
  return element;
}

/// Whether a tensor can be stretched to these sizes; ones in front of them are dropped.
bool stretch_to(std::vector<int64_t>& dims, const std::vector<int64_t>& to) {
  while (dims.size() > to.size() && dims[0] == 1) dims.erase(dims.begin());
  if (dims.size() > to.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1 && dims[i] != to[to.size() - dims.size() + i]) return false;
  }
  return true;
}

bool is_readable(const Value* value) {
  return value != nullptr && value->constant && !value->sparse && !is_computed(value->constant->data);
}

/// The numbers of a constant, one for each element of the sums.
std::optional<std::vector<double>> numbers_for(const PlaneSums& sums, const Value* value) {
  if (!is_readable(value) || !sums.is_in_order()) return std::nullopt;
  std::vector<int64_t> dims = value->constant->dims;
  const auto numbers = floats_of(*value->constant, kMostElements);
  if (!numbers || !stretch_to(dims, sums.dims)) return std::nullopt;
  std::vector<double> result;
  for (size_t i = 0; i < sums.sums.size(); ++i) {
    const std::vector<int64_t> indices = indices_of(static_cast<int64_t>(i), sums.dims);
    result.push_back((*numbers)[static_cast<size_t>(stretched(indices, dims))]);
  }
  return result;
}

PlaneSums::Sum added(const PlaneSums::Sum& a, const PlaneSums::Sum& b) {
  std::map<int64_t, double> all(a.begin(), a.end());
  for (const auto& [place, weight] : b) all[place] += weight;
  return {all.begin(), all.end()};
}

/// Those elements of which the condition says so; zeros elsewhere.
Sums chosen(PlaneSums sums, const Value* condition, bool kept) {
  const auto flags = numbers_for(sums, condition);
  if (!flags) return std::nullopt;
  for (size_t i = 0; i < flags->size(); ++i) {
    if (((*flags)[i] != 0) != kept) sums.sums[i].clear();
  }
  return sums;
}

Sums scaled(PlaneSums sums, const Value* by, bool divides) {
  const auto factors = numbers_for(sums, by);
  if (!factors) return std::nullopt;
  for (size_t i = 0; i < factors->size(); ++i) {
    for (auto& [place, weight] : sums.sums[i]) weight = divides ? weight / (*factors)[i] : weight * (*factors)[i];
  }
  return sums;
}

/// The dimension of a tensor whose sums these are as one of `dims`; nothing for one in front of the plane.
std::optional<size_t> plane_dim(const PlaneSums& sums, int64_t dim) {
  const auto rank = static_cast<int64_t>(sums.axes.size());
  if (dim < 0) dim += rank;
  if (!sums.is_in_order() || dim < static_cast<int64_t>(sums.lead) || dim >= rank) return std::nullopt;
  return static_cast<size_t>(dim) - sums.lead;
}

void set_dims(PlaneSums& sums, std::vector<int64_t> dims) {
  sums.dims = std::move(dims);
  sums.axes.resize(sums.lead + sums.dims.size());
  std::iota(sums.axes.begin(), sums.axes.end(), size_t{0});
}

/// One of the elements along a dimension.
Sums selected(const PlaneSums& sums, int64_t of, int64_t index) {
  const auto dim = plane_dim(sums, of);
  if (!dim || index < 0 || index >= sums.dims[*dim]) return std::nullopt;
  PlaneSums result = sums;
  result.sums.clear();
  for (size_t i = 0; i < sums.sums.size(); ++i) {
    if (indices_of(static_cast<int64_t>(i), sums.dims)[*dim] == index) result.sums.push_back(sums.sums[i]);
  }
  std::vector<int64_t> dims = sums.dims;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(*dim));
  set_dims(result, std::move(dims));
  return result;
}

/// The sum or the mean along dimensions, which are kept with size 1 or not.
Sums reduced(const PlaneSums& sums, const std::vector<int64_t>& along, bool keeps, bool is_mean) {
  std::vector<bool> is_reduced(sums.dims.size());
  for (const int64_t each : along) {
    const auto dim = plane_dim(sums, each);
    if (!dim) return std::nullopt;
    is_reduced[*dim] = true;
  }
  std::vector<int64_t> kept = sums.dims, rest;
  int64_t count = 1;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (is_reduced[i]) count *= std::exchange(kept[i], 1);
    if (!is_reduced[i] || keeps) rest.push_back(kept[i]);
  }
  std::vector<std::map<int64_t, double>> totals(static_cast<size_t>(product_of(kept)));
  for (size_t i = 0; i < sums.sums.size(); ++i) {
    auto& into = totals[static_cast<size_t>(stretched(indices_of(static_cast<int64_t>(i), sums.dims), kept))];
    for (const auto& [place, weight] : sums.sums[i]) into[place] += weight;
  }
  PlaneSums result = sums;
  result.sums.clear();
  for (const auto& total : totals) {
    PlaneSums::Sum& sum = result.sums.emplace_back(total.begin(), total.end());
    for (auto& [place, weight] : sum) weight /= is_mean ? static_cast<double>(count) : 1.0;
  }
  set_dims(result, std::move(rest));
  return result;
}

/// The same elements with other dimensions; those in front of the plane stay.
Sums reshaped(PlaneSums sums, const Value& to) {
  auto dims = sizes_from(to, sums.lead);
  if (!sums.is_in_order() || !dims || product_of(*dims) != static_cast<int64_t>(sums.sums.size())) return std::nullopt;
  const auto lead = static_cast<std::ptrdiff_t>(sums.lead);
  const Shape& from = *sums.of->type.shape;
  if (!std::equal(from.begin(), from.begin() + lead, to.type.shape->begin())) return std::nullopt;
  set_dims(sums, std::move(*dims));
  return sums;
}

Sums permuted(PlaneSums sums, const std::vector<int64_t>& order) {
  if (order.size() != sums.axes.size()) return std::nullopt;
  std::vector<size_t> axes;
  for (const int64_t from : order) {
    if (from < 0 || from >= static_cast<int64_t>(order.size())) return std::nullopt;
    axes.push_back(sums.axes[static_cast<size_t>(from)]);
  }
  sums.axes = std::move(axes);
  return sums;
}

struct IndexNumbers {
  std::vector<int64_t> dims, numbers;
};

/// A constant, or one of the elements along the last dimension of one.
std::optional<IndexNumbers> index_numbers(const Value* value) {
  const Node* part = value ? value->producer : nullptr;
  const bool is_select = is_aten(part, "select", "int");
  if (part && !is_select && !is_aten(part, "unbind", "int")) return std::nullopt;
  const Value* whole = part ? operand(*part, "self") : value;
  if (!is_readable(whole) || whole->constant->dtype != DType::Int64) return std::nullopt;
  const auto numbers = ints_of(*whole->constant, kMostElements);
  Ints dims = whole->constant->dims;
  if (!numbers || !part) return numbers ? std::optional(IndexNumbers{dims, *numbers}) : std::nullopt;
  const int64_t *dim = find_int(*part, "dim"), *chosen = is_select ? find_int(*part, "index") : nullptr;
  const int64_t index = chosen ? *chosen : is_select ? -1 : value->output_index, size = dims.empty() ? 0 : dims.back();
  if (!dim || (*dim != -1 && *dim + 1 != static_cast<int64_t>(dims.size())) || index < 0 || index >= size)
    return std::nullopt;
  std::vector<int64_t> kept;
  for (size_t i = static_cast<size_t>(index); i < numbers->size(); i += static_cast<size_t>(size))
    kept.push_back((*numbers)[i]);
  dims.pop_back();
  return IndexNumbers{dims, kept};
}

}  // namespace

bool only_reshapes(const Node& node) {
  return node.domain == "aten" && (node.op == "reshape" || node.op == "view" || node.op == "flatten" ||
                                   node.op == "unflatten" || node.op == "squeeze" || node.op == "unsqueeze");
}

bool PlaneSums::is_in_order() const {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != i) return false;
  }
  return true;
}

const PlaneSums* PlaneSumsFinder::known(const Value* value) const {
  const auto at = known_.find(value);
  return at == known_.end() ? nullptr : &at->second;
}

/// What the indices of a node look for: 1. x.flatten(2)[:, :, places] and x[:, :, places], in the last dimensions
/// 2. x.permute(2, 3, 0, 1)[rows, columns], in the first ones
Sums PlaneSumsFinder::planes_of(const Node& node, size_t before, size_t count) const {
  Value* from = operand(node, "self");
  if (from == nullptr || !from->type.shape || from->type.shape->size() < before + count) return std::nullopt;
  const size_t rank = from->type.shape->size();
  const Node* moved = from->producer && from->producer->graph == &graph_ ? from->producer : nullptr;
  PlaneSums sums{.of = from, .lead = rank - count};
  if (before == 0) {
    const std::vector<int64_t> order = is_aten(moved, "permute") ? list_of(*moved, "dims") : std::vector<int64_t>();
    if (order.size() != rank) return std::nullopt;
    for (size_t i = 0; i < rank; ++i) {
      if (order[i] != static_cast<int64_t>(i < count ? rank - count + i : i - count)) return std::nullopt;
    }
    sums.of = operand(*moved, "self");
  } else if (before != sums.lead) {
    return std::nullopt;
  } else if (moved && only_reshapes(*moved) && count == 1) {
    Value* plane = operand(*moved, "self");
    const bool fits = plane && plane->type.shape && plane->type.shape->size() > rank &&
                      std::equal(from->type.shape->begin(), from->type.shape->end() - 1, plane->type.shape->begin());
    if (fits) sums.of = plane;
  }
  const bool is_image = sums.of && (sums.lead == 1 || sums.lead == 2) && sums.of->type.shape &&
                        sums.of->type.shape->size() - sums.lead <= 3;
  return is_image ? std::optional(sums) : std::nullopt;
}

Sums PlaneSumsFinder::gathered(const Node& node) const {
  const Attribute* given = node.find_attribute("indices");
  const auto* list = given ? given->value.get<AttrList>() : nullptr;
  if (list == nullptr || list->empty()) return std::nullopt;
  const auto first = std::find_if(list->begin(), list->end(), [](const AttrValue& each) { return !each.is_none(); });
  const auto before = static_cast<size_t>(first - list->begin()), count = list->size() - before;
  Sums sums = planes_of(node, before, count);
  auto sizes = sums ? sizes_from(*sums->of, sums->lead) : std::nullopt;
  if (!sizes) return std::nullopt;
  if (count == 1) sizes = {product_of(*sizes)};
  std::vector<IndexNumbers> indices;
  for (auto each = first; each != list->end(); ++each) {
    const auto* at = each->get<Operand>();
    auto numbers = at ? index_numbers(node.input(at->index)) : std::nullopt;
    if (!numbers || (!indices.empty() && numbers->dims != indices[0].dims)) return std::nullopt;
    indices.push_back(std::move(*numbers));
  }
  for (size_t i = 0; i < indices[0].numbers.size(); ++i) {
    int64_t place = 0;
    for (size_t k = 0; k < count; ++k) {
      const int64_t index = indices[k].numbers[i], size = (*sizes)[k];
      if (index < -size || index >= size) return std::nullopt;
      place = place * size + (index < 0 ? index + size : index);
    }
    sums->sums.push_back({{place, 1.0}});
  }
  set_dims(*sums, indices[0].dims);
  const auto lead = static_cast<std::ptrdiff_t>(sums->lead);
  if (before == 0) std::rotate(sums->axes.begin(), sums->axes.begin() + lead, sums->axes.end());
  return sums;
}

Sums PlaneSumsFinder::made_by(const Node& node) const {
  if (node.domain != "aten" || node.outputs().size() != 1) return std::nullopt;
  if (is_aten(node, "index", "Tensor")) return gathered(node);
  if (known_.empty()) return std::nullopt;
  Value *self = operand(node, "self"), *other = operand(node, "other");
  if (is_aten(node, "where", "ScalarOther") && known(self) && is_number(node, "other", 0))
    return chosen(*known(self), operand(node, "condition"), true);
  if (is_aten(node, "where", "ScalarSelf") && known(other) && is_number(node, "self", 0))
    return chosen(*known(other), operand(node, "condition"), false);
  const PlaneSums* sums = known(self);
  if (sums == nullptr) return std::nullopt;
  if (is_aten(node, "masked_fill", "Scalar") && is_number(node, "value", 0))
    return chosen(*sums, operand(node, "mask"), false);
  if (is_aten(node, "mul", "Tensor") || is_aten(node, "div", "Tensor")) return scaled(*sums, other, node.op == "div");
  if (only_reshapes(node)) return reshaped(*sums, *node.output(0));
  if (is_aten(node, "permute")) return permuted(*sums, list_of(node, "dims"));
  if (is_aten(node, "select", "int") && find_int(node, "dim") && find_int(node, "index"))
    return selected(*sums, *find_int(node, "dim"), *find_int(node, "index"));
  if (is_aten(node, "mean", "dim") || is_aten(node, "sum", "dim_IntList")) {
    const Attribute* keeps = node.find_attribute("keepdim");
    const bool* flag = keeps ? keeps->value.get<bool>() : nullptr;
    return reduced(*sums, list_of(node, "dim"), flag && *flag, node.op == "mean");
  }
  const PlaneSums* more = known(other);
  if (!is_aten(node, "add", "Tensor") || node.find_attribute("alpha") || !more || more->of != sums->of ||
      more->lead != sums->lead || more->axes != sums->axes || more->dims != sums->dims)
    return std::nullopt;
  PlaneSums result = *sums;
  for (size_t i = 0; i < result.sums.size(); ++i) result.sums[i] = added(result.sums[i], more->sums[i]);
  return result;
}

const PlaneSums* PlaneSumsFinder::find(const Node& node) {
  Sums made = made_by(node);
  if (!made || made->sums.empty()) return nullptr;
  size_t places = 0;
  for (const PlaneSums::Sum& sum : made->sums) places += sum.size() + 1;
  if (places > room_) return nullptr;
  room_ -= places;
  return &known_.emplace(node.output(0), std::move(*made)).first->second;
}

}  // namespace tonnx
