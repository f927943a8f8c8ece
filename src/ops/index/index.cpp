// index.cpp - elements taken by index: Gather and its kin, NonZero, OneHot.
#include "ops/index/index.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/quantized.h"
#include "ops/frame/rank_choice.h"
#include "ops/frame/same_value.h"
#include "ops/index/rows.h"
#include "ops/move/rows.h"

namespace tonnx {

bool counts_from_front(const NodeView& n, std::string_view indices) {
  const Value* value = n.value(indices);
  if (const auto ints = n.find_const_ints(indices)) {
    return std::all_of(ints->begin(), ints->end(), [](int64_t i) { return i >= 0; });
  }
  if (is_unsigned(value->type.dtype)) return true;
  const Node* maker = value->producer;
  if (maker == nullptr || !maker->domain.empty()) return false;
  const std::string_view op = maker->op.view();
  if (op == "Gather" && maker->input(0) && maker->input(0)->constant) {  // looked up in a table
    const auto table = ints_of(*maker->input(0)->constant, INT64_MAX);
    return table && std::all_of(table->begin(), table->end(), [](int64_t i) { return i >= 0; });
  }
  return (op == "TopK" && value->output_index == 1) || op == "ArgMax" || op == "ArgMin" || op == "NonZero";
}

Value* index_from_front(const OnnxNode& n, AtenBuilder& aten, std::string_view indices, const IntArg& size) {
  Value* index = n.input(indices);
  if (counts_from_front(n, indices)) return index;
  if (const auto ints = n.find_const_ints(indices); ints && size.value == nullptr) {
    std::vector<int64_t> counted = *ints;
    for (int64_t& i : counted) i = i < 0 ? i + size.number : i;
    auto tensor = std::make_shared<Tensor>(*make_ints(std::move(counted)));
    if (const TensorPtr given = n.find_constant(indices)) tensor->dims = given->dims;
    return aten.constant(tensor, "index");
  }
  return aten("remainder.Scalar", index, size);
}

std::optional<int64_t> find_index_depth(const NodeView& n, std::string_view indices) {
  const Shape* shape = n.find_shape(indices);
  return shape && !shape->empty() ? shape->back().constant() : std::nullopt;
}

int64_t index_depth(const NodeView& n, std::string_view indices) {
  const auto depth = find_index_depth(n, indices);
  if (!depth) fail_unsupported("the last size of '{}' is not known", indices);
  require(*depth >= 1 && *depth <= kMaxRank, "the last size of '{}' is {}", indices, *depth);
  return *depth;
}

std::vector<Value*> index_columns(const OnnxNode& n, AtenBuilder& aten, std::string_view indices) {
  const int64_t depth = index_depth(n, indices);
  if (depth == 1) return {aten("squeeze.dim", n.input(indices), -1)};
  return aten.list(static_cast<size_t>(depth), "unbind.int", n.input(indices), -1);
}

namespace {

void infer_gather(InferNode& n) {
  const Shape* data = n.find_shape("data");
  const Shape* indices = n.find_shape("indices");
  if (!data || !indices) return n.set(0, n.dtype("data"), std::nullopt);
  const auto axis = n.axis("axis", "data");
  Shape result(data->begin(), data->begin() + axis);
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), data->begin() + axis + 1, data->end());
  n.set(0, n.dtype("data"), std::move(result));
  const auto known = n.find_dims("data");
  const auto wanted = n.find_const_ints("indices");
  if (wanted && wanted->size() == 1 && indices->size() <= 1 && find_shape_of_any_rank(n.value("data")))
    return n.set_dims({n.fresh()});
  if (!known || !wanted || data->size() != 1 || indices->size() > 1) return;
  Dims elements;
  const auto count = static_cast<int64_t>(known->size());
  for (const int64_t i : *wanted) {
    require(i >= -count && i < count, "index {} is out of range for {} elements", i, count);
    elements.push_back((*known)[static_cast<size_t>(i < 0 ? i + count : i)]);
  }
  n.set_dims(std::move(elements));
}

/// `x[:, 3]`, `x[:, 1:3]`, or a constant index.
Value* gather_constant(const OnnxNode& n, AtenBuilder& aten, std::vector<int64_t> indices, int64_t dim) {
  Value* x = n.input("data");
  const Shape* shape = n.find_shape("data");
  const auto size = shape ? (*shape)[static_cast<size_t>(dim)].constant() : std::nullopt;
  for (int64_t& i : indices) {
    require(!size || (i >= -*size && i < *size), "index {} is out of range for size {}", i, size.value_or(0));
    if (size && n.find_rank("indices") == 1 && i < 0) i += *size;
  }
  if (n.find_rank("indices") == 0) return aten("select.int", x, dim, indices.at(0));
  bool is_range = !indices.empty() && indices[0] >= 0;
  for (size_t i = 1; i < indices.size(); ++i) is_range = is_range && indices[i] > 0 && indices[i] - 1 == indices[i - 1];
  if (is_range && indices.back() < std::numeric_limits<int64_t>::max()) {
    if (size == static_cast<int64_t>(indices.size())) return x;
    return aten("slice.Tensor", x, dim, indices.front(), indices.back() + 1);
  }
  if (std::any_of(indices.begin(), indices.end(), [](int64_t i) { return i < 0; })) return nullptr;
  return selected_along(aten, x, n.dtype("data"), dim, aten.constant(make_ints(std::move(indices)), "index"));
}

/// Whether integers may well be negative: differences, and numbers that were floats, seen through what only moves them.
bool may_be_negative(const Value* value) {
  constexpr int kSteps = 32;
  for (int step = 0; step < kSteps && value && value->producer; ++step) {
    const Node& node = *value->producer;
    const std::string_view op = node.op.view();
    if (op == "Sub" || op == "Neg") return true;
    if (op == "Cast" && node.input(0) && is_float(node.input(0)->type.dtype)) return true;
    const bool moves = op == "Cast" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Identity" ||
                       op == "Transpose" || op == "Slice" || op == "Flatten" || op == "Expand" || op == "Split" ||
                       op == "Concat" || op == "Tile";
    if (!moves) return false;
    value = node.input(0);
  }
  return false;
}

/// A table that is looked up. nn.Embedding takes no negative ids, which count from the back elsewhere.
bool is_embedding(const NodeView& n, int64_t dim) {
  const Value* weight = n.value("data");
  return dim == 0 && weight->constant && weight->producer == nullptr && weight->constant->dims.size() == 2 &&
         is_float(weight->constant->dtype) && n.find_rank("indices") != 0 &&
         (counts_from_front(n, "indices") || (!n.find_const_ints("indices") && !may_be_negative(n.value("indices"))));
}

Values lower_gather(const OnnxNode& n, AtenBuilder& aten) {
  if (const auto wanted = n.find_const_ints("indices"); wanted && n.node().output(0)->known_ints) {
    return aten("sym_size.int", tensor_of(aten, find_shape_of_any_rank(n.value("data"))), wanted->at(0));
  }
  const int64_t dim = n.axis_of_any_rank("axis", "data");
  if (dim < 0) fail_unsupported("the rank of the data is not known, and the axis is counted from the back");
  if (is_embedding(n, dim)) return aten("embedding", n.input("data"), n.input("indices"));
  const auto constant = n.find_const_ints("indices");
  if (constant && n.find_rank("indices").value_or(2) <= 1) {
    if (Value* taken = gather_constant(n, aten, *constant, dim)) return taken;
  } else if (n.find_dims("indices") && n.find_rank("indices") == 0) {
    return aten("select.int", n.input("data"), dim, n.int_arg("indices"));
  }
  std::vector<Value*> index(static_cast<size_t>(dim), nullptr);
  index.push_back(n.input("indices"));
  return aten("index.Tensor", n.input("data"), index);
}

/// Rows of a quantised table are dequantised once they are taken, and not the whole table.
bool expand_gather_of_quantised(OnnxEdit& edit) {
  const Quantized table = dequantized_from(edit.node().input(0));
  if (!table || !table.x->constant || !table.is_per_tensor()) return false;
  std::vector<Attribute> attributes = edit.node().attributes;
  Value* rows = edit.before("Gather", {table.x, edit.node().input(1)}, std::move(attributes));
  return edit.replace_with({edit.before("DequantizeLinear", {rows, table.scale, table.zero_point})});
}

/// Indexing is written behind the dimensions in front of it.
bool expand_gather_of_any(const NodeView& n, OnnxEdit& edit) {
  if (expand_gather_of_quantised(edit)) return true;
  const int64_t axis = n.i("axis");
  return axis < 0 && choose_rank(edit, n, {"data"}, ranks_with(axis, 5));
}

void infer_gather_elements(InferNode& n) {
  const Shape* indices = n.find_shape("indices");
  n.set(0, n.dtype("data"), indices ? std::optional(*indices) : std::nullopt);
}

Values lower_gather_elements(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t dim = n.axis_of_any_rank("axis", "data");
  const DType dtype = n.dtype("data"), kernel = kernel_type(dtype);
  Value* index = index_from_front(n, aten, "indices", n.size("data", dim));
  return cast(aten, aten("gather", cast(aten, n.input("data"), dtype, kernel), dim, index), kernel, dtype);
}

void infer_gather_nd(InferNode& n) {
  const Shape* data = n.find_shape("data");
  const Shape* indices = n.find_shape("indices");
  if (!data || !indices || indices->empty() || !indices->back().is_constant()) {
    return n.set(0, n.dtype("data"), std::nullopt);
  }
  const int64_t batch = n.i("batch_dims"), depth = index_depth(n, "indices");
  const auto rank = static_cast<int64_t>(data->size());
  require(batch >= 0 && batch < static_cast<int64_t>(indices->size()) && batch <= rank - depth,
          "batch_dims {} and indices of {} do not fit data of rank {}", batch, depth, rank);
  Shape result(indices->begin(), indices->end() - 1);
  result.insert(result.end(), data->begin() + batch + depth, data->end());
  n.set(0, n.dtype("data"), std::move(result));
}

/// Indices of batches whose number of dimensions only the run knows: the place of each in its batch goes in front.
Value* with_batches(const OnnxNode& n, AtenBuilder& aten, int64_t batch) {
  Value* ones = aten("ones_like", aten("select.int", n.input("indices"), -1, 0));
  std::vector<Value*> parts;
  for (int64_t d = 0; d < batch; ++d) {
    parts.push_back(aten("unsqueeze", aten("sub.Scalar", aten("cumsum", ones, d), 1), -1));
  }
  parts.push_back(n.input("indices"));
  return aten("cat", parts, -1);
}

Values lower_gather_nd(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t batch = n.i("batch_dims");
  require(batch >= 0 && batch < kMaxRank, "batch_dims {} is out of range", batch);
  if (!find_index_depth(n, "indices") || (batch > 0 && !n.find_rank("data"))) {
    Value* indices = batch == 0 ? n.input("indices") : with_batches(n, aten, batch);
    return aten("tonnx::index_each", n.input("data"), indices);
  }
  const int64_t index_rank = n.rank("indices") - 1, depth = index_depth(n, "indices");
  require(batch >= 0 && batch <= index_rank && (batch == 0 || batch + depth <= n.rank("data")),
          "batch_dims {} is out of range", batch);
  std::vector<Value*> index;
  for (int64_t d = 0; d < batch; ++d) {  // each element of a batch looks into its own part of the data
    Value* each = aten("arange", n.size("data", d));
    IntArgs sizes{-1};
    sizes.resize(static_cast<size_t>(index_rank - d), 1);
    index.push_back(index_rank - d > 1 ? aten("reshape", each, sizes) : each);
  }
  for (Value* column : index_columns(n, aten, "indices")) index.push_back(column);
  return aten("index.Tensor", n.input("data"), index);
}

void infer_non_zero(InferNode& n) {
  const auto rank = n.find_rank("X");
  n.set(0, DType::Int64, Shape{rank ? Dim(*rank) : n.fresh(), n.fresh()});
}

Values lower_non_zero(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("X");
  if (kernel_type(n.dtype("X")) != n.dtype("X")) x = aten("ne.Scalar", x, 0);
  return aten("t", aten("nonzero", x));
}

std::optional<Dim> find_depth(const NodeView& n) {
  if (const TensorPtr constant = n.find_constant("depth"); constant && is_float(constant->dtype)) {
    require(constant->count() == 1, "depth has {} elements where one is needed", constant->count());
    const double depth = element_as_double(*constant, 0);
    require(depth >= 0 && depth < 9e18, "a depth of {}", depth);
    return Dim(static_cast<int64_t>(depth));
  }
  const auto dims = n.find_dims("depth");
  if (!dims) return std::nullopt;
  require(dims->size() == 1, "depth has {} elements where one is needed", dims->size());
  require(!dims->front().is_constant() || *dims->front().constant() >= 0, "a depth of {}", dims->front().text());
  return dims->front();
}

void infer_one_hot(InferNode& n) {
  const Shape* indices = n.find_shape("indices");
  if (indices == nullptr) return n.set(0, n.dtype("values"), std::nullopt);
  const auto rank = indices->size() + 1;
  const int64_t axis = NodeView::normalized(n.i("axis"), static_cast<int64_t>(rank));
  const auto depth = find_depth(n);
  Shape result = *indices;
  result.insert(result.begin() + axis,
                depth ? *depth : n.declared_or_fresh(0, static_cast<size_t>(axis), rank, *indices));
  n.set(0, n.dtype("values"), std::move(result));
}

IntArg depth_of(const OnnxNode& n, AtenBuilder& aten, int64_t axis) {
  if (const auto depth = find_depth(n)) return n.int_arg(*depth);
  if (axis >= 0 && n.output_type().shape) {
    if (const auto depth = n.output_type().shape->at(static_cast<size_t>(axis)).constant()) return *depth;
  }
  Value* depth = n.input("depth");
  return aten("tonnx::item", is_integer(n.dtype("depth")) ? depth : aten("to.dtype", depth, DType::Int64));
}

/// Not F.one_hot, which refuses an index that is negative or past the end: there ONNX has a row of the off value.
Values lower_one_hot(const OnnxNode& n, AtenBuilder& aten) {
  const auto rank = n.find_rank("indices");
  const int64_t axis = rank ? NodeView::normalized(n.i("axis"), *rank + 1) : n.i("axis");
  if (axis != -1) n.rank("indices");
  const IntArg depth = depth_of(n, aten, axis);
  Value* index = n.input("indices");
  const DType dtype = n.dtype("indices");
  index = cast(aten, index, dtype, is_float(dtype) ? DType::Int64 : kernel_type(dtype));
  if (!counts_from_front(n, "indices")) {
    index = aten("where.self", aten("lt.Scalar", index, 0), aten("add.Scalar", index, depth), index);
  }
  Value* classes = aten("arange", depth);
  if (rank && axis < *rank) {
    IntArgs sizes{-1};
    sizes.resize(static_cast<size_t>(*rank - axis + 1), 1);
    classes = aten("reshape", classes, sizes);
  }
  Value* is_on = aten("eq.Tensor", aten("unsqueeze", index, axis), classes);
  const DType result = n.dtype("values");
  const auto constant = n.find_const_floats("values");
  require(!constant || constant->size() == 2, "values has {} elements where 2 are needed",
          constant ? constant->size() : 0);
  const auto ints = n.find_const_ints("values");
  if ((constant && *constant == std::vector{0.0, 1.0}) || (ints && *ints == std::vector<int64_t>{0, 1})) {
    return cast(aten, is_on, DType::Bool, result);
  }
  Value* values = n.input("values");
  return aten("where.self", is_on, aten("select.int", values, 0, 1), aten("select.int", values, 0, 0));
}

/// `i, :, j`: an index for each dimension, a full slice where there is none.
std::string index_text(const Emission& e) {
  std::vector<std::string> texts = e.items("indices");
  for (std::string& text : texts) {
    if (text == "None") text = ":";
  }
  while (texts.size() > 1 && texts.back() == ":") texts.pop_back();
  return joined(texts);
}

std::string emit_index(const Emission& e) { return e.text("self", precedence::kAtom) + "[" + index_text(e) + "]"; }

/// What lies along the last dimension of the indices is one for each of the first dimensions, however many they are.
std::string emit_index_each(const Emission& e) {
  return fmt::format("{}[{}.unbind(-1)]", e.text("self", precedence::kAtom), e.text("indices", precedence::kAtom));
}

std::string emit_embedding(const Emission& e) {
  return fmt::format("F.embedding({}, {})", e.text("indices"), e.text("weight"));
}

std::optional<ModuleSpec> module_embedding(const Emission& e) {
  Value* weight = e.value("weight");
  if (weight == nullptr || !weight->constant) return std::nullopt;
  const auto& dims = weight->constant->dims;
  ModuleSpec spec{.type = "nn.Embedding", .inputs = {"indices"}, .short_name = "embedding"};
  spec.arguments = fmt::format("{}, {}", dims[0], dims[1]);
  spec.weights.push_back({"weight", weight});
  return spec;
}

/// Before opset 11 an index is counted from the front only. What indices the run brings nobody knows.
template <size_t Indices>
void down_from_front(OnnxEdit& edit) {
  const auto indices = edit.const_ints(Indices);
  if (indices && std::any_of(indices->begin(), indices->end(), [](int64_t i) { return i < 0; })) {
    edit.cannot("opset 10 has no negative indices");
  }
}

constexpr OpsetStep kGatherHistory[] = {{.to = 11, .down = down_from_front<1>}, {.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kTypesHistory[] = {{.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kGatherNdHistory[] = {
    {.to = 12, .down = down_require_default<"batch_dims", 0>},
    {.to = 13, .adds = kBFloat16},
};
constexpr OpsetStep kOneHotHistory[] = {{.to = 11, .down = down_from_front<0>}, {.to = 28, .adds = kBFloat16}};

/// Gather of all, in order
Value* same_of_gather(const Node& node) {
  if (!keeps_type(node)) return nullptr;
  const auto indices = ints_of(node, "indices");
  const auto& shape = *node.input(0)->type.shape;
  const auto axis = from_front(int_of(node, "axis").value_or(0), static_cast<int64_t>(shape.size()));
  if (!indices || !axis) return nullptr;
  const auto size = static_cast<int64_t>(indices->size());
  if (!shape[static_cast<size_t>(*axis)].is(size)) return nullptr;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t index = (*indices)[static_cast<size_t>(i)];
    if (index != i && index != i - size) return nullptr;
  }
  return node.input(0);
}

constexpr OnnxOp kIndexOnnx[] = {
    {.sig = "Gather(T data, Tind indices, *, int axis=0) -> T output",
     .since = 1,
     .traits = kTakesStrings | kMoves,
     .history = kGatherHistory,
     .infer = infer_gather,
     .open = open_gather,
     .eval = eval_gather,
     .same = same_of_gather,
     .lower = lower_gather,
     .expand = expand_gather_of_any},
    {.sig = "GatherElements(T data, Tind indices, *, int axis=0) -> T output",
     .since = 11,
     .traits = kTakesStrings,
     .history = kTypesHistory,
     .infer = infer_gather_elements,
     .open = open_gather_elements,
     .eval = eval_gather_elements,
     .lower = lower_gather_elements},
    {.sig = "GatherND(T data, tensor(int64) indices, *, int batch_dims=0) -> T output",
     .since = 11,
     .traits = kTakesStrings,
     .history = kGatherNdHistory,
     .infer = infer_gather_nd,
     .open = open_gather_nd,
     .eval = eval_gather_nd,
     .lower = lower_gather_nd},
    {.sig = "NonZero(T X) -> tensor(int64) Y",
     .since = 9,
     .traits = kBounded | kTakesStrings,
     .runtime = {kWideInts | kBool | dtype_set(DType::UInt8), 0, false},
     .history = kTypesHistory,
     .infer = infer_non_zero,
     .eval = eval_non_zero,
     .lower = lower_non_zero},
    {.sig = "OneHot(T1 indices, T2 depth, T3 values, *, int axis=-1) -> T3 output",
     .since = 9,
     .traits = kTakesStrings,
     .history = kOneHotHistory,
     .infer = infer_one_hot,
     .eval = eval_one_hot,
     .lower = lower_one_hot,
     .expand = expand_by_rank<"indices", 0, 5>},
};

constexpr AtenOp kIndexAten[] = {
    {.sig = "tonnx::index_each(Tensor self, Tensor indices) -> Tensor", .emit = emit_index_each},
    {.sig = "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
     .types = types_index_select,
     .python = "torch.index_select",
     .raise = raise_index_select},
    {.sig = "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
     .types = types_gather,
     .python = "torch.gather",
     .raise = raise_gather,
     .raise_complex = raise_each_part},
    {.sig = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     .types = types_index,
     .layout = Layout::Inputs,
     .emit = emit_index,
     .raise = raise_index},
    {.sig = "aten::nonzero(Tensor self) -> Tensor",
     .types = types_nonzero,
     .layout = Layout::Own,
     .python = "torch.nonzero",
     .raise = raise_nonzero,
     .raise_complex = raise_with_flags},
    {.sig = "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
            "sparse=False) -> Tensor",
     .types = types_embedding,
     .emit = emit_embedding,
     .module = module_embedding,
     .raise = raise_embedding},
};

}  // namespace

extern const OpFamily kIndexOps;
constinit const OpFamily kIndexOps{"index", kIndexOnnx, kIndexAten};

}  // namespace tonnx
