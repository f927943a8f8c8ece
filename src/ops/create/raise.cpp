// raise.cpp - PyTorch's new tensors of known content as ONNX.
#include <cmath>
#include <functional>
#include <numbers>

#include "base/budget.h"
#include "ops/create/rows.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"

namespace tonnx {
namespace {

void ignore_placement(const AtenNode& n) {
  for (const Attribute& argument : n.node().attributes) {
    if (argument.name == "dtype" || argument.name == "size") n.ignore({argument.name});
    if (argument.name == "other") n.ignore({"other"});
  }
}

/// A number that all elements are, of the type of the result.
Value* raised_fill(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const std::string_view name = n.node().op.view();
  if (n.node().find_attribute("fill_value")) return n.input_as("fill_value", dtype);
  if (n.node().find_attribute("value")) return n.input_as("value", dtype);
  return onnx.number(dtype, name.find("ones") != std::string_view::npos ? 1 : 0);
}

Values raise_scalar_tensor(const AtenNode& n, OnnxBuilder&) {
  ignore_placement(n);
  if (n.node().find_attribute("s") == nullptr) n.cannot("the number is missing");
  return n.input_as("s", n.output_dtype());
}

/// What lies between the ends: a single step is not divided by nothing.
Value* gaps_of(const IntArg& steps, OnnxBuilder& onnx) { return onnx.scalar(onnx.max(onnx.sub(steps, 1), 1)); }

/// start + i * step from the one end, and end - i * step from the other, as PyTorch does.
Value* spaced(const AtenNode& n, OnnxBuilder& onnx, DType dtype) {
  const IntArg steps = onnx.int_of(n.output_shape()[0]);
  const auto flat = [&](std::string_view name) { return onnx.cast(n.input(name), dtype); };
  Value* start = flat("start");
  if (steps.is(1)) return onnx.unsqueeze(start, {0});
  Value* end = flat("end");
  Value* last = onnx.scalar(onnx.sub(steps, 1));
  Value* step = onnx("Div", {onnx("Sub", {end, start}), onnx.cast(gaps_of(steps, onnx), dtype)});
  Value* i = onnx.range(steps);
  Value* from_start = onnx("Add", {start, onnx("Mul", {onnx.cast(i, dtype), step})});
  Value* from_end = onnx("Sub", {end, onnx("Mul", {onnx.cast(onnx("Sub", {last, i}), dtype), step})});
  Value* is_first_half = onnx("Less", {i, onnx.scalar(onnx.max(onnx.floor_div(steps, 2), 1))});
  return onnx.where(is_first_half, from_start, from_end);
}

Values raise_linspace(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"steps"});
  ignore_placement(n);
  const DType dtype = n.output_dtype();
  n.ignore({"start", "end"});
  if (n.output_shape()[0].is(0)) return onnx.numbers(dtype, {0}, {});
  if (is_float(dtype)) return onnx.cast(spaced(n, onnx, dtype == DType::Float64 ? dtype : DType::Float32), dtype);
  // the ends are cut to integers before, the elements after
  const auto cut = [&](std::string_view name) { return onnx.cast(onnx.cast(n.input(name), dtype), DType::Float64); };
  const IntArg steps = onnx.int_of(n.output_shape()[0]);
  if (steps.is(1)) return onnx.cast(onnx.unsqueeze(cut("start"), {0}), dtype);
  Value* last = onnx.scalar(onnx.sub(steps, 1));
  Value *start = cut("start"), *end = cut("end");
  Value* gaps = onnx.cast(gaps_of(steps, onnx), DType::Float64);
  Value* step = onnx.cast(onnx("Div", {onnx("Sub", {end, start}), gaps}), DType::Float32);
  step = onnx.cast(step, DType::Float64);
  Value* i = onnx.range(steps);
  Value* from_start = onnx("Add", {start, onnx("Mul", {onnx.cast(i, DType::Float64), step})});
  Value* from_end = onnx("Sub", {end, onnx("Mul", {onnx.cast(onnx("Sub", {last, i}), DType::Float64), step})});
  Value* is_first_half = onnx("Less", {i, onnx.scalar(onnx.max(onnx.floor_div(steps, 2), 1))});
  return onnx.cast(onnx.where(is_first_half, from_start, from_end), dtype);
}

Values raise_logspace(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"steps"});
  ignore_placement(n);
  const DType dtype = n.output_dtype();
  const DType wide = DType::Float64;
  n.ignore({"start", "end", "base"});
  if (n.output_shape()[0].is(0)) return onnx.numbers(dtype, {0}, {});
  if (!is_float(dtype)) n.cannot("logspace of integers");
  return onnx.cast(onnx("Pow", {onnx.number(wide, n.f("base")), spaced(n, onnx, wide)}), dtype);
}

/// Rows and columns of the part of a matrix below or above a diagonal.
Values raise_tri_indices(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_placement(n);
  const int64_t rows = n.i("row"), columns = n.i("col"), offset = n.i("offset");
  const bool is_lower = n.node().op.view() == "tril_indices";
  constexpr int64_t kMost = int64_t{1} << 24;
  if (rows < 0 || columns < 0 || rows > kMost || columns > kMost / std::max<int64_t>(rows, 1))
    n.cannot("a matrix of {} by {}", rows, columns);
  std::vector<double> row, column;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (is_lower ? c - r <= offset : c - r >= offset) {
        row.push_back(static_cast<double>(r));
        column.push_back(static_cast<double>(c));
      }
    }
  }
  const auto count = static_cast<int64_t>(row.size());
  row.insert(row.end(), column.begin(), column.end());
  return onnx.numbers(n.output_dtype(), {2, count}, row);
}

using WindowOfNumber = std::function<double(double)>;
using WindowOfTensor = std::function<Value*(Value*)>;

/// A window of known length, or of one that only the run tells: each element by its place, from 0 at the first to 1 at
/// the last, or at the one behind it where the window is periodic.
Value* window_of(const AtenNode& n, OnnxBuilder& onnx, const WindowOfNumber& number, const WindowOfTensor& tensor) {
  ignore_placement(n);
  const IntArg length = n.int_arg("window_length");
  const bool is_periodic = n.node().find_attribute("periodic") ? n.flag("periodic") : true;
  if (length.value == nullptr) {
    const int64_t count = length.number;
    if (count < 0 || count > (int64_t{1} << 24)) n.cannot("a window of {} elements", count);
    std::vector<double> values;
    values.reserve(room_for<double>({count}));
    const double last = static_cast<double>(is_periodic ? count : count - 1);
    for (int64_t i = 0; i < count; ++i) values.push_back(count == 1 ? 1.0 : number(static_cast<double>(i) / last));
    return onnx.numbers(n.output_dtype(), {count}, values);
  }
  const auto wide = [&](Value* x) { return onnx.cast(x, DType::Float64); };
  Value* last = onnx.scalar(onnx.max(is_periodic ? length : onnx.sub(length, 1), 1));
  Value* made = tensor(onnx("Div", {wide(onnx.range(length)), wide(last)}));
  Value* is_one = onnx("Equal", {onnx.scalar(length), onnx.integer(DType::Int64, 1)});
  return onnx.cast(onnx.where(is_one, onnx.number(DType::Float64, 1), made), n.output_dtype());
}

/// A sum of cosines: a0 - a1 cos(2 pi i / (N - 1)) + a2 cos(4 pi i / (N - 1)), N + 1 for a periodic one.
Values cosine_window(const AtenNode& n, OnnxBuilder& onnx, double a0, double a1, double a2) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const auto number = [&](double place) {
    return a0 - a1 * std::cos(kTurn * place) + a2 * std::cos(2 * kTurn * place);
  };
  const auto wide = [&](double value) { return onnx.number(DType::Float64, value); };
  const auto wave = [&](Value* place, double turn, double by) {
    return onnx("Mul", {onnx("Cos", {onnx("Mul", {place, wide(turn)})}), wide(by)});
  };
  return window_of(n, onnx, number, [&](Value* place) {
    Value* sum = onnx("Sub", {wide(a0), wave(place, kTurn, a1)});
    return a2 == 0 ? sum : onnx("Add", {sum, wave(place, 2 * kTurn, a2)});
  });
}

double find_number(const AtenNode& n, const char* name, double otherwise) {
  return n.node().find_attribute(name) ? n.f(name) : otherwise;
}

Values raise_bartlett(const AtenNode& n, OnnxBuilder& onnx) {
  const auto wide = [&](double value) { return onnx.number(DType::Float64, value); };
  return window_of(
      n, onnx, [](double place) { return 1 - std::abs(2 * place - 1); },
      [&](Value* place) {
        Value* from_middle = onnx("Abs", {onnx("Sub", {onnx("Mul", {place, wide(2)}), wide(1)})});
        return onnx("Sub", {wide(1), from_middle});
      });
}

constexpr AtenOp kAtenCreateAten[] = {
    {.sig = "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_arange,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_arange},
    {.sig = "aten::bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_bartlett},
    {.sig = "aten::bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_bartlett},
    {.sig = "aten::blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_blackman_window},
    {.sig = "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .types = types_of_size,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_filled},
    {.sig = "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .elementwise = Elementwise::Kept,
     .out_dtype = true,
     .python = "torch.empty_like",
     .raise = raise_filled},
    {.sig = "aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_of_size,
     .emit = emit_factory,
     .raise = raise_filled},
    {.sig = "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
            "Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_of_size,
     .emit = emit_factory,
     .raise = raise_filled},
    {.sig = "aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None) -> Tensor",
     .types = types_eye,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_eye,
     .raise_complex = raise_real_part},
    {.sig = "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
     .types = types_as_self,
     .python = "torch.fill",
     .raise = raise_filled},
    {.sig = "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
     .types = types_as_self,
     .python = "torch.fill",
     .raise = raise_filled},
    {.sig = "aten::hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_hamming_window},
    {.sig = "aten::hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_hamming_window},
    {.sig = "aten::hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? "
            "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_hamming_window},
    {.sig = "aten::hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=None) -> Tensor",
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_hann_window},
    {.sig = "aten::linspace(Scalar start, Scalar end, SymInt steps, *, ScalarType? dtype=None, Layout? layout=None, "
            "Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_linspace,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_linspace},
    {.sig = "aten::linspace.Tensor_Tensor(Tensor start, Tensor end, SymInt steps, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_linspace,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_linspace},
    {.sig = "aten::linspace.Tensor_Scalar(Tensor start, Scalar end, SymInt steps, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_linspace,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_linspace},
    {.sig = "aten::linspace.Scalar_Tensor(Scalar start, Tensor end, SymInt steps, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_linspace,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_linspace},
    {.sig = "aten::logspace(Scalar start, Scalar end, SymInt steps, float base=10., *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_linspace,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_logspace},
    {.sig = "aten::logspace.Tensor_Tensor(Tensor start, Tensor end, SymInt steps, float base=10., *, ScalarType? "
            "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_linspace,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_logspace},
    {.sig = "aten::logspace.Tensor_Scalar(Tensor start, Scalar end, SymInt steps, float base=10., *, ScalarType? "
            "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_linspace,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_logspace},
    {.sig = "aten::logspace.Scalar_Tensor(Scalar start, Tensor end, SymInt steps, float base=10., *, ScalarType? "
            "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_linspace,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_logspace},
    {.sig = "aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_new,
     .out_dtype = true,
     .python = ".new_empty",
     .raise = raise_filled},
    {.sig = "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_new,
     .python = ".new_empty_strided",
     .raise = raise_filled},
    {.sig = "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_new,
     .out_dtype = true,
     .python = ".new_full",
     .raise = raise_filled,
     .raise_complex = raise_each_part},
    {.sig = "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_new,
     .out_dtype = true,
     .python = ".new_ones",
     .raise = raise_filled,
     .raise_complex = raise_real_part},
    {.sig = "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_new,
     .out_dtype = true,
     .python = ".new_zeros",
     .raise = raise_filled,
     .raise_complex = raise_each_part},
    {.sig = "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None) -> Tensor",
     .types = types_scalar_tensor,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_scalar_tensor},
    {.sig = "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_triangle,
     .emit = emit_factory,
     .raise = raise_tri_indices},
    {.sig = "aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_triangle,
     .emit = emit_factory,
     .raise = raise_tri_indices},
};

}  // namespace

/// zeros, full_like, new_ones, empty ...: the shape is that of the result.
Values raise_filled(const AtenNode& n, OnnxBuilder& onnx) {
  for (const Attribute& argument : n.node().attributes) n.ignore({argument.name});
  const DType dtype = n.output_dtype();
  if (info(dtype).kind == 'c') n.cannot("complex numbers");
  Value* fill = raised_fill(n, onnx);
  const Shape& shape = n.output_shape();
  if (shape.empty()) return fill;
  return onnx.expand(fill, shape);
}

Values raise_arange(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_placement(n);
  const DType dtype = n.output_dtype();
  const bool has_start = n.node().overload.view().starts_with("start");
  const bool has_step = n.node().overload.view() == "start_step";
  const auto is_whole = [&](const char* name) { return !is_float(n.dtype(name)); };
  const bool all_whole = is_whole("end") && (!has_start || is_whole("start")) && (!has_step || is_whole("step"));
  // PyTorch counts in the type of the numbers given, and computes start + i * step
  const DType counted = all_whole ? DType::Int64 : DType::Float64;
  Value* start = has_start ? n.input_as("start", counted) : onnx.integer(counted, 0);
  Value* step = has_step ? n.input_as("step", counted) : onnx.integer(counted, 1);
  Value* end = n.input_as("end", counted);
  if (all_whole || is_float(dtype)) return onnx.cast(onnx("Range", {start, end, step}), dtype);
  Value* count = onnx("Ceil", {onnx("Div", {onnx("Sub", {end, start}), step})});
  Value* i = onnx("Range", {onnx.integer(counted, 0), count, onnx.integer(counted, 1)});
  start = onnx.cast(start, dtype), step = onnx.cast(step, dtype);
  return onnx("Add", {onnx("Mul", {onnx.cast(i, dtype), step}), start});
}

Values raise_eye(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_placement(n);
  n.ignore({"n"});
  if (n.node().overload.view() == "m") n.ignore({"m"});
  const DType dtype = n.output_dtype();
  Value* rows = onnx.range(onnx.int_of(n.output_shape()[0]));
  Value* columns = onnx.range(onnx.int_of(n.output_shape()[1]));
  return onnx.cast(onnx("Equal", {onnx.unsqueeze(rows, {1}), columns}), dtype);
}

Values raise_hann_window(const AtenNode& n, OnnxBuilder& onnx) { return cosine_window(n, onnx, 0.5, 0.5, 0); }

Values raise_hamming_window(const AtenNode& n, OnnxBuilder& onnx) {
  return cosine_window(n, onnx, find_number(n, "alpha", 0.54), find_number(n, "beta", 0.46), 0);
}

Values raise_blackman_window(const AtenNode& n, OnnxBuilder& onnx) { return cosine_window(n, onnx, 0.42, 0.5, 0.08); }

extern const OpFamily kAtenCreateOps;
constinit const OpFamily kAtenCreateOps{"aten_create", {}, kAtenCreateAten};

}  // namespace tonnx
