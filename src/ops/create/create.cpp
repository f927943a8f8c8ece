// create.cpp - tensors made from nothing: Constant, ConstantOfShape, Range.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "ops/create/rows.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/move/rows.h"

namespace tonnx {

std::string emit_factory(const Emission& e) {
  std::vector<std::string> arguments;
  for (const Param& param : e.signature().inputs) {
    if (param.name != "device" && e.node().find_attribute(param.name) != nullptr) {
      arguments.push_back(param.keyword_only ? param.name + "=" + e.text(param.name) : e.text(param.name));
    }
  }
  if (!e.device().empty()) arguments.push_back("device=" + e.device());
  return fmt::format("torch.{}({})", e.signature().name, joined(arguments));
}

namespace {

// Constant

void infer_constant(InferNode& n) {
  const auto& attributes = n.node().attributes;
  require(attributes.size() == 1, "a constant has {} values", attributes.size());
  if (const auto* sparse = attributes[0].value.get<SparseTensorPtr>()) {
    constexpr int64_t kLargest = int64_t{1} << 30;
    const int64_t bytes = byte_size((*sparse)->values->dtype, count_of((*sparse)->dims));
    if (bytes > kLargest) fail_unsupported("a sparse constant of {} bytes is too large to be made dense", bytes);
  }
  if (TensorPtr tensor = find_tensor_of_constant(n.node())) return n.set_constant(std::move(tensor));
  const auto* strings = attributes[0].value.get<std::vector<std::string>>();
  n.set(0, DType::String, strings ? Shape{static_cast<int64_t>(strings->size())} : Shape{});
}

// Only strings come here: all other constants are values without a node.
Values lower_constant(const OnnxNode&, AtenBuilder&) { fail_unsupported("PyTorch has no tensors of strings"); }

void down_constant_12(OnnxEdit& edit) {
  const std::string name = edit.node().attributes.empty() ? "" : edit.node().attributes[0].name;
  if (name == "value" || name == "sparse_value") return;
  TensorPtr tensor = find_tensor_of_constant(edit.node());
  if (!tensor) edit.cannot("the older opset has no attribute '{}'", name);
  edit.node().take_attribute(name);
  edit.node().set_attribute("value", std::move(tensor));
}

void down_constant_11(OnnxEdit& edit) {
  if (edit.node().find_attribute("sparse_value") != nullptr) edit.cannot("the older opset has no sparse constants");
}

// ConstantOfShape

/// One element: 0.0 where the node does not say.
TensorPtr fill_of(const NodeView& n) {
  TensorPtr fill = n.find_tensor("value");
  if (!fill) return make_scalar(DType::Float32, 0);
  require(fill->count() == 1, "the value has {} elements", fill->count());
  return fill;
}

void infer_constant_of_shape(InferNode& n) {
  const TensorPtr fill = fill_of(n);
  const auto sizes = n.find_dims("input");
  if (!sizes) return n.set(0, fill->dtype, n.fresh_shape("input"));
  std::vector<int64_t> numbers;
  for (const Dim& size : *sizes) {
    require(!size.is_constant() || *size.constant() >= 0, "the size {} is negative", size.text());
    if (size.is_constant()) numbers.push_back(*size.constant());
  }
  n.set(0, fill->dtype, *sizes);
  const int bits = info(fill->dtype).bits;
  if (numbers.size() != sizes->size() || bits < 8) return;
  const int64_t bytes = byte_size(fill->dtype, count_of(numbers));
  if (!n.can_make(bytes)) return;
  // a constant, so that a layer with such weights is a module
  auto tensor = std::make_shared<Tensor>();
  tensor->dtype = fill->dtype;
  tensor->dims = std::move(numbers);
  std::vector<uint8_t> data(static_cast<size_t>(bytes));
  const auto step = static_cast<size_t>(bits / 8);
  const bool is_zero = std::all_of(fill->data.data(), fill->data.data() + step, [](uint8_t byte) { return byte == 0; });
  for (size_t at = 0; at < data.size() && !is_zero; at += step) std::memcpy(data.data() + at, fill->data.data(), step);
  tensor->data = Bytes::own(std::move(data));
  n.set_constant(std::move(tensor));
}

Values lower_constant_of_shape(const OnnxNode& n, AtenBuilder& aten) {
  const TensorPtr fill = fill_of(n);
  const Arg sizes = n.int_list("input");
  const Kw dtype{"dtype", fill->dtype};
  if (fill->dtype == DType::UInt64 && element_as_double(*fill, 0) > 9e18) {  // past what a number of a schema can be
    auto scalar = std::make_shared<Tensor>(*fill);
    scalar->dims.clear();
    return aten("expand", aten.constant(scalar), sizes);
  }
  if (fill->dtype == DType::String) fail_unsupported("PyTorch has no tensors of strings");
  if (info(fill->dtype).kind == 'c') fail_unsupported("a tensor filled with a complex number");
  const double value = element_as_double(*fill, 0);
  if (value == 0 && !std::signbit(value)) return aten("zeros", sizes, dtype);
  if (value == 1) return aten("ones", sizes, dtype);
  return is_float(fill->dtype) ? aten("full", sizes, value, dtype)
                               : aten("full", sizes, element_as_int(*fill, 0), dtype);
}

// Range

/// How many elements there are between constants; nothing where one is not constant.
std::optional<int64_t> find_range_count(const NodeView& n) {
  const auto start = n.find_const_floats("start"), limit = n.find_const_floats("limit"),
             delta = n.find_const_floats("delta");
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1) return std::nullopt;
  require((*delta)[0] != 0, "delta is zero");
  const double count = std::ceil(((*limit)[0] - (*start)[0]) / (*delta)[0]);
  require(std::isfinite(count) && count < 9e18, "a range of {} elements", count);
  return count <= 0 ? 0 : static_cast<int64_t>(count);
}

/// One whole number as an integer: a constant, or an integer that a Cast made a float.
std::optional<Dim> find_whole(const NodeView& n, std::string_view input) {
  if (const auto numbers = n.find_const_floats(input); numbers && numbers->size() == 1) {
    const double number = (*numbers)[0];
    constexpr double kMostExact = 1 << 24;
    if (std::trunc(number) != number || std::abs(number) > kMostExact) return std::nullopt;
    return Dim(static_cast<int64_t>(number));
  }
  const Node* cast = n.value(input)->producer;
  if (cast == nullptr || !cast->domain.empty() || cast->op != "Cast" || !cast->input(0)) return std::nullopt;
  const auto elements = is_integer(cast->input(0)->type.dtype) ? find_dims(*cast->input(0)) : std::nullopt;
  return elements && elements->size() == 1 ? std::optional((*elements)[0]) : std::nullopt;
}

/// Floats that count by one from a whole number up to a size.
struct WholeRange {
  Dim first, count;
};
std::optional<WholeRange> find_whole_range(const NodeView& n) {
  const auto first = find_whole(n, "start"), limit = find_whole(n, "limit"), step = find_whole(n, "delta");
  if (!first || !limit || !step || !step->is(1) || !first->is_constant()) return std::nullopt;
  return WholeRange{*first, max(*limit - *first, Dim(0))};
}

void infer_range(InferNode& n) {
  const DType dtype = n.dtype("start");
  const auto start = n.find_dims("start"), limit = n.find_dims("limit"), delta = n.find_dims("delta");
  if (is_plain_float(dtype)) {
    if (const auto range = find_whole_range(n)) return n.set(0, dtype, Shape{range->count});
  }
  if (!is_integer(dtype) || !start || !limit || !delta) {
    const auto count = find_range_count(n);
    return n.set(0, dtype, Shape{count ? Dim(*count) : n.fresh()});
  }
  require(start->size() == 1 && limit->size() == 1 && delta->size() == 1,
          "start, limit and delta must have one element each");
  const Dim &first = (*start)[0], &step = (*delta)[0];
  require(!step.is(0), "delta is zero");
  if (!step.is_constant()) return n.set(0, dtype, Shape{n.fresh()});
  const Dim distance = *step.constant() > 0 ? (*limit)[0] - first : first - (*limit)[0];
  require(*step.constant() != INT64_MIN, "delta is out of range");
  const Dim count = max(ceil_div(distance, std::abs(*step.constant())), Dim(0));
  n.set(0, dtype, Shape{count});
  constexpr int64_t kShort = 64;  // more are data, and no shape
  if (count.is_constant() && *count.constant() <= kShort) {
    Dims elements;
    for (int64_t i = 0; i < *count.constant(); ++i) elements.push_back(first + step * Dim(i));
    n.set_dims(std::move(elements));
  }
}

/// A step that only the run tells: arange would have to know its sign.
Value* range_at_run_time(const OnnxNode& n, AtenBuilder& aten, DType dtype) {
  const DType wide = dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
  const auto input = [&](std::string_view name) {
    Value* value = n.input(name);
    return wide == dtype ? value : aten("to.dtype", value, wide);
  };
  const auto with = [&](const std::string& op, Value* x, std::string_view name) {
    const auto number = find_literal(n, name, name);
    return number ? aten(op + ".Scalar", x, *number) : aten(op + ".Tensor", x, input(name));
  };
  Value* count = nullptr;
  if (is_integer(dtype)) {
    Value* distance = aten("sub.Tensor", input("start"), input("limit"));
    count = aten("neg", aten("div.Tensor_mode", distance, input("delta"), Kw{"rounding_mode", "floor"}));
  } else {
    count = aten("to.dtype", aten("ceil", with("div", with("sub", input("limit"), "start"), "delta")), DType::Int64);
  }
  Value* numbers = aten("arange", aten("tonnx::item", aten("clamp", count, 0)), Kw{"dtype", wide});
  Value* result = with("add", with("mul", numbers, "delta"), "start");
  return wide == dtype ? result : aten("to.dtype", result, dtype);
}

Values lower_range(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("start");
  n.i("stash_type");  // what is computed in more bits is never worse
  const Kw kind{"dtype", dtype == DType::Int64 ? Arg(nullptr) : Arg(dtype)};
  if (!is_integer(dtype)) {
    const auto start = n.find_scalar("start"), limit = n.find_scalar("limit"), delta = n.find_scalar("delta");
    if (const auto range = find_whole_range(n); range && !limit) {
      const IntArg end = n.int_arg(range->first + range->count);
      if (range->first.is(0)) return aten("arange", end, kind);
      return aten("arange.start_step", n.int_arg(range->first), end, 1, kind);
    }
    if (!start || !limit || !delta) return range_at_run_time(n, aten, dtype);
    return aten("arange.start_step", *start, find_range_count(n) == 0 ? *start : *limit, *delta, kind);
  }
  const auto delta = n.find_const_ints("delta");
  if (!delta || delta->size() != 1) return range_at_run_time(n, aten, dtype);
  const int64_t step = (*delta)[0];
  const IntArg start = n.int_arg("start");
  IntArg limit = n.int_arg("limit");
  if (start.is(0) && step == 1) return aten("arange", limit, kind);  // what is counted is not negative
  // torch refuses a limit on the wrong side, which means an empty range
  const auto first = n.find_dims("start"), last = n.find_dims("limit");
  const bool is_ahead =
      first && last && (step > 0 ? (*last)[0] - (*first)[0] : (*first)[0] - (*last)[0]).is_non_negative();
  if (!is_ahead) limit = step > 0 ? aten.max(start, limit) : aten.min(start, limit);
  return aten("arange.start_step", start, limit, step, kind);
}

void down_range_27(OnnxEdit& edit) { drop_attribute(edit, "stash_type"); }

constexpr OpsetStep kConstantHistory[] = {
    {.to = 9, .adds = kNonFloats}, {.to = 11, .down = down_constant_11}, {.to = 12, .down = down_constant_12},
    {.to = 13, .adds = kBFloat16}, {.to = 19, .adds = kFloat8},          {.to = 21, .adds = kInt4},
    {.to = 23, .adds = kFloat4},   {.to = 24, .adds = kFloat8E8M0},      {.to = 25, .adds = kInt2},
};
constexpr OpsetStep kConstantOfShapeHistory[] = {
    {.to = 20, .adds = kBFloat16 | kFloat8}, {.to = 21, .adds = kInt4}, {.to = 23, .adds = kFloat4},
    {.to = 24, .adds = kFloat8E8M0},         {.to = 25, .adds = kInt2},
};
constexpr OpsetStep kRangeHistory[] = {
    {.to = 27, .down = down_range_27, .adds = kBFloat16 | dtype_set(DType::Float16)},
};

constexpr OnnxOp kCreateOnnx[] = {
    {.sig = "Constant(*, strs? value_strings, str? value_string, floats? value_floats, float? value_float, ints? "
            "value_ints, "
            "int? value_int, sparse? sparse_value, tensor? value) -> T output",
     .since = 1,
     .history = kConstantHistory,
     .infer = infer_constant,
     .lower = lower_constant,
     .note = "no strings"},
    {.sig = "ConstantOfShape(T1 input, *, tensor? value) -> T2 output",
     .since = 9,
     .history = kConstantOfShapeHistory,
     .infer = infer_constant_of_shape,
     .eval = eval_constant_of_shape,
     .lower = lower_constant_of_shape},
    {.sig = "Range(T start, T limit, T delta, *, int stash_type=1) -> T output",
     .since = 11,
     .runtime = {kWideInts | dtype_set(DType::Int16)},
     .history = kRangeHistory,
     .infer = infer_range,
     .eval = eval_range,
     .lower = lower_range},
};

constexpr AtenOp kCreateAten[] = {
    {.sig = "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_full,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_filled,
     .raise_complex = raise_each_part},
    {.sig = "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None) -> Tensor",
     .types = types_of_size,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_filled,
     .raise_complex = raise_each_part},
    {.sig = "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None) -> Tensor",
     .types = types_of_size,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_filled,
     .raise_complex = raise_real_part},
    {.sig = "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None) -> Tensor",
     .types = types_arange,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_arange},
    {.sig = "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_arange,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_arange},
    {.sig = "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=None) -> Tensor",
     .types = types_eye,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_eye,
     .raise_complex = raise_real_part},
    {.sig = "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .elementwise = Elementwise::Kept,
     .out_dtype = true,
     .python = "torch.full_like",
     .raise = raise_filled,
     .raise_complex = raise_each_part},
    {.sig = "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .elementwise = Elementwise::Kept,
     .out_dtype = true,
     .python = "torch.zeros_like",
     .raise = raise_filled,
     .raise_complex = raise_each_part},
    {.sig = "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .elementwise = Elementwise::Kept,
     .out_dtype = true,
     .python = "torch.ones_like",
     .raise = raise_filled,
     .raise_complex = raise_real_part},
};

}  // namespace

extern const OpFamily kCreateOps;
constinit const OpFamily kCreateOps{"create", kCreateOnnx, kCreateAten};

}  // namespace tonnx
