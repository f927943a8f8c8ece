// segment_raise.cpp - rows that are reduced in groups, side by side: embedding_bag and segment_reduce, as ONNX.
#include <limits>

#include "ops/index/rows.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Rows, and the group that each of them is in.
struct Groups {
  const AtenNode& n;
  OnnxBuilder& onnx;
  Value* rows;
  Value* group;
  IntArg count;

  /// Of each group, beginning with a number.
  Value* reduced(const char* reduction, double start) const {
    const bool is_extreme = std::string_view(reduction) == "max" || std::string_view(reduction) == "min";
    require_opset(n, onnx, is_extreme ? 18 : 16, "a reduction of groups");
    IntArgs sizes{count};
    for (int64_t i = 1; i < onnx.rank(rows); ++i) sizes.push_back(onnx.size(rows, i));
    Value* data = filled(onnx, sizes, onnx.dtype(rows), start);
    return onnx("ScatterND", {data, onnx.unsqueeze(group, {1}), rows}, {{"reduction", std::string(reduction)}});
  }

  /// How many rows each group has, in the type of the rows, with sizes of 1 behind.
  Value* sizes() const {
    const DType dtype = onnx.dtype(rows);
    Value* ones = broadcast(onnx, onnx.number(dtype, 1), onnx.sizes(group));
    const Groups flags{n, onnx, ones, group, count};
    std::vector<int64_t> axes;
    for (int64_t i = 1; i < onnx.rank(rows); ++i) axes.push_back(i);
    return onnx.unsqueeze(flags.reduced("add", 0), axes);
  }
};

/// The group of each row: how many starts are not behind it, the first of them being its own.
Value* groups_of(OnnxBuilder& onnx, Value* starts, const IntArg& rows) {
  Value* before = count_before(onnx, starts, range_on(onnx, rows, 0, 1), true);
  return onnx("Sub", {before, onnx.integer(DType::Int64, 1)});
}

Value* embedding_bags(const AtenNode& n, OnnxBuilder& onnx, std::optional<int64_t> padding) {
  n.ignore({"scale_grad_by_freq", "sparse"});
  Value* weight = n.input("weight");
  Value* indices = n.input_as("indices", DType::Int64);
  Value* starts = n.input_as("offsets", DType::Int64);
  if (n.rank("indices") != 1) n.cannot("embedding_bag of indices of {} dimensions", n.rank("indices"));
  if (n.flag("include_last_offset")) starts = onnx.slice(starts, 0, 0, -1);
  Value* group = groups_of(onnx, starts, onnx.size(indices, 0));
  Value* rows = onnx.gather(weight, indices, 0);
  rows = onnx.cast(rows, scatter_dtype(onnx.dtype(rows)));
  if (n.has("per_sample_weights"))
    rows = onnx("Mul", {rows, onnx.unsqueeze(n.input_as("per_sample_weights", onnx.dtype(rows)), {1})});
  if (padding) {
    const IntArg last = onnx.size(weight, 0);
    Value* hidden = onnx.list(*padding < 0 ? onnx.add(last, *padding) : IntArg(*padding));
    Value* counts = onnx("Not", {onnx("Equal", {indices, hidden})});
    rows = onnx("Compress", {rows, counts}, {{"axis", int64_t{0}}});
    group = onnx("Compress", {group, counts}, {{"axis", int64_t{0}}});
  }
  const Groups bags{n, onnx, rows, group, onnx.size(starts, 0)};
  const int64_t mode = n.i("mode");
  if (mode == 0) return bags.reduced("add", 0);
  Value* sizes = bags.sizes();
  const DType dtype = onnx.dtype(rows);
  if (mode == 1) return onnx("Div", {bags.reduced("add", 0), onnx("Max", {sizes, onnx.number(dtype, 1)})});
  // a bag without anything is 0
  return onnx.where(onnx.cast(sizes, DType::Bool), bags.reduced("max", -kInfinity), onnx.number(dtype, 0));
}

/// The other outputs are for the gradient.
Values raise_embedding_bag(const AtenNode& n, OnnxBuilder& onnx) {
  return {onnx.cast(embedding_bags(n, onnx, std::nullopt), n.output_dtype()), nullptr, nullptr, nullptr};
}

Values raise_embedding_bag_padded(const AtenNode& n, OnnxBuilder& onnx) {
  return {onnx.cast(embedding_bags(n, onnx, n.find_i("padding_idx")), n.output_dtype()), nullptr, nullptr, nullptr};
}

/// Here -1 stands for none.
Values raise_embedding_bag_forward(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t padding = n.i("padding_idx");
  Value* y = embedding_bags(n, onnx, padding < 0 ? std::nullopt : std::optional(padding));
  return {onnx.cast(y, n.output_dtype()), nullptr, nullptr, nullptr};
}

Values raise_segment_reduce(const AtenNode& n, OnnxBuilder& onnx) {
  const bool leaves_rows = n.flag("unsafe");  // in front of the first segment, or behind the last
  const bool has_lengths = n.has("lengths");
  if (n.dim("axis", "data") != 0 || n.has("indices") || has_lengths == n.has("offsets"))
    n.cannot("segment_reduce along another axis than the first, or by indices");
  const std::string reduce = n.s("reduce");
  Value* data = n.input("data");
  const DType dtype = onnx.dtype(data);
  if (dtype != DType::Float32 && dtype != DType::Float64) n.cannot("segment_reduce of {}", name_of(dtype));
  Value* starts = n.input_as(has_lengths ? "lengths" : "offsets", DType::Int64);
  if (onnx.rank(starts) != 1) n.cannot("segment_reduce by lengths of {} dimensions", onnx.rank(starts));
  if (has_lengths) {
    if (leaves_rows) data = onnx.slice(data, 0, 0, onnx.reduce("ReduceSum", starts, {0}, true));
    starts = onnx("CumSum", {starts, onnx.integer(DType::Int64, 0)}, {{"exclusive", int64_t{1}}});
  } else {
    const IntArg first = onnx.slice(starts, 0, 0, 1), last = onnx.slice(starts, 0, -1, kEnd);
    starts = onnx.slice(starts, 0, 0, -1);
    if (leaves_rows) {
      data = onnx.slice(data, 0, first, last);
      starts = onnx("Sub", {starts, first.value});
    }
  }
  const Groups groups{n, onnx, data, groups_of(onnx, starts, onnx.size(data, 0)), onnx.size(starts, 0)};
  const std::optional<double> initial = n.find_f("initial");
  if (reduce == "sum") return groups.reduced("add", initial.value_or(0));
  if (reduce == "prod") return groups.reduced("mul", initial.value_or(1));
  if (reduce == "max") return groups.reduced("max", initial.value_or(-kInfinity));
  if (reduce == "min") return groups.reduced("min", initial.value_or(kInfinity));
  if (reduce != "mean") n.cannot("the reduction '{}'", reduce);
  Value* sizes = groups.sizes();
  // without a number to begin with, the mean of nothing is 0 / 0
  if (initial) sizes = onnx("Max", {sizes, onnx.number(dtype, 1)});
  return onnx("Div", {groups.reduced("add", initial.value_or(0)), sizes});
}

constexpr AtenOp kAtenSegmentAten[] = {
    {.sig = "aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
            "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, "
            "Tensor, Tensor, Tensor)",
     .types = types_embedding_bag,
     .python = "torch.embedding_bag",
     .raise = raise_embedding_bag},
    {.sig = "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, "
            "int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> "
            "(Tensor, Tensor, Tensor, Tensor)",
     .types = types_embedding_bag,
     .python = "torch.embedding_bag",
     .raise = raise_embedding_bag_padded},
    {.sig = "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
            "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
            "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     .types = types_embedding_bag,
     .python = "torch._embedding_bag",
     .raise = raise_embedding_bag_forward},
    {.sig = "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
            "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
            "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     .types = types_embedding_bag,
     .python = "torch._embedding_bag_forward_only",
     .raise = raise_embedding_bag_forward},
    {.sig = "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? "
            "offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
     .python = "torch.segment_reduce",
     .raise = raise_segment_reduce},
};

}  // namespace

extern const OpFamily kAtenSegmentOps;
constinit const OpFamily kAtenSegmentOps{"aten_segment", {}, kAtenSegmentAten};

}  // namespace tonnx
