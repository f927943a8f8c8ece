// sort_raise.cpp - PyTorch's sorting, and what is found by it, as ONNX.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/frame/aten_types.h"
#include "ops/move/rows.h"
#include "ops/reduce/rows.h"
#include "ops/search/rows.h"

namespace tonnx {
namespace {

struct Sorted {
  Value* values;
  Value* places;
};

/// The first `count` in that order. Of equal elements the one in front comes first, in ONNX as in PyTorch's stable
/// sort.
Sorted top(OnnxBuilder& onnx, Value* x, const IntArg& count, int64_t axis, bool largest) {
  const DType own = onnx.dtype(x);
  const Values all = onnx.all(2, "TopK", {onnx.cast(x, kernel_dtype("TopK", own)), onnx.list(count)},
                              {{"axis", axis}, {"largest", static_cast<int64_t>(largest)}});
  return {onnx.cast(all[0], own), all[1]};
}

Sorted sorted(OnnxBuilder& onnx, Value* x, int64_t axis, bool descending) {
  if (onnx.rank(x) == 0) return {x, onnx.integer(DType::Int64, 0)};
  if (element_count(onnx.shape(x)) == 0) return {x, broadcast(onnx, onnx.integer(DType::Int64, 0), onnx.shape(x))};
  return top(onnx, x, onnx.size(x, axis), axis, descending);
}

Value* nan(OnnxBuilder& onnx, DType dtype) { return onnx.number(dtype, std::numeric_limits<double>::quiet_NaN()); }

/// Whether one along the axis is NaN, which stays as one of size 1.
Value* any_nan(OnnxBuilder& onnx, Value* x, int64_t axis) {
  Value* flags = onnx.cast(onnx("IsNaN", {x}), DType::Int32);
  return onnx.cast(onnx.reduce("ReduceMax", flags, {axis}, true), DType::Bool);
}

Value* dropped(OnnxBuilder& onnx, Value* x, int64_t axis, bool keeps) { return keeps ? x : onnx.squeeze(x, {axis}); }

/// The lower of the two in the middle; NaN where one is.
Sorted median_of(OnnxBuilder& onnx, Value* x, int64_t axis) {
  const IntArg count = onnx.floor_div(onnx.add(onnx.size(x, axis), 1), 2);
  const Sorted half = top(onnx, x, count, axis, false);
  Sorted middle{onnx.slice(half.values, axis, -1, kEnd), onnx.slice(half.places, axis, -1, kEnd)};
  if (!is_float(onnx.dtype(x))) return middle;
  const DType kernel = kernel_dtype("TopK", onnx.dtype(x));
  x = onnx.cast(x, kernel);
  Value* is_nan = any_nan(onnx, x, axis);
  Value* values = onnx.where(is_nan, nan(onnx, kernel), onnx.cast(middle.values, kernel));
  middle.values = onnx.cast(values, onnx.dtype(middle.values));
  Value* first = onnx("ArgMax", {onnx.cast(onnx("IsNaN", {x}), DType::Int32)}, {{"axis", axis}});
  middle.places = onnx.where(is_nan, first, middle.places);
  return middle;
}

/// The same of those that are not NaN; NaN where all are.
Sorted nanmedian_of(OnnxBuilder& onnx, Value* x, int64_t axis) {
  const DType own = onnx.dtype(x);
  if (!is_float(own)) return median_of(onnx, x, axis);
  const DType kernel = kernel_dtype("TopK", own);
  x = onnx.cast(x, kernel);
  Value* is_nan = onnx("IsNaN", {x});
  Value* filled = onnx.where(is_nan, onnx.number(kernel, std::numeric_limits<double>::infinity()), x);
  const Sorted all = top(onnx, filled, onnx.size(x, axis), axis, false);
  Value* counted = onnx.cast(onnx("Not", {is_nan}), DType::Int64);
  Value* count = onnx.reduce("ReduceSum", counted, {axis}, true);
  Value* one = onnx.integer(DType::Int64, 1);
  Value* last = onnx("Max", {onnx("Sub", {count, one}), onnx.integer(DType::Int64, 0)});
  Value* place = onnx("Div", {last, onnx.integer(DType::Int64, 2)});
  Value* value = onnx("GatherElements", {all.values, place}, {{"axis", axis}});
  Value* found = onnx("GatherElements", {all.places, place}, {{"axis", axis}});
  value = onnx.where(onnx.cast(count, DType::Bool), value, nan(onnx, kernel));
  return {onnx.cast(value, own), found};
}

using SortedFn = Sorted (*)(OnnxBuilder&, Value*, int64_t);

Values along_dim(const AtenNode& n, OnnxBuilder& onnx, SortedFn find) {
  const int64_t dim = n.dim("dim", "self");
  const bool keeps = n.flag("keepdim");
  if (n.rank("self") == 0) return {n.input("self"), onnx.integer(DType::Int64, 0)};
  const Sorted found = find(onnx, n.input("self"), dim);
  return {dropped(onnx, found.values, dim, keeps),
          n.wants_output(1) ? dropped(onnx, found.places, dim, keeps) : nullptr};
}

Values of_all(const AtenNode& n, OnnxBuilder& onnx, SortedFn find) {
  if (n.rank("self") == 0) return n.input("self");
  if (element_count(n.shape("self")) == 0) n.cannot("the median of nothing");
  return onnx.squeeze(find(onnx, flat(onnx, n.input("self")), 0).values, {0});
}

/// The most frequent value, the least of those that are equally frequent; and where it is last.
Sorted mode_of(OnnxBuilder& onnx, Value* x, int64_t axis) {
  const DType own = onnx.dtype(x);
  const int64_t rank = onnx.rank(x);
  const DType kernel = kernel_dtype("TopK", own);
  x = onnx.transpose(onnx.cast(x, kernel), moved_axis(rank, axis, rank - 1));
  Value* equal = onnx("Equal", {onnx.unsqueeze(x, {rank}), onnx.unsqueeze(x, {rank - 1})});
  Value* counts = onnx.reduce("ReduceSum", onnx.cast(equal, DType::Int64), {rank}, false);
  Value* most = onnx.reduce("ReduceMax", counts, {rank - 1}, true);
  Value* is_most = onnx("Equal", {counts, most});
  Value* highest = onnx.reduce("ReduceMax", x, {rank - 1}, true);
  Value* value = onnx.reduce("ReduceMin", onnx.where(is_most, x, highest), {rank - 1}, true);
  Value* is_value = onnx.cast(onnx("Equal", {x, value}), DType::Int32);
  Value* place = onnx("ArgMax", {is_value}, {{"axis", rank - 1}, {"select_last_index", int64_t{1}}});
  const std::vector<int64_t> back = moved_axis(rank, rank - 1, axis);
  return {onnx.cast(onnx.transpose(value, back), own), onnx.transpose(place, back)};
}

}  // namespace

Values raise_sort(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.node().overload.view() == "stable") n.ignore({"stable"});
  const Sorted all = sorted(onnx, n.input("self"), n.dim("dim", "self"), n.flag("descending"));
  return {all.values, all.places};
}

Values raise_argsort(const AtenNode& n, OnnxBuilder& onnx) { return raise_sort(n, onnx)[1]; }

namespace {

Values raise_msort(const AtenNode& n, OnnxBuilder& onnx) { return sorted(onnx, n.input("self"), 0, false).values; }

Values raise_topk(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"sorted"});
  const int64_t dim = n.dim("dim", "self");
  const IntArg k = n.int_arg("k");
  Value* x = n.input("self");
  const bool largest = n.flag("largest");
  if (n.rank("self") == 0) {
    if (!k.is(1)) n.cannot("topk of one number");
    return {x, onnx.integer(DType::Int64, 0)};
  }
  if (element_count(n.output_shape()) == 0)
    return {filled(onnx, onnx.ints_of(n.output_shape()), n.dtype("self"), 0),
            filled(onnx, onnx.ints_of(n.output_shape()), DType::Int64, 0)};
  const Sorted found = top(onnx, x, k, dim, largest);
  return {found.values, found.places};
}

Values raise_kthvalue(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  const IntArg k = n.int_arg("k");
  const bool keeps = n.flag("keepdim");
  Value* x = n.input("self");
  if (n.rank("self") == 0) return {x, onnx.integer(DType::Int64, 0)};
  const Sorted first = top(onnx, x, k, dim, false);
  Value* last = keeps ? onnx.ints({-1}) : onnx.integer(DType::Int64, -1);
  return {onnx.gather(first.values, last, dim), onnx.gather(first.places, last, dim)};
}

Values raise_median(const AtenNode& n, OnnxBuilder& onnx) { return of_all(n, onnx, median_of); }
Values raise_median_dim(const AtenNode& n, OnnxBuilder& onnx) { return along_dim(n, onnx, median_of); }
Values raise_nanmedian(const AtenNode& n, OnnxBuilder& onnx) { return of_all(n, onnx, nanmedian_of); }
Values raise_nanmedian_dim(const AtenNode& n, OnnxBuilder& onnx) { return along_dim(n, onnx, nanmedian_of); }
Values raise_mode(const AtenNode& n, OnnxBuilder& onnx) { return along_dim(n, onnx, mode_of); }

/// What lies at a part of the way between the least and the greatest. The last axis is the one that is sorted.
class Quantile {
 public:
  Quantile(const AtenNode& n, OnnxBuilder& onnx) : n_(n), onnx_(onnx), mode_(n.s("interpolation")) {}

  Value* of(Value* x, bool skips_nan) {
    const int64_t axis = onnx_.rank(x) - 1;
    dtype_ = onnx_.dtype(x);
    // parts as a list along the last axis
    Value* q = n_.input_as("q", dtype_);
    q = onnx_.rank(q) == 0 ? onnx_.unsqueeze(q, {0}) : q;
    Value* is_nan = onnx_("IsNaN", {x});
    Value* filled = onnx_.where(is_nan, onnx_.number(dtype_, std::numeric_limits<double>::infinity()), x);
    sorted_ = top(onnx_, filled, onnx_.size(x, axis), axis, false).values;
    Value* flags = onnx_.cast(is_nan, DType::Int64);
    Value* nans = onnx_.reduce("ReduceSum", flags, {axis}, true);
    Value* last = onnx_.scalar(onnx_.sub(onnx_.size(x, axis), 1));
    Value* is_void = onnx_.cast(nans, DType::Bool);
    if (skips_nan) {
      last = onnx_("Sub", {last, nans});
      is_void = onnx_("Less", {last, onnx_.integer(DType::Int64, 0)});
      last = onnx_("Max", {last, onnx_.integer(DType::Int64, 0)});
    }
    Value* rank = onnx_("Mul", {q, onnx_.cast(last, dtype_)});
    return onnx_.where(is_void, nan(onnx_, dtype_), between(rank, skips_nan));
  }

 private:
  Value* at(Value* rank, bool each_row) {
    Value* place = onnx_.cast(rank, DType::Int64);
    const int64_t axis = onnx_.rank(sorted_) - 1;
    return each_row ? onnx_("GatherElements", {sorted_, place}, {{"axis", axis}}) : onnx_.gather(sorted_, place, axis);
  }

  Value* between(Value* rank, bool each_row) {
    if (mode_ == "nearest") return at(onnx_("Round", {rank}), each_row);
    Value* below = onnx_("Floor", {rank});
    if (mode_ == "lower") return at(below, each_row);
    Value* above = onnx_("Ceil", {rank});
    if (mode_ == "higher") return at(above, each_row);
    if (mode_ != "linear" && mode_ != "midpoint") n_.cannot("the interpolation '{}'", mode_);
    Value *low = at(below, each_row), *high = at(above, each_row);
    Value* weight = mode_ == "midpoint" ? onnx_.number(dtype_, 0.5) : onnx_("Sub", {rank, below});
    Value* part = onnx_("Mul", {weight, onnx_("Sub", {high, low})});
    // between two that are equal nothing is to be added, even if they are infinite
    Value* same = onnx_("Equal", {low, high});
    return onnx_.where(same, low, onnx_("Add", {low, part}));
  }

  const AtenNode& n_;
  OnnxBuilder& onnx_;
  std::string mode_;
  DType dtype_ = DType::Float32;
  Value* sorted_ = nullptr;
};

Values quantile(const AtenNode& n, OnnxBuilder& onnx, bool skips_nan) {
  n.ignore({"keepdim"});
  Value* x = n.input("self");
  const int64_t rank = n.rank("self");
  if (!n.has("dim") || rank == 0) {
    n.ignore({"dim"});
    x = rank == 0 ? onnx.unsqueeze(x, {0}) : flat(onnx, x);
  } else {
    x = onnx.transpose(x, moved_axis(rank, n.dim("dim", "self"), rank - 1));
  }
  Value* y = Quantile(n, onnx).of(x, skips_nan);
  // the parts that are asked for come first
  const int64_t inner = onnx.rank(y);
  return onnx.reshape(onnx.transpose(y, moved_axis(inner, inner - 1, 0)), n.output_shape());
}

Values raise_quantile(const AtenNode& n, OnnxBuilder& onnx) { return quantile(n, onnx, false); }
Values raise_nanquantile(const AtenNode& n, OnnxBuilder& onnx) { return quantile(n, onnx, true); }

constexpr AtenOp kAtenSortAten[] = {
    {.sig = "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
     .types = types_values_and_places,
     .layout = Layout::Inputs,
     .python = "torch.sort",
     .raise = raise_sort},
    {.sig = "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
     .types = types_argsort,
     .layout = Layout::Inputs,
     .python = "torch.argsort",
     .raise = raise_argsort},
    {.sig = "aten::msort(Tensor self) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.msort",
     .raise = raise_msort},
    {.sig = "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
            "Tensor indices)",
     .types = types_topk,
     .python = "torch.topk",
     .raise = raise_topk},
    {.sig = "aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .types = types_extreme,
     .python = "torch.kthvalue",
     .raise = raise_kthvalue},
    {.sig = "aten::median(Tensor self) -> Tensor",
     .types = types_extreme,
     .python = "torch.median",
     .raise = raise_median},
    {.sig = "aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .types = types_extreme,
     .python = "torch.median",
     .raise = raise_median_dim},
    {.sig = "aten::nanmedian(Tensor self) -> Tensor",
     .types = types_extreme,
     .python = "torch.nanmedian",
     .raise = raise_nanmedian},
    {.sig = "aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .types = types_extreme,
     .python = "torch.nanmedian",
     .raise = raise_nanmedian_dim},
    {.sig = "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .types = types_extreme,
     .python = "torch.mode",
     .raise = raise_mode},
    {.sig = "aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") "
            "-> Tensor",
     .types = types_quantile,
     .python = "torch.quantile",
     .raise = raise_quantile},
    {.sig = "aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
            "interpolation=\"linear\") -> Tensor",
     .types = types_quantile,
     .python = "torch.quantile",
     .raise = raise_quantile},
    {.sig = "aten::nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
            "interpolation=\"linear\") -> Tensor",
     .types = types_quantile,
     .python = "torch.nanquantile",
     .raise = raise_nanquantile},
    {.sig = "aten::nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
            "interpolation=\"linear\") -> Tensor",
     .types = types_quantile,
     .python = "torch.nanquantile",
     .raise = raise_nanquantile},
};

}  // namespace

extern const OpFamily kAtenSortOps;
constinit const OpFamily kAtenSortOps{"aten_sort", {}, kAtenSortAten};

}  // namespace tonnx
