// raise.cpp - PyTorch's searches, distinct elements and repetitions as ONNX.
#include "ops/frame/complex_parts.h"
#include "ops/move/rows.h"
#include "ops/search/rows.h"

namespace tonnx {

Value* count_before(OnnxBuilder& onnx, Value* edges, Value* values, bool with_equal) {
  const DType dtype = promote(onnx.dtype(edges), onnx.dtype(values));
  const DType kernel = kernel_dtype("Less", dtype);
  edges = onnx.cast(edges, kernel);
  values = onnx.cast(values, kernel);
  const int64_t rank = onnx.rank(edges);
  if (rank > 1) edges = onnx.unsqueeze(edges, {rank - 1});
  Value* spread = onnx.unsqueeze(values, {onnx.rank(values)});
  Value* before = is_float(dtype)  // not less, as NaN is neither
                      ? onnx("Not", {onnx(with_equal ? "Greater" : "GreaterOrEqual", {edges, spread})})
                      : onnx(with_equal ? "LessOrEqual" : "Less", {edges, spread});
  return onnx.reduce("ReduceSum", onnx.cast(before, DType::Int64), {onnx.rank(values)}, false);
}

namespace {

Value* found(const AtenNode& n, OnnxBuilder& onnx, Value* edges, Value* values, bool with_equal) {
  return onnx.cast(count_before(onnx, edges, values, with_equal), n.flag("out_int32") ? DType::Int32 : DType::Int64);
}

}  // namespace

Values raise_searchsorted(const AtenNode& n, OnnxBuilder& onnx) {
  const bool right = n.flag("right") || n.find_s("side").value_or("left") == "right";
  Value* edges = n.input("sorted_sequence");
  if (n.has("sorter")) {
    const int64_t axis = onnx.rank(edges) - 1;
    edges = onnx("GatherElements", {edges, n.input_as("sorter", DType::Int64)}, {{"axis", axis}});
  }
  Value* values = n.input("self");
  return found(n, onnx, edges, values, right);
}

namespace {

Values raise_bucketize(const AtenNode& n, OnnxBuilder& onnx) {
  return found(n, onnx, n.input("boundaries"), n.input("self"), n.flag("right"));
}

Values raise_isin(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"assume_unique"});
  const std::string_view overload = n.node().overload.view();
  const char* left = overload.starts_with("Scalar") ? "element" : "elements";
  const char* right = overload.ends_with("Scalar") ? "test_element" : "test_elements";
  const DType dtype = kernel_dtype("Equal", n.promoted({left, right}));
  Value *x = n.input_as(left, dtype), *tests = n.input_as(right, dtype);
  tests = onnx.rank(tests) == 0 ? onnx.unsqueeze(tests, {0}) : flat(onnx, tests);
  const int64_t rank = onnx.rank(x);
  Value* equal = onnx.cast(onnx("Equal", {onnx.unsqueeze(x, {rank}), tests}), DType::Int64);
  Value* any = onnx.cast(onnx.reduce("ReduceSum", equal, {rank}, false), DType::Bool);
  return n.flag("invert") ? onnx("Not", {any}) : any;
}

/// What was not asked for is a list of nothing.
Value* not_asked(const AtenNode& n, OnnxBuilder& onnx, size_t i) {
  return n.output_count() > i && n.wants_output(i) ? onnx.ints({}) : nullptr;
}

/// 1 where an element differs from the one before it: [length], of which the first is always 1.
Value* changes(OnnxBuilder& onnx, Value* x, int64_t axis) {
  const DType kernel = kernel_dtype("Equal", onnx.dtype(x));
  x = onnx.cast(x, kernel);
  Value* same = onnx("Equal", {onnx.slice(x, axis, 1, kEnd), onnx.slice(x, axis, 0, -1)});
  Value* differs = onnx.cast(onnx("Not", {same}), DType::Int64);
  std::vector<int64_t> others;
  for (int64_t i = 0; i < onnx.rank(x); ++i) {
    if (i != axis) others.push_back(i);
  }
  if (!others.empty()) differs = onnx.reduce("ReduceMax", differs, others, false);
  return onnx.concat({onnx.ints({1}), differs}, 0);
}

Values raise_unique_consecutive(const AtenNode& n, OnnxBuilder& onnx) {
  const bool has_dim = n.has("dim");
  Value* x = has_dim ? n.input("self") : flat(onnx, n.input("self"));
  const int64_t axis = has_dim ? n.dim("dim", "self") : 0;
  const bool gives_inverse = n.flag("return_inverse"), gives_counts = n.flag("return_counts");
  const auto size = onnx.shape(x).at(static_cast<size_t>(axis)).constant();
  if (size && *size == 0) {
    Value* inverse = n.wants_output(1) ? filled(onnx, onnx.ints_of(n.output_shape(1)), DType::Int64, 0) : nullptr;
    return {x, inverse, not_asked(n, onnx, 2)};
  }
  Value* starts = changes(onnx, x, axis);
  Value* values = in_kernel_dtype(onnx, "Compress", {x}, {onnx.cast(starts, DType::Bool)}, {{"axis", axis}});
  Value *inverse = not_asked(n, onnx, 1), *counts = not_asked(n, onnx, 2);
  if (gives_inverse) {
    Value* run = onnx("CumSum", {starts, onnx.integer(DType::Int64, 0)});
    inverse = onnx.reshape(onnx("Sub", {run, onnx.integer(DType::Int64, 1)}), n.output_shape(1));
  }
  if (gives_counts) {
    Value* begins = flat(onnx, onnx("NonZero", {starts}));
    Value* ends = onnx.concat({onnx.slice(begins, 0, 1, kEnd), onnx.list(onnx.size(x, axis))}, 0);
    counts = onnx("Sub", {ends, begins});
  }
  return {values, inverse, counts};
}

/// Unique's outputs: the elements, where each first is, which of them each is, and how often.
Values unique(const AtenNode& n, OnnxBuilder& onnx, std::vector<Attribute> attributes) {
  Value* x = n.input("self");
  const DType own = onnx.dtype(x);
  if (n.rank("self") == 0) x = onnx.unsqueeze(x, {0});
  return onnx.all(4, "Unique", {onnx.cast(x, kernel_dtype("Unique", own))}, std::move(attributes));
}

}  // namespace

Values raise_unique(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"sorted"});
  const bool gives_inverse = n.flag("return_inverse");
  const bool gives_counts = n.output_count() > 2 && n.flag("return_counts");
  const Values all = unique(n, onnx, {});
  return {onnx.cast(all[0], n.dtype("self")),
          gives_inverse ? onnx.reshape(all[2], n.output_shape(1)) : not_asked(n, onnx, 1),
          gives_counts ? all[3] : not_asked(n, onnx, 2)};
}

Values raise_unique_dim(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"sorted"});
  const bool gives_inverse = n.flag("return_inverse"), gives_counts = n.flag("return_counts");
  const Values all = unique(n, onnx, {{"axis", n.dim("dim", "self")}});
  return {onnx.cast(all[0], n.dtype("self")), gives_inverse ? all[2] : not_asked(n, onnx, 1),
          gives_counts ? all[3] : not_asked(n, onnx, 2)};
}

namespace {

Value* interleaved(OnnxBuilder& onnx, Value* x, Value* repeats, int64_t dim) {
  // each place as often as its number says: the rows of a table that are true that often
  Value* most = onnx.reduce("ReduceMax", onnx.concat({onnx.ints({0}), repeats}, 0), {0}, true);
  Value* table = onnx("Less", {range_on(onnx, IntArg(most), 1, 2), onnx.unsqueeze(repeats, {1})});
  Value* places = onnx.gather(onnx("NonZero", {table}), onnx.integer(DType::Int64, 0), 0);
  return x == nullptr ? places : onnx.gather(x, places, dim);
}

Values raise_repeat_interleave_places(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"output_size"});
  return onnx.cast(interleaved(onnx, nullptr, n.input_as("repeats", DType::Int64), 0), n.output_dtype());
}

Values raise_repeat_interleave_tensor(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"output_size"});
  const bool has_dim = n.has("dim") && n.rank("self") > 0;
  if (!has_dim) n.ignore({"dim"});
  Value* x = has_dim ? n.input("self") : flat(onnx, n.input("self"));
  const int64_t dim = has_dim ? n.dim("dim", "self") : 0;
  Value* repeats = flat(onnx, n.input_as("repeats", DType::Int64));
  if (onnx.shape(repeats)[0].is(1)) repeats = onnx("Expand", {repeats, onnx.list(onnx.size(x, dim))});
  return interleaved(onnx, x, repeats, dim);
}

}  // namespace

Values raise_repeat_interleave(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"output_size"});
  const IntArg repeats = n.int_arg("repeats");
  const bool has_dim = n.has("dim") && n.rank("self") > 0;
  if (!has_dim) n.ignore({"dim"});
  Value* x = has_dim ? n.input("self") : flat(onnx, n.input("self"));
  const int64_t dim = has_dim ? n.dim("dim", "self") : 0;
  if (repeats.is(1)) return x;
  IntArgs sizes(static_cast<size_t>(onnx.rank(x) + 1), IntArg(1));
  sizes[static_cast<size_t>(dim + 1)] = repeats;
  return onnx.reshape(broadcast(onnx, onnx.unsqueeze(x, {dim + 1}), sizes), n.output_shape());
}

namespace {

constexpr AtenOp kAtenSearchAten[] = {
    {.sig = "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
            "str? side=None, Tensor? sorter=None) -> Tensor",
     .types = types_bucketize,
     .python = "torch.searchsorted",
     .raise = raise_searchsorted},
    {.sig = "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
            "Tensor",
     .types = types_bucketize,
     .python = "torch.bucketize",
     .raise = raise_bucketize},
    {.sig = "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
            "Tensor",
     .types = types_bucketize,
     .python = "torch.bucketize",
     .raise = raise_bucketize},
    {.sig = "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
            "invert=False) -> Tensor",
     .types = types_isin,
     .python = "torch.isin",
     .raise = raise_isin},
    {.sig = "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
            "invert=False) -> Tensor",
     .types = types_isin,
     .python = "torch.isin",
     .raise = raise_isin},
    {.sig = "aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
            "invert=False) -> Tensor",
     .types = types_isin,
     .python = "torch.isin",
     .raise = raise_isin},
    {.sig = "aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
     .python = "torch.ops.aten._unique",
     .raise = raise_unique},
    {.sig = "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) "
            "-> (Tensor, Tensor, Tensor)",
     .python = "torch.ops.aten.unique_consecutive",
     .raise = raise_unique_consecutive},
    {.sig = "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) "
            "-> (Tensor, Tensor, Tensor)",
     .python = "torch.ops.aten.unique_dim_consecutive",
     .raise = raise_unique_consecutive},
    {.sig = "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
     .types = types_repeat_interleave,
     .python = "torch.repeat_interleave",
     .raise = raise_repeat_interleave_places},
    {.sig = "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
            "output_size=None) -> Tensor",
     .types = types_repeat_interleave,
     .python = "torch.repeat_interleave",
     .raise = raise_repeat_interleave_tensor,
     .raise_complex = raise_each_part},
};

}  // namespace

extern const OpFamily kAtenSearchOps;
constinit const OpFamily kAtenSearchOps{"aten_search", {}, kAtenSearchAten};

}  // namespace tonnx
