// types_reduce.cpp - types of what operators give that reduce, sort or accumulate along dimensions.
#include <algorithm>

#include "passes/aten/types.h"

namespace tonnx {
namespace {

using MaybeShape = std::optional<Shape>;

/// Where only the run tells which dimensions go away: as many as are left, of any size.
MaybeShape reduced_somewhere(TypeNode& n, const Shape& shape, std::string_view argument) {
  const Attribute* given = n.node().find_attribute(argument);
  const auto* list = given->value.get<AttrList>();
  const Value* one = n.args().value(argument);
  const bool is_one = one != nullptr && one->type.kind == Type::Kind::Int;
  const size_t gone = list ? list->size() : is_one ? 1 : shape.size() + 1;
  if (gone > shape.size()) return std::nullopt;
  Shape result;
  const bool keeps = n.args().signature().find_input("keepdim") >= 0 && n.args().flag("keepdim");
  for (size_t i = 0; i < shape.size() - (keeps ? 0 : gone); ++i) result.push_back(n.fresh());
  return result;
}

/// The shape of `self` without the dimensions that `argument` names, which stay as 1 where `keepdim` says so.
MaybeShape reduced(TypeNode& n, std::string_view argument) {
  const Shape* shape = n.shape("self");
  if (shape == nullptr) return std::nullopt;
  const ParsedSignature& signature = n.args().signature();
  const bool has_argument = signature.find_input(argument) >= 0;
  std::vector<int64_t> dims;
  if (has_argument && n.args().has(argument)) {
    const auto given = n.args().find_ints(argument);
    if (!given) return reduced_somewhere(n, *shape, argument);
    dims = *given;
  } else if (has_argument && !n.args().constant(argument)->is_none()) {  // the default of the schema
    dims = n.args().find_ints(argument).value_or(std::vector<int64_t>());
  }
  const bool keeps = signature.find_input("keepdim") >= 0 && n.args().flag("keepdim");
  const auto rank = static_cast<int64_t>(shape->size());
  Shape result;
  for (int64_t i = 0; i < rank; ++i) {
    const bool is_gone =
        dims.empty() || std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return d == i || d == i - rank; });
    if (!is_gone) result.push_back((*shape)[static_cast<size_t>(i)]);
    if (is_gone && keeps) result.push_back(Dim(1));
  }
  return result;
}

DType summed(DType dtype) { return is_integer(dtype) || dtype == DType::Bool ? DType::Int64 : dtype; }

void rule_sum(TypeNode& n) { n.set(n.given_dtype().value_or(summed(n.dtype("self"))), reduced(n, "dim")); }
void rule_mean(TypeNode& n) { n.set(n.given_dtype().value_or(n.dtype("self")), reduced(n, "dim")); }
void rule_truth(TypeNode& n) { n.set(n.dtype("self") == DType::UInt8 ? DType::UInt8 : DType::Bool, reduced(n, "dim")); }
void rule_place(TypeNode& n) { n.set(DType::Int64, reduced(n, "dim")); }

/// max, min: with a dimension the values and their places, without one the value alone.
void rule_extreme(TypeNode& n) {
  if (n.node().overload == Symbol("other")) {
    const Shape *a = n.shape("self"), *b = n.shape("other");
    return n.set(n.dtype("self"), a && b ? broadcast(*a, *b) : std::nullopt);
  }
  n.set(0, n.dtype("self"), reduced(n, "dim"));
  n.set(1, n.op() == "aminmax" ? n.dtype("self") : DType::Int64, reduced(n, "dim"));
}

void rule_accumulate(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(0, n.given_dtype().value_or(summed(self->dtype)), self->shape);
}

void rule_accumulate_extreme(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(0, self->dtype, self->shape);
  n.set(1, DType::Int64, self->shape);
}

void rule_softmax(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self != nullptr) n.set(n.given_dtype().value_or(self->dtype), self->shape);
}

void rule_argsort(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self != nullptr) n.set(DType::Int64, self->shape);
}

void rule_topk(TypeNode& n) {
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

void rule_norm(TypeNode& n) { n.set(n.given_dtype().value_or(n.dtype("self")), reduced(n, "dim")); }

void rule_frexp(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  n.set(0, self->dtype, self->shape);
  n.set(1, DType::Int32, self->shape);
}

void rule_bucketize(TypeNode& n) {
  const Type* values = n.tensor("self");
  const bool is_int32 = n.args().flag("out_int32");
  if (values != nullptr) n.set(is_int32 ? DType::Int32 : DType::Int64, values->shape);
}

constexpr TypeRow kRows[] = {
    {"sum", rule_sum},
    {"nansum", rule_sum},
    {"prod", rule_sum},
    {"mean", rule_mean},
    {"amax", rule_mean},
    {"amin", rule_mean},
    {"var", rule_mean},
    {"std", rule_mean},
    {"logsumexp", rule_mean},
    {"median", rule_extreme},
    {"linalg_vector_norm", rule_norm},
    {"norm", rule_norm},
    {"all", rule_truth},
    {"any", rule_truth},
    {"argmax", rule_place},
    {"argmin", rule_place},
    {"count_nonzero", rule_place},
    {"max", rule_extreme},
    {"min", rule_extreme},
    {"aminmax", rule_extreme},
    {"mode", rule_extreme},
    {"cumsum", rule_accumulate},
    {"cumprod", rule_accumulate},
    {"cummax", rule_accumulate_extreme},
    {"cummin", rule_accumulate_extreme},
    {"sort", rule_accumulate_extreme},
    {"argsort", rule_argsort},
    {"topk", rule_topk},
    {"kthvalue", rule_extreme},
    {"softmax", rule_softmax},
    {"log_softmax", rule_softmax},
    {"frexp", rule_frexp},
    {"bucketize", rule_bucketize},
    {"searchsorted", rule_bucketize},
};

}  // namespace

std::span<const TypeRow> reduce_type_rules() { return kRows; }

}  // namespace tonnx
