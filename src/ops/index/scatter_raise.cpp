// scatter_raise.cpp - writing of elements along one dimension, and sums of what comes to the same place, as ONNX.
#include <limits>

#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/index/rows.h"
#include "ops/move/rows.h"

namespace tonnx {

DType scatter_dtype(DType dtype) {
  if (dtype == DType::BFloat16 || dtype == DType::Float16) return DType::Float32;
  if (dtype == DType::UInt32 || dtype == DType::UInt64) return DType::Int64;
  return contains(kSmallInts | kBool, dtype) ? DType::Int32 : dtype;
}

namespace {

/// How elements that come to the same place become one.
enum class Reduce { None, Sum, Product, Mean, Max, Min };

Reduce reduce_of(const AtenNode& n, const std::string& name) {
  if (name == "sum" || name == "add") return Reduce::Sum;
  if (name == "prod" || name == "multiply") return Reduce::Product;
  if (name == "mean") return Reduce::Mean;
  if (name == "amax") return Reduce::Max;
  if (name == "amin") return Reduce::Min;
  n.cannot("the reduction '{}'", name);
}

const char* onnx_reduction(Reduce reduce) {
  switch (reduce) {
    case Reduce::None: return "none";
    case Reduce::Product: return "mul";
    case Reduce::Max: return "max";
    case Reduce::Min: return "min";
    default: return "add";
  }
}

/// What the first element meets where `self` does not count.
double identity_of(Reduce reduce, DType dtype) {
  const bool is_float = tonnx::is_float(dtype);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (reduce) {
    case Reduce::Product: return 1;
    case Reduce::Max: return is_float ? -kInfinity : dtype == DType::Int64 ? -0x1p63 : -0x1p31;
    case Reduce::Min: return is_float ? kInfinity : 0;
    default: return 0;
  }
}

struct Scatter {
  const AtenNode& n;
  OnnxBuilder& onnx;
  int64_t dim;
  Value* index;  // as large as what is written

  Value* write(Value* data, Value* updates, Reduce reduce = Reduce::None) const {
    std::vector<Attribute> attributes{{"axis", dim, AttrType::None, {}, {}}};
    if (reduce == Reduce::None) return onnx("ScatterElements", {data, index, updates}, std::move(attributes));
    const bool is_extreme = reduce == Reduce::Max || reduce == Reduce::Min;
    require_opset(n, onnx, is_extreme ? 18 : 16, "a scatter that reduces");
    attributes.push_back({"reduction", std::string(onnx_reduction(reduce)), AttrType::None, {}, {}});
    return onnx("ScatterElements", {data, index, updates}, std::move(attributes));
  }

  Value* whole(Value* number) const { return broadcast(onnx, number, onnx.sizes(index)); }

  Value* first_of(Reduce reduce, DType dtype) const {
    if (reduce == Reduce::Min && dtype == DType::Int64) return onnx.integer(dtype, INT64_MAX);
    if (reduce == Reduce::Min && dtype == DType::Int32) return onnx.integer(dtype, INT32_MAX);
    if (reduce == Reduce::Max && dtype == DType::Int64) return onnx.integer(dtype, INT64_MIN);
    return onnx.number(dtype, identity_of(reduce, dtype));
  }

  /// Integers are divided downwards.
  Value* divided(Value* sum, Value* count) const {
    const DType dtype = onnx.dtype(sum);
    count = onnx.cast(count, dtype);
    if (is_float(dtype)) return onnx("Div", {sum, count});
    return onnx("Div", {onnx("Sub", {sum, onnx("Mod", {sum, count})}), count});
  }

  Value* reduced(Value* self, Value* src, Reduce reduce, bool with_self) const {
    const DType own = onnx.dtype(self);
    const DType dtype = scatter_dtype(own);
    self = onnx.cast(self, dtype);
    src = onnx.cast(src, dtype);
    Value* start = with_self ? self : write(self, whole(first_of(reduce, dtype)));
    Value* y = write(start, src, reduce);
    if (reduce == Reduce::Max || reduce == Reduce::Min) y = with_nan(start, src, y);
    if (reduce == Reduce::Mean) {
      Value* one = onnx.integer(DType::Int64, 1);
      Value* ones = broadcast(onnx, one, onnx.sizes(self));
      Value* counts = with_self ? ones : write(ones, whole(onnx.integer(DType::Int64, 0)));
      y = divided(y, write(counts, whole(one), Reduce::Sum));
    }
    return onnx.cast(y, own);
  }

  /// PyTorch's extremes are NaN where one of the elements is.
  Value* with_nan(Value* start, Value* src, Value* y) const {
    const DType dtype = onnx.dtype(y);
    if (!is_float(dtype)) return y;
    const auto is_nan = [&](Value* x) { return onnx.cast(onnx("IsNaN", {x}), DType::Int32); };
    Value* any = write(is_nan(start), is_nan(src), Reduce::Max);
    return onnx.where(onnx.cast(any, DType::Bool), onnx.number(dtype, std::numeric_limits<double>::quiet_NaN()), y);
  }
};

/// `src` may be larger than the index, which says how much of it counts.
Value* as_large_as(OnnxBuilder& onnx, Value* src, Value* index) {
  const Shape &given = onnx.shape(src), &wanted = onnx.shape(index);
  for (size_t i = 0; i < wanted.size() && i < given.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (!(given[i] == wanted[i])) src = onnx.slice(src, axis, 0, onnx.size(index, axis));
  }
  return src;
}

Value* with_rank_of(const AtenNode& n, OnnxBuilder& onnx, Value* y) {
  return n.rank("self") == 0 ? onnx.reshape(y, Shape{}) : y;
}

/// scatter.src, .value, .reduce, .value_reduce, scatter_add, scatter_reduce: one index for each element.
Values scattered(const AtenNode& n, OnnxBuilder& onnx, const char* source, Reduce reduce, bool with_self) {
  const int64_t dim = n.dim("dim", "self");
  const DType dtype = n.dtype("self");
  Value* self = at_least_1d(onnx, n.input("self"));
  const Scatter scatter{n, onnx, dim, at_least_1d(onnx, n.input_as("index", DType::Int64))};
  if (element_count(n.shape("index")) == 0) {
    n.ignore({source});
    return n.input("self");
  }
  Value* src = n.input_as(source, dtype);
  const auto rank = [&](const char* name) { return std::max<int64_t>(n.rank(name), 1); };
  src = n.is_tensor(source) && rank(source) == rank("index") ? as_large_as(onnx, at_least_1d(onnx, src), scatter.index)
                                                             : scatter.whole(src);
  Value* y = reduce == Reduce::None ? scatter.write(self, src) : scatter.reduced(self, src, reduce, with_self);
  return with_rank_of(n, onnx, y);
}

/// index_add, index_copy ...: a list of places in one dimension, each for a whole part of the source.
Value* written_rows(const AtenNode& n, OnnxBuilder& onnx, Value* source, Reduce reduce, bool with_self = true) {
  const int64_t dim = n.dim("dim", "self");
  Value* self = at_least_1d(onnx, n.input("self"));
  Value* index = at_least_1d(onnx, n.input_as("index", DType::Int64));
  if (onnx.rank(source) < onnx.rank(self)) source = onnx.unsqueeze(source, {dim});
  if (element_count(onnx.shape(index)) == 0) return n.input("self");
  const bool in_parts = reduce == Reduce::None || (reduce == Reduce::Sum && with_self);
  if (dim == 0 && in_parts) {
    const DType own = onnx.dtype(self);
    const DType dtype = reduce == Reduce::None ? own : scatter_dtype(own);
    std::vector<Attribute> attributes;
    if (reduce == Reduce::Sum) {
      require_opset(n, onnx, 16, "an index that adds");
      attributes.push_back({"reduction", std::string("add"), AttrType::None, {}, {}});
    }
    Value* y = onnx("ScatterND", {onnx.cast(self, dtype), onnx.unsqueeze(index, {1}), onnx.cast(source, dtype)},
                    std::move(attributes));
    return with_rank_of(n, onnx, onnx.cast(y, own));
  }
  IntArgs line(static_cast<size_t>(onnx.rank(self)), IntArg(1));
  line[static_cast<size_t>(dim)] = -1;
  Value* places = onnx("Expand", {onnx.reshape(index, line), onnx.list(onnx.sizes(source))});
  const Scatter scatter{n, onnx, dim, places};
  Value* y = reduce == Reduce::None ? scatter.write(self, source) : scatter.reduced(self, source, reduce, with_self);
  return with_rank_of(n, onnx, y);
}

}  // namespace

Values raise_scatter(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string_view overload = n.node().overload.view();
  const char* source = overload.starts_with("value") ? "value" : "src";
  const bool reduces = overload.ends_with("reduce");
  return scattered(n, onnx, source, reduces ? reduce_of(n, n.s("reduce")) : Reduce::None, true);
}

Values raise_scatter_add(const AtenNode& n, OnnxBuilder& onnx) { return scattered(n, onnx, "src", Reduce::Sum, true); }

Values raise_scatter_reduce(const AtenNode& n, OnnxBuilder& onnx) {
  return scattered(n, onnx, "src", reduce_of(n, n.s("reduce")), n.flag("include_self"));
}

Values raise_index_add(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.dtype("self");
  Value* source = n.input_as("source", dtype);
  if (n.f("alpha") != 1) source = onnx("Mul", {source, n.input_as("alpha", dtype)});
  return written_rows(n, onnx, source, Reduce::Sum);
}

Values raise_index_fill(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  Value* self = at_least_1d(onnx, n.input("self"));
  IntArgs sizes = onnx.sizes(self);
  Value* index = at_least_1d(onnx, n.input("index"));
  sizes[static_cast<size_t>(dim)] = onnx.size(index, 0);
  return written_rows(n, onnx, broadcast(onnx, n.input_as("value", n.dtype("self")), sizes), Reduce::None);
}

namespace {

Values raise_index_copy(const AtenNode& n, OnnxBuilder& onnx) {
  return written_rows(n, onnx, n.input_as("source", n.dtype("self")), Reduce::None);
}

Values raise_index_reduce(const AtenNode& n, OnnxBuilder& onnx) {
  return written_rows(n, onnx, n.input_as("source", n.dtype("self")), reduce_of(n, n.s("reduce")),
                      n.flag("include_self"));
}

/// Places in the tensor as if it were one line.
Values raise_put(const AtenNode& n, OnnxBuilder& onnx) {
  const bool adds = n.flag("accumulate");
  if (adds) require_opset(n, onnx, 16, "put that adds");
  const DType own = n.dtype("self"), dtype = adds ? scatter_dtype(own) : own;
  Value* index = onnx.reshape(n.input_as("index", DType::Int64), IntArgs{-1, 1});
  Value* source = flat(onnx, n.input_as("source", dtype));
  Value* line = flat(onnx, n.input_as("self", dtype));
  std::vector<Attribute> attributes;
  if (adds) attributes.push_back({"reduction", std::string("add"), AttrType::None, {}, {}});
  Value* y = onnx("ScatterND", {line, index, source}, std::move(attributes));
  return onnx.cast(onnx.reshape(y, n.output_shape()), own);
}

constexpr AtenOp kAtenScatterAten[] = {
    {.sig = "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
     .types = types_as_self,
     .python = "torch.scatter",
     .raise = raise_scatter},
    {.sig = "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
     .types = types_as_self,
     .python = "torch.scatter",
     .raise = raise_scatter},
    {.sig = "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
     .types = types_as_self,
     .python = "torch.index_copy",
     .raise = raise_index_copy,
     .raise_complex = raise_each_part},
    {.sig = "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.index_fill",
     .raise = raise_index_fill,
     .raise_complex = raise_each_part},
    {.sig = "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
            "include_self=True) -> Tensor",
     .types = types_as_self,
     .python = "torch.index_reduce",
     .raise = raise_index_reduce},
    {.sig = "aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
     .types = types_as_self,
     .python = ".put",
     .raise = raise_put},
};

}  // namespace

extern const OpFamily kAtenScatterOps;
constinit const OpFamily kAtenScatterOps{"aten_scatter", {}, kAtenScatterAten};

}  // namespace tonnx
