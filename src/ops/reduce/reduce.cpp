// reduce.cpp - reductions along axes: ReduceSum and its kin.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/same_value.h"
#include "ops/math/rows.h"
#include "ops/reduce/rows.h"
#include "ops/reduce/run_time_axis.h"

namespace tonnx {
namespace {

/// The axes of a reduction as far as they are known while converting.
struct Axes {
  bool none = false;  // noop_with_empty_axes: nothing is reduced
  bool all = false;
  std::optional<std::vector<int64_t>> at;  // counted from the front, ascending; nothing: known at run time, or no rank
};

bool is_empty(const NodeView& n, std::string_view input) {
  if (!n.has(input)) return true;
  const Shape* shape = n.find_shape(input);
  return shape && shape->size() == 1 && shape->at(0).is(0);
}

/// Where only the run gives the axes: those that follow from the shapes that the file declares. An axis of size 1 may
/// be among them or not, which makes no difference.
std::optional<std::vector<int64_t>> declared_axes(const NodeView& n) {
  const Shape* data = n.find_shape("data");
  const MaybeShape declared = declared_shape(n);
  if (!n.flag("keepdims") || !data || !declared || declared->size() != data->size()) return std::nullopt;
  std::vector<int64_t> axes;
  for (size_t d = 0; d < data->size(); ++d) {
    const Dim& size = (*declared)[d];
    if (!size.is_constant() || !(*data)[d].is_constant()) return std::nullopt;
    if (size.is(1))
      axes.push_back(static_cast<int64_t>(d));
    else if (size != (*data)[d])
      return std::nullopt;
  }
  return axes.empty() ? std::nullopt : std::optional(axes);
}

Axes axes_of(const NodeView& n) {
  Axes axes;
  const auto rank = n.find_rank("data");
  const auto given = n.find_const_ints("axes");
  if (is_empty(n, "axes") || (given && given->empty())) {
    (n.flag("noop_with_empty_axes") ? axes.none : axes.all) = true;
    if (axes.none) axes.at.emplace();
    if (axes.all && rank) {
      axes.at.emplace();
      for (int64_t d = 0; d < *rank; ++d) axes.at->push_back(d);
    }
    return axes;
  }
  n.flag("noop_with_empty_axes");
  if (!rank) return axes;
  if (!given) {
    axes.at = declared_axes(n);
    return axes;
  }
  axes.at.emplace();
  // a scalar has no axes, but ONNX Runtime lets it be reduced along axis 0
  for (const int64_t axis : *given) axes.at->push_back(NodeView::normalized(axis, std::max<int64_t>(*rank, 1)));
  std::sort(axes.at->begin(), axes.at->end());
  axes.at->erase(std::unique(axes.at->begin(), axes.at->end()), axes.at->end());
  axes.all = static_cast<int64_t>(axes.at->size()) >= *rank;
  return axes;
}

void infer_reduce(InferNode& n) {
  const Axes axes = axes_of(n);
  const bool keep = n.flag("keepdims");
  const Shape* shape = n.find_shape("data");
  if (axes.all && !axes.at && !keep) return n.set(0, n.dtype("data"), Shape{});
  if (shape == nullptr) return n.set(0, n.dtype("data"), std::nullopt);
  if (!axes.at && !keep) {  // which axes go away only the run knows, but it may be known how many
    const Shape* list = n.find_shape("axes");
    const auto count = list && list->size() == 1 ? list->front().constant() : std::nullopt;
    const auto rank = static_cast<int64_t>(shape->size());
    if (!count || *count < 1 || *count > rank) return n.set(0, n.dtype("data"), std::nullopt);
    Shape left;
    while (static_cast<int64_t>(left.size()) < rank - *count) left.push_back(n.fresh());
    return n.set(0, n.dtype("data"), std::move(left));
  }
  Shape result;
  for (size_t d = 0; d < shape->size(); ++d) {
    if (!axes.at) {
      result.push_back(n.fresh());
    } else if (!std::binary_search(axes.at->begin(), axes.at->end(), static_cast<int64_t>(d))) {
      result.push_back((*shape)[d]);
    } else if (keep) {
      result.emplace_back(1);
    }
  }
  n.set(0, n.dtype("data"), std::move(result));
}

/// Also folds the integers of a shape into one.
template <class Fold>
void infer_fold(InferNode& n) {
  infer_reduce(n);
  const auto dims = n.find_dims("data");
  const Axes axes = axes_of(n);
  if (!dims || dims->empty() || n.find_rank("data") != 1 || axes.none || !axes.at) return;
  Dim result = dims->front();
  for (size_t i = 1; i < dims->size(); ++i) result = Fold{}(result, (*dims)[i]);
  n.set_dims({result});
}

struct Largest {
  Dim operator()(const Dim& a, const Dim& b) const { return max(a, b); }
};
struct Smallest {
  Dim operator()(const Dim& a, const Dim& b) const { return min(a, b); }
};

/// A reduction in aten's words, which every lowering here needs.
class Reduction {
 public:
  Reduction(const OnnxNode& n, AtenBuilder& aten)
      : n_(n), aten_(aten), axes_(axes_of(n)), dtype_(n.dtype("data")), keep_(n.flag("keepdims")) {}

  DType dtype() const { return dtype_; }
  bool is_identity() const { return axes_.none; }

  /// `x.sum(1, keepdim=True)`; integers are summed up in their own type.
  Value* sum(Value* x) {
    if (axes_.none) return x;
    const Arg dtype = is_signed_int(dtype_) && dtype_ != DType::Int64 ? Arg(dtype_) : Arg(nullptr);
    Value* y = axes_.all && !keep_ ? aten_("sum", x, Kw{"dtype", dtype})
                                   : aten_("sum.dim_IntList", x, dims(), keep_, Kw{"dtype", dtype});
    return is_unsigned(dtype_) ? aten_("to.dtype", y, dtype_) : y;
  }

  Value* mean(Value* x) {
    if (axes_.none) return x;
    const Arg dtype = is_float(dtype_) ? Arg(nullptr) : Arg(DType::Float64);
    Value* y = axes_.all && !keep_ ? aten_("mean", x, Kw{"dtype", dtype})
                                   : aten_("mean.dim", x, dims(), keep_, Kw{"dtype", dtype});
    return is_float(dtype_) ? y : aten_("to.dtype", y, dtype_);
  }

  /// aten multiplies along one dimension at a time.
  Value* product(Value* x) {
    if (axes_.none) return x;
    const Arg dtype = is_signed_int(dtype_) && dtype_ != DType::Int64 ? Arg(dtype_) : Arg(nullptr);
    if (axes_.all && !keep_) {
      x = aten_("prod", x, Kw{"dtype", dtype});
    } else if (axes_.at) {
      for (auto d = axes_.at->rbegin(); d != axes_.at->rend(); ++d)
        x = aten_("prod.dim_int", x, *d, keep_, Kw{"dtype", dtype});
    } else {
      const IntArgs given = n_.int_args("axes");
      for (const IntArg& d : given) x = aten_("prod.dim_int", x, d, true, Kw{"dtype", dtype});
      if (!keep_) x = aten_("squeeze.dims", x, given);
    }
    return is_unsigned(dtype_) ? aten_("to.dtype", x, dtype_) : x;
  }

  /// amax, amin: of no elements they are an error in PyTorch, and the least or the greatest value in ONNX.
  Value* extreme(const char* op, Value* x) {
    if (axes_.none) return x;
    if (is_empty_along()) return extreme_of_nothing(std::string_view(op) == "amax", x);
    const DType kernel = kernel_type(dtype_);
    x = reordered(aten_, cast(aten_, x, dtype_, kernel), dtype_);
    Value* y = axes_.all && !keep_ ? aten_(op, x) : aten_(op, x, dims(), keep_);
    return cast(aten_, reordered(aten_, y, dtype_), kernel, dtype_);
  }

  Value* norm(Value* x) {
    return aten_("linalg_vector_norm", x, 2, axes_.all && !keep_ ? Arg(nullptr) : dims(), keep_);
  }
  Value* log_sum_exp(Value* x) { return aten_("logsumexp", x, dims(), keep_); }

 private:
  Arg dims() const {
    if (axes_.at) {
      if (axes_.at->empty()) return std::vector<int64_t>{0};  // a scalar, which aten reduces along "dimension 0"
      return *axes_.at;
    }
    if (axes_.all) return aten_("tonnx::axes", n_.input("data"));
    return n_.int_list("axes");
  }

  /// Whether there are no elements along some axis, or, where only the run tells the axes, none at all.
  bool is_empty_along() const {
    const Shape* shape = n_.find_shape("data");
    for (size_t d = 0; shape && d < shape->size(); ++d) {
      const bool along = !axes_.at || std::binary_search(axes_.at->begin(), axes_.at->end(), static_cast<int64_t>(d));
      if (along && (*shape)[d].is(0)) return true;
    }
    return false;
  }

  Value* extreme_of_nothing(bool largest, Value* x) {
    const auto filled = [&](const Arg& value) {
      if (axes_.at && n_.output_type().shape) {
        IntArgs size;
        for (const Dim& dim : *n_.output_type().shape) size.push_back(n_.int_arg(dim));
        return aten_("full", size, value, Kw{"dtype", dtype_});
      }
      const Arg dtype = is_float(dtype_) ? Arg(nullptr) : Arg(dtype_);  // aten adds up integers in int64
      return aten_("full_like", aten_("sum.dim_IntList", x, dims(), keep_), value, Kw{"dtype", dtype});
    };
    if (is_float(dtype_)) return filled(largest ? -HUGE_VAL : HUGE_VAL);
    if (dtype_ == DType::Bool) return filled(!largest);
    const int bits = info(dtype_).bits - (is_signed_int(dtype_) ? 1 : 0);
    if (bits == 64 && !largest) fail_unsupported("the smallest of no elements of type uint64");
    const int64_t greatest = bits == 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits % 64)) - 1;
    const int64_t least = is_signed_int(dtype_) ? -greatest - 1 : 0;
    return filled(largest ? least : greatest);
  }

  const OnnxNode& n_;
  AtenBuilder& aten_;
  Axes axes_;
  DType dtype_;
  bool keep_;
};

Values lower_reduce_sum(const OnnxNode& n, AtenBuilder& aten) { return Reduction(n, aten).sum(n.input("data")); }
Values lower_reduce_mean(const OnnxNode& n, AtenBuilder& aten) { return Reduction(n, aten).mean(n.input("data")); }
Values lower_reduce_prod(const OnnxNode& n, AtenBuilder& aten) { return Reduction(n, aten).product(n.input("data")); }
Values lower_reduce_max(const OnnxNode& n, AtenBuilder& aten) {
  return Reduction(n, aten).extreme("amax", n.input("data"));
}
Values lower_reduce_min(const OnnxNode& n, AtenBuilder& aten) {
  return Reduction(n, aten).extreme("amin", n.input("data"));
}

Values lower_reduce_sum_square(const OnnxNode& n, AtenBuilder& aten) {
  Reduction reduction(n, aten);
  const DType dtype = n.dtype("data");
  Value* y = reduction.sum(aten("square", cast(aten, n.input("data"), dtype, kernel_type(dtype))));
  return reduction.is_identity() ? cast(aten, y, kernel_type(dtype), dtype) : y;
}

Values lower_reduce_l1(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("data");
  return Reduction(n, aten).sum(is_unsigned(n.dtype("data")) ? x : aten("abs", x));
}

Values lower_reduce_l2(const OnnxNode& n, AtenBuilder& aten) {
  Reduction reduction(n, aten);
  const DType dtype = n.dtype("data"), wide = is_float(dtype) ? dtype : DType::Float64;
  Value* x = cast(aten, n.input("data"), dtype, wide);
  return cast(aten, reduction.is_identity() ? aten("abs", x) : reduction.norm(x), wide, dtype);
}

Values lower_reduce_log_sum(const OnnxNode& n, AtenBuilder& aten) {
  Reduction reduction(n, aten);
  return aten("log", reduction.sum(n.input("data")));
}

Values lower_reduce_log_sum_exp(const OnnxNode& n, AtenBuilder& aten) {
  Reduction reduction(n, aten);
  if (reduction.is_identity()) return n.input("data");
  return reduction.log_sum_exp(n.input("data"));
}

/// Before opset 11 axes are counted from the front only.
void down_axes_from_front(OnnxEdit& edit) {
  auto axes = edit.find_ints("axes");
  if (!axes || std::all_of(axes->begin(), axes->end(), [](int64_t axis) { return axis >= 0; })) return;
  const auto rank = edit.rank(0);
  if (!rank) edit.cannot("opset 10 has no negative axes, and the rank of its input is not known");
  for (int64_t& axis : *axes) axis = NodeView::normalized(axis, *rank);
  edit.node().set_attribute("axes", *axes, AttrType::Ints);
}

void down_axes_to_attribute(OnnxEdit& edit) {
  const auto axes = edit.const_ints(1);
  const bool empty = edit.node().input(1) == nullptr || (axes && axes->empty());
  if (empty && edit.i("noop_with_empty_axes", 0) != 0) edit.cannot("the older opset always reduces");
  drop_attribute(edit, "noop_with_empty_axes");
  if (empty) return edit.node().resize_inputs(1);
  input_to_attribute(edit, "axes", 1);
}

/// Opset 28 took the integers away from the logarithms.
void up_integers_to_floats(OnnxEdit& edit) {
  const Value* data = edit.node().input(0);
  if (data == nullptr || !is_integer(data->type.dtype)) return;
  const auto to = [](DType dtype) {
    return std::vector<Attribute>{{"to", static_cast<int64_t>(dtype), AttrType::Int, {}, {}}};
  };
  const std::vector<Attribute> back = to(data->type.dtype);
  edit.node().set_input(0, edit.before("Cast", {edit.node().input(0)}, to(DType::Float64)));
  edit.after(0, "Cast", {nullptr}, back);
}

constexpr OpsetStep kSumHistory[] = {
    {.to = 11, .down = down_axes_from_front},
    {.to = 13, .up = up_attr_to_input<"axes", 1>, .down = down_axes_to_attribute, .adds = kBFloat16},
};
constexpr OpsetStep kReduceHistory[] = {
    {.to = 11, .down = down_axes_from_front},
    {.to = 13, .adds = kBFloat16},
    {.to = 18, .up = up_attr_to_input<"axes", 1>, .down = down_axes_to_attribute},
};
constexpr OpsetStep kExtremeHistory[] = {
    {.to = 11, .down = down_axes_from_front},
    {.to = 12, .adds = dtype_set(DType::Int8, DType::UInt8)},
    {.to = 13, .adds = kBFloat16},
    {.to = 18, .up = up_attr_to_input<"axes", 1>, .down = down_axes_to_attribute},
    {.to = 20, .adds = dtype_set(DType::Bool)},
};
constexpr OpsetStep kLogHistory[] = {
    {.to = 11, .down = down_axes_from_front},
    {.to = 13, .adds = kBFloat16},
    {.to = 18, .up = up_attr_to_input<"axes", 1>, .down = down_axes_to_attribute},
    {.to = 28, .up = up_integers_to_floats},
};

#define REDUCE(op) op "(T data, tensor(int64)? axes, *, int keepdims=1, int noop_with_empty_axes=0) -> T reduced"
constexpr OnnxOp kReduceOnnx[] = {
    {.sig = REDUCE("ReduceSum"),
     .since = 1,
     .traits = kReduces,
     .runtime = {kWideInts},
     .history = kSumHistory,
     .infer = infer_fold<std::plus<Dim>>,
     .eval = eval_reduce_sum,
     .same = same_where_shape_stays,
     .lower = lower_reduce_sum,
     .expand = expand_reduce},
    {.sig = REDUCE("ReduceMean"),
     .since = 1,
     .traits = kReduces,
     .history = kReduceHistory,
     .infer = infer_reduce,
     .eval = eval_reduce_mean,
     .same = same_where_shape_stays,
     .lower = lower_reduce_mean,
     .expand = expand_reduce},
    {.sig = REDUCE("ReduceProd"),
     .since = 1,
     .traits = kReduces,
     .runtime = {kWideInts},
     .history = kReduceHistory,
     .infer = infer_fold<std::multiplies<Dim>>,
     .eval = eval_reduce_prod,
     .same = same_where_shape_stays,
     .lower = lower_reduce_prod,
     .expand = expand_reduce_product},
    {.sig = REDUCE("ReduceMax"),
     .since = 1,
     .traits = kReduces,
     .runtime = {kByteInts | kBool},
     .history = kExtremeHistory,
     .infer = infer_fold<Largest>,
     .eval = eval_reduce_max,
     .same = same_where_shape_stays,
     .lower = lower_reduce_max,
     .expand = expand_reduce},
    {.sig = REDUCE("ReduceMin"),
     .since = 1,
     .traits = kReduces,
     .runtime = {kByteInts | kBool},
     .history = kExtremeHistory,
     .infer = infer_fold<Smallest>,
     .eval = eval_reduce_min,
     .same = same_where_shape_stays,
     .lower = lower_reduce_min,
     .expand = expand_reduce},
    {.sig = REDUCE("ReduceSumSquare"),
     .since = 1,
     .traits = kReduces,
     .runtime = {kWideInts},
     .history = kReduceHistory,
     .infer = infer_reduce,
     .eval = eval_reduce_sum_square,
     .lower = lower_reduce_sum_square,
     .expand = expand_reduce},
    {.sig = REDUCE("ReduceL1"),
     .since = 1,
     .traits = kReduces,
     .runtime = {kWideInts},
     .history = kReduceHistory,
     .infer = infer_reduce,
     .eval = eval_reduce_l1,
     .lower = lower_reduce_l1,
     .expand = expand_reduce},
    {.sig = REDUCE("ReduceL2"),
     .since = 1,
     .traits = kReduces,
     .history = kReduceHistory,
     .infer = infer_reduce,
     .eval = eval_reduce_l2,
     .lower = lower_reduce_l2,
     .expand = expand_reduce},
    {.sig = REDUCE("ReduceLogSum"),
     .since = 1,
     .traits = kReduces,
     .history = kLogHistory,
     .infer = infer_reduce,
     .eval = eval_reduce_log_sum,
     .lower = lower_reduce_log_sum,
     .expand = expand_reduce},
    {.sig = REDUCE("ReduceLogSumExp"),
     .since = 1,
     .traits = kReduces,
     .history = kLogHistory,
     .infer = infer_reduce,
     .eval = eval_reduce_log_sum_exp,
     .lower = lower_reduce_log_sum_exp,
     .expand = expand_reduce},
};
#undef REDUCE

constexpr AtenOp kReduceAten[] = {
    {.sig = "tonnx_axes::reduced(Tensor self, Tensor axes, str how, bool keepdim) -> Tensor",
     .python = "torch.ops.tonnx_axes.reduced",
     .raise = raise_reduced},
    {.sig = "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .types = types_sum,
     .out_dtype = true,
     .python = ".sum",
     .raise = raise_reduce<"ReduceSum">,
     .raise_complex = raise_each_part},
    {.sig = "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .types = types_sum,
     .out_dtype = true,
     .python = ".sum",
     .raise = raise_reduce<"ReduceSum">,
     .raise_complex = raise_each_part},
    {.sig = "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .types = types_mean,
     .out_dtype = true,
     .python = ".mean",
     .raise = raise_mean,
     .raise_complex = raise_each_part},
    {.sig = "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .types = types_mean,
     .out_dtype = true,
     .python = ".mean",
     .raise = raise_mean,
     .raise_complex = raise_each_part},
    {.sig = "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
     .types = types_mean,
     .python = ".amax",
     .raise = raise_reduce<"ReduceMax">},
    {.sig = "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
     .types = types_mean,
     .python = ".amin",
     .raise = raise_reduce<"ReduceMin">},
    {.sig = "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .types = types_sum,
     .out_dtype = true,
     .python = ".prod",
     .raise = raise_reduce<"ReduceProd">},
    {.sig = "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .types = types_sum,
     .out_dtype = true,
     .python = ".prod",
     .raise = raise_reduce<"ReduceProd">},
    {.sig = "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
     .types = types_logsumexp,
     .python = "torch.logsumexp",
     .raise = raise_logsumexp},
    {.sig = "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
            "dtype=None) -> Tensor",
     .types = types_mean,
     .python = "torch.linalg.vector_norm",
     .raise = raise_vector_norm},
    {.sig = "aten::square(Tensor self) -> Tensor",
     .types = types_square,
     .elementwise = Elementwise::Promoted,
     .python = "torch.square",
     .raise = raise_square},
    {.sig = "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
     .types = types_truth,
     .python = ".any",
     .raise = raise_any,
     .raise_complex = raise_with_flags},
    {.sig = "aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
     .types = types_truth,
     .python = ".all",
     .raise = raise_all,
     .raise_complex = raise_with_flags},
};

}  // namespace

extern const OpFamily kReduceOps;
constinit const OpFamily kReduceOps{"reduce", kReduceOnnx, kReduceAten};

}  // namespace tonnx
