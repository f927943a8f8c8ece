// types.cpp - types of what reductions give.
#include <algorithm>

#include "ops/reduce/rows.h"

namespace tonnx {
namespace {

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

}  // namespace

DType summed_dtype(DType dtype) { return is_integer(dtype) || dtype == DType::Bool ? DType::Int64 : dtype; }

void types_sum(TypeNode& n) { n.set(n.given_dtype().value_or(summed_dtype(n.dtype("self"))), reduced(n, "dim")); }

void types_mean(TypeNode& n) { n.set(n.given_dtype().value_or(n.dtype("self")), reduced(n, "dim")); }

void types_logsumexp(TypeNode& n) {
  const DType dtype = n.dtype("self");
  n.set(is_float(dtype) || is_complex(dtype) ? dtype : DType::Float32, reduced(n, "dim"));
}

void types_truth(TypeNode& n) {
  n.set(n.dtype("self") == DType::UInt8 ? DType::UInt8 : DType::Bool, reduced(n, "dim"));
}

void types_place(TypeNode& n) { n.set(DType::Int64, reduced(n, "dim")); }

void types_extreme(TypeNode& n) {
  n.set(0, n.dtype("self"), reduced(n, "dim"));
  n.set(1, DType::Int64, reduced(n, "dim"));
}

void types_both_extremes(TypeNode& n) {
  n.set(0, n.dtype("self"), reduced(n, "dim"));
  n.set(1, n.dtype("self"), reduced(n, "dim"));
}

void types_with_mean(TypeNode& n) {
  n.set(0, n.dtype("self"), reduced(n, "dim"));
  n.set(1, n.dtype("self"), reduced(n, "dim"));
}

void types_distance(TypeNode& n) { n.set(n.joint_float({"self", "other"}), Shape()); }

void types_summed_to(TypeNode& n) { n.set(n.dtype("self"), n.sizes("size")); }

}  // namespace tonnx
