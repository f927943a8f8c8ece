// signal.cpp - spectra and what they are made with: DFT, STFT, MelWeightMatrix, HannWindow and its kin.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/create/rows.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/frame/rank_choice.h"
#include "ops/math/complex.h"
#include "ops/math/rows.h"
#include "ops/reduce/run_time_axis.h"
#include "ops/signal/rows.h"

namespace tonnx {
namespace {

constexpr int64_t kLongest = int64_t{1} << 40;  // of a transform

/// PyTorch has no transforms of sixteen bits on every device.
DType transformed_in(DType dtype) { return dtype == DType::Float64 ? dtype : DType::Float32; }

/// A length that is known: an input's value, or an expression over sizes.
std::optional<Dim> find_length(const NodeView& n, std::string_view input) {
  const auto dims = n.find_dims(input);
  if (!dims) return std::nullopt;
  require(dims->size() == 1, "{} has {} elements where one is needed", input, dims->size());
  const auto number = dims->front().constant();
  require(!number || (*number >= 1 && *number <= kLongest), "{} is {}", input, number.value_or(0));
  return dims->front();
}

/// Whether the last dimension of the signal holds the two parts of complex numbers.
bool is_complex(const NodeView& n, std::string_view input) {
  const Shape* shape = n.find_shape(input);
  const auto parts = shape && !shape->empty() ? shape->back().constant() : std::nullopt;
  if (!parts) fail_unsupported("the last size of '{}' is not known", input);
  require(*parts == 1 || *parts == 2, "the last size of '{}' is {}", input, *parts);
  return *parts == 2;
}

Dim one_side(const Dim& length) { return floor_div(length, 2) + 1; }

// DFT

/// The one dimension, but for the last, whose declared size is not that of the input.
std::optional<int64_t> find_changed_axis(const NodeView& n) {
  const Shape* before = n.find_shape("input");
  const Value* output = n.node().output(0);
  if (output == nullptr) return std::nullopt;
  const auto& after = output->type.shape;
  if (!before || !after || before->size() != after->size()) return std::nullopt;
  std::optional<int64_t> axis;
  for (size_t i = 0; i + 1 < before->size(); ++i) {
    if (!(*before)[i].is_constant() || !(*after)[i].is_constant()) return std::nullopt;
    if ((*before)[i] == (*after)[i]) continue;
    if (axis) return std::nullopt;
    axis = static_cast<int64_t>(i);
  }
  return axis;
}

/// Nothing where only the run tells.
std::optional<int64_t> find_dft_axis(const NodeView& n) {
  const auto rank = n.find_rank("input");
  require(!rank || *rank >= 2, "the input has {} dimensions, and needs two", rank.value_or(0));
  if (!rank) return std::nullopt;
  int64_t axis = *rank - 2;
  if (n.has("axis")) {
    const auto given = n.find_const_ints("axis");
    if (!given) return find_changed_axis(n);
    require(given->size() == 1, "axis has {} elements where one is needed", given->size());
    axis = NodeView::normalized((*given)[0], *rank);
  }
  require(axis < *rank - 1, "axis {} is that of the parts of complex numbers", axis);
  return axis;
}

/// Whether the result has the sizes of the input, along whatever axis.
bool keeps_sizes(const NodeView& n) { return !n.has("dft_length") && !n.flag("onesided"); }

void infer_dft(InferNode& n) {
  const Shape* shape = n.find_shape("input");
  const DType dtype = n.dtype("input");
  if (shape == nullptr) return n.set(0, dtype, std::nullopt);
  const bool inverse = n.flag("inverse"), onesided = n.flag("onesided");
  const auto axis = find_dft_axis(n);  // a scalar is refused here
  Shape result = *shape;
  result.back() = inverse && onesided ? 1 : 2;
  if (!axis) {
    if (!keeps_sizes(n)) std::generate(result.begin(), result.end() - 1, [&] { return n.fresh(); });
    return n.set(0, dtype, std::move(result));
  }
  Dim& size = result[static_cast<size_t>(*axis)];
  if (n.has("dft_length")) {
    const auto length = find_length(n, "dft_length");
    const auto at = static_cast<size_t>(*axis);
    size = !length                ? n.declared_or_fresh(0, at, shape->size(), *shape)
           : onesided && !inverse ? one_side(*length)
                                  : *length;
  } else if (onesided) {
    size = inverse ? (size - 1) * Dim(2) : one_side(size);
  }
  n.set(0, dtype, std::move(result));
}

/// The transform along a dimension of a tensor of real or complex numbers, as complex numbers in PyTorch's own type.
Value* transformed(AtenBuilder& aten, Value* x, bool complex, bool onesided, const Arg& length, const IntArg& dim) {
  if (onesided && !complex) return aten("fft_rfft", x, length, dim);
  return aten("fft_fft", x, length, dim);
}

Value* complex_of(AtenBuilder& aten, Value* x, bool complex) {
  return complex ? aten("view_as_complex", aten("contiguous", x)) : aten("squeeze.dim", x, -1);
}

/// The same where only the run knows whether there is a second part: what is not there adds up to 0.
Value* complex_of_any(AtenBuilder& aten, Value* x) {
  Value* imaginary = aten("sum.dim_IntList", aten("slice.Tensor", x, -1, 1), std::vector<int64_t>{-1});
  const std::vector<Value*> parts{aten("select.int", x, -1, 0), imaginary};
  return aten("view_as_complex", aten("stack", parts, -1));
}

bool knows_parts(const NodeView& n, std::string_view input) {
  const Shape* shape = n.find_shape(input);
  return shape != nullptr && (shape->empty() || shape->back().is_constant());
}

/// The dimension of the complex numbers, which have one less, that the axis is. From the back where the rank is
/// unknown.
IntArg dft_dim(const OnnxNode& n, AtenBuilder& aten) {
  const auto axis = find_dft_axis(n);
  n.find_dims("axis");
  if (axis) return *axis == n.rank("input") - 2 ? -1 : *axis;
  if (n.find_rank("input")) return aten.mod(n.int_arg("axis"), n.rank("input"));
  if (!n.has("axis")) return -1;
  const auto given = n.find_const_ints("axis");
  if (!given) fail_unsupported("neither the axis nor the rank of 'input' is known");
  require(given->size() == 1, "axis has {} elements where one is needed", given->size());
  const int64_t at = given->front();
  require(at >= -kMaxRank && at < kMaxRank && at != -1, "axis {} is out of range", at);
  return at < 0 ? at + 1 : at;
}

Values lower_dft(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("input"), wide = transformed_in(dtype);
  const bool inverse = n.flag("inverse"), onesided = n.flag("onesided"), is_known = knows_parts(n, "input");
  const bool complex = !is_known || is_complex(n, "input");
  const auto axis = find_dft_axis(n);
  const IntArg dim = dft_dim(n, aten);
  Arg length = nullptr;
  if (n.has("dft_length")) {
    // a full spectrum is as long as the transform, which may be all that is known of it
    const auto& shape = n.output_type().shape;
    const bool full = axis && shape && !(onesided && !inverse);
    const auto known = full ? (*shape)[static_cast<size_t>(*axis)].constant() : std::nullopt;
    const auto before = axis ? (*n.find_shape("input"))[static_cast<size_t>(*axis)].constant() : std::nullopt;
    n.find_dims("dft_length");
    const IntArg given = known ? IntArg(*known) : n.int_arg("dft_length");
    if (given.value != nullptr || before != given.number || (inverse && onesided)) length = given;
  }
  Value* x = cast(aten, n.input("input"), dtype, wide);
  x = is_known ? complex_of(aten, x, complex) : complex_of_any(aten, x);
  if (inverse && onesided) {
    return cast(aten, aten("unsqueeze", aten("fft_irfft", x, length, dim), -1), wide, dtype);
  }
  Value* y = inverse ? aten("fft_ifft", x, length, dim) : transformed(aten, x, complex, onesided, length, dim);
  if (onesided && complex) {
    const IntArg all = aten("sym_size.int", y, dim);
    y = aten("narrow", y, dim, 0, aten.add(aten.floor_div(all, 2), 1));
  }
  if (inverse && !complex) y = aten("resolve_conj", y);  // PyTorch only says that it is one, and views no such tensor
  return cast(aten, aten("view_as_real", y), wide, dtype);
}

void up_dft_20(OnnxEdit& edit) {
  const int64_t axis = edit.i("axis", 1);
  drop_attribute(edit, "axis");
  edit.node().set_input(2, edit.constant(make_scalar(DType::Int64, static_cast<double>(axis)), "axis"));
}

void down_dft_20(OnnxEdit& edit) {
  int64_t axis = -2;
  if (edit.node().input(2) != nullptr) {
    const auto given = edit.const_ints(2);
    if (!given || given->size() != 1) edit.cannot("the axis is not constant, and is an attribute in the older opset");
    axis = (*given)[0];
  }
  edit.node().resize_inputs(edit.node().input(1) != nullptr ? 2 : 1);
  edit.node().set_attribute("axis", axis, AttrType::Int);
}

/// An axis that only the run tells may count from the back, where the last one is no dimension of complex numbers.
bool expand_dft(const NodeView& n, OnnxEdit& edit) {
  if (!n.has("axis") || n.find_const_ints("axis")) return false;
  const auto rank = n.find_rank("input");
  if (!rank) return choose_rank(edit, n, {"input"}, from_to(2, 5));
  return keeps_sizes(n) && !find_dft_axis(n) && choose_axis(n, edit, 2, *rank, *rank - 1);
}

// STFT

/// The length of each frame: as given, or that of the window, or the whole signal.
std::optional<Dim> find_frame_length(const NodeView& n) {
  const Shape* window = n.find_shape("window");
  require(!window || window->size() == 1, "the window has {} dimensions", window ? window->size() : 0);
  if (n.has("frame_length")) {
    const auto given = find_length(n, "frame_length");
    if (given || !window) {
      require(!given || !window || !given->is_constant() || !window->front().is_constant() || *given == window->front(),
              "frames of {} elements have a window of {}", given ? given->text() : "",
              window ? window->front().text() : "");
      return given;
    }
  }
  if (window != nullptr) return window->front();
  const Shape* signal = n.find_shape("signal");
  return signal && signal->size() >= 2 ? std::optional((*signal)[1]) : std::nullopt;
}

void infer_stft(InferNode& n) {
  const Shape* signal = n.find_shape("signal");
  // A real signal needs no last dimension: ONNX Runtime takes [batch, length], and exporters write it.
  require(!signal || signal->size() == 2 || signal->size() == 3, "the signal has {} dimensions where it needs three",
          signal ? signal->size() : 0);
  const auto length = find_frame_length(n), step = find_length(n, "frame_step");
  const Shape known = signal ? *signal : Shape{n.fresh()};
  Dim frames = n.declared_or_fresh(0, 1, 4, known), bins = n.declared_or_fresh(0, 2, 4, known);
  if (length) bins = n.flag("onesided") ? one_side(*length) : *length;
  if (length && step && signal) {
    const Dim rest = (*signal)[1] - *length;
    require(!rest.is_constant() || *rest.constant() >= 0, "a frame is longer than the signal");
    if (step->is_constant()) frames = floor_div(rest, *step->constant()) + 1;
  }
  n.set(0, n.dtype("signal"), Shape{signal ? (*signal)[0] : n.fresh(), frames, bins, 2});
}

Values lower_stft(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("signal"), wide = transformed_in(dtype);
  const bool is_flat = n.find_rank("signal") == 2, is_known = is_flat || knows_parts(n, "signal");
  const bool complex = !is_known || (!is_flat && is_complex(n, "signal")), onesided = n.flag("onesided");
  const auto known = find_frame_length(n);
  if (n.has("frame_length")) n.find_dims("frame_length");
  const bool as_window = !known && !n.has("frame_length") && n.has("window");
  const IntArg length = known       ? n.int_arg(*known)
                        : as_window ? aten.size(n.input("window"), 0)
                                    : n.int_arg("frame_length");
  Value* x = cast(aten, n.input("signal"), dtype, wide);
  if (!is_flat) x = is_known ? complex_of(aten, x, complex) : complex_of_any(aten, x);
  const auto step = find_length(n, "frame_step");
  Value* frames = nullptr;
  if (step && step->is_constant()) {
    frames = aten("unfold", x, 1, length, *step->constant());
  } else {  // one index for each element of each frame, so that the step may stay a tensor
    const auto& shape = n.output_type().shape;
    const auto declared = shape ? (*shape)[1].constant() : std::nullopt;
    Value* each = n.input("frame_step");
    IntArg count = declared.value_or(0);
    if (!declared) {
      count = aten.add(aten.floor_div(aten.sub(n.size("signal", 1), length), n.int_arg("frame_step")), 1);
    }
    Value* starts = aten("unsqueeze", aten("mul.Tensor", aten("arange", count), each), 1);
    frames = aten("index.Tensor", x, std::vector<Value*>{nullptr, aten("add.Tensor", starts, aten("arange", length))});
  }
  if (n.has("window")) frames = aten("mul.Tensor", frames, cast(aten, n.input("window"), dtype, wide));
  Value* y = transformed(aten, frames, complex, onesided, nullptr, -1);
  if (onesided && complex) y = aten("narrow", y, -1, 0, aten.add(aten.floor_div(length, 2), 1));
  return cast(aten, aten("view_as_real", y), wide, dtype);
}

// MelWeightMatrix

DType output_dtype(const NodeView& n) {
  const DType dtype = *n.find_dtype("output_datatype");
  require(is_float(dtype) || is_integer(dtype), "output_datatype is {}", name_of(dtype));
  return dtype;
}

/// The five numbers, where all are constant: bins, transform, rate, lower and upper edge.
std::optional<std::vector<double>> find_mel_numbers(const NodeView& n) {
  std::vector<double> numbers;
  for (const char* input : {"num_mel_bins", "dft_length", "sample_rate"}) {
    const auto given = n.find_const_ints(input);
    if (!given) return std::nullopt;
    require(given->size() == 1 && (*given)[0] >= 1 && (*given)[0] < kLongest, "{} is not a positive number", input);
    numbers.push_back(static_cast<double>((*given)[0]));
  }
  for (const char* input : {"lower_edge_hertz", "upper_edge_hertz"}) {
    const auto given = n.find_const_floats(input);
    if (!given) return std::nullopt;
    require(given->size() == 1 && (*given)[0] > -700 && (*given)[0] < 1e15, "{} is no frequency", input);
    numbers.push_back((*given)[0]);
  }
  return numbers;
}

double mel_of(double hertz) { return 2595 * std::log10(1 + hertz / 700); }

std::vector<double> mel_matrix(const std::vector<double>& numbers) {
  const auto bins = static_cast<int64_t>(numbers[0]), spectrum = static_cast<int64_t>(numbers[1]) / 2 + 1;
  const double low = mel_of(numbers[3]), step = (mel_of(numbers[4]) - low) / (numbers[0] + 2);
  std::vector<double> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    edges.push_back(std::floor((numbers[1] + 1) * hertz / numbers[2]));
  }
  std::vector<double> matrix;
  for (int64_t j = 0; j < spectrum; ++j) {
    const auto at = static_cast<double>(j);
    for (size_t i = 0; i < static_cast<size_t>(bins); ++i) {
      const double left = edges[i], centre = edges[i + 1], right = edges[i + 2];
      const double slope = at < centre ? (at - left) / (centre - left) : (right - at) / std::max(right - centre, 1.0);
      matrix.push_back(at == centre ? 1.0 : std::max(slope, 0.0));
    }
  }
  return matrix;
}

void infer_mel_weight_matrix(InferNode& n) {
  const DType dtype = output_dtype(n);
  const auto bins = find_length(n, "num_mel_bins"), length = find_length(n, "dft_length");
  const Shape none;
  n.set(0, dtype,
        Shape{length ? one_side(*length) : n.declared_or_fresh(0, 0, 2, none),
              bins ? *bins : n.declared_or_fresh(0, 1, 2, none)});
  const auto numbers = find_mel_numbers(n);
  if (!numbers || !is_float(dtype)) return;
  const double count = (*numbers)[0] * ((*numbers)[1] / 2 + 1);
  if (count > 1e8 || !n.can_make(static_cast<int64_t>(count) * 8)) return;
  const auto rows = static_cast<int64_t>((*numbers)[1]) / 2 + 1, columns = static_cast<int64_t>((*numbers)[0]);
  n.set_constant(make_floats(dtype, {rows, columns}, mel_matrix(*numbers)));
}

Values lower_mel_weight_matrix(const OnnxNode& n, AtenBuilder& aten) {
  const Shape& shape = *n.output_type().shape;
  const auto size = [&](size_t i) { return shape[i].constant(); };
  Value* length = n.input("dft_length");
  const IntArg bins = size(1) ? IntArg(*size(1)) : n.int_arg("num_mel_bins");
  n.find_dims("num_mel_bins");
  const IntArg spectrum = size(0) ? IntArg(*size(0)) : aten.add(aten.floor_div(n.int_arg("dft_length"), 2), 1);
  const auto mel = [&](std::string_view input) {
    Value* hertz = aten("to.dtype", n.input(input), DType::Float64);
    return aten("mul.Scalar", aten("log10", aten("add.Scalar", aten("div.Scalar", hertz, 700.0), 1.0)), 2595.0);
  };
  Value* low = mel("lower_edge_hertz");
  const IntArg edges_count = aten.add(bins, 2);
  Value* step = aten("div.Scalar", aten("sub.Tensor", mel("upper_edge_hertz"), low), edges_count);
  Value* mels = aten("add.Tensor", aten("mul.Tensor", aten("arange", edges_count), step), low);
  Value* hertz = aten("sub.Scalar", aten("pow.Scalar", 10.0, aten("div.Scalar", mels, 2595.0)), 1.0);
  Value* places = aten("mul.Tensor", aten("mul.Scalar", hertz, 700.0), aten("add.Scalar", length, 1));
  Value* edges = aten("floor", aten("div.Tensor", places, n.input("sample_rate")));
  Value* left = aten("slice.Tensor", edges, 0, nullptr, bins);
  Value* centre = aten("slice.Tensor", edges, 0, 1, aten.add(bins, 1));
  Value* right = aten("slice.Tensor", edges, 0, 2);
  Value* at = aten("unsqueeze", aten("arange", spectrum), 1);
  const auto slope = [&](Value* distance, Value* width) {
    return aten("div.Tensor", distance, aten("clamp", width, 1));
  };
  Value* rising = slope(aten("sub.Tensor", at, left), aten("sub.Tensor", centre, left));
  Value* falling = slope(aten("sub.Tensor", right, at), aten("sub.Tensor", right, centre));
  Value* y = aten("clamp", aten("where.self", aten("lt.Tensor", at, centre), rising, falling), 0);
  y = aten("masked_fill.Scalar", y, aten("eq.Tensor", at, centre), 1.0);
  return aten("to.dtype", y, output_dtype(n));
}

// Windows

void infer_window(InferNode& n) {
  const auto size = n.find_dims("size");
  require(!size || size->size() == 1, "the size has {} elements", size ? size->size() : 0);
  require(!size || !size->front().is_constant() ||
              (*size->front().constant() >= 0 && *size->front().constant() <= kLongest),
          "a window of size {}", size ? size->front().text() : "");
  n.set(0, output_dtype(n), Shape{size ? size->front() : n.declared_or_fresh(0, 0, 1, {})});
}

template <FixedText Name>
Values lower_window(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = output_dtype(n);
  const bool has_kernel = dtype == DType::Float32 || dtype == DType::Float64;
  const DType wide = has_kernel ? dtype : is_integer(dtype) ? DType::Float64 : DType::Float32;
  const Kw kind{"dtype", wide};
  const std::string_view name = Name.value;
  const auto known = (*n.output_type().shape)[0].constant();
  n.find_dims("size");
  const IntArg size = known ? IntArg(*known) : n.int_arg("size");
  // PyTorch's own Hamming window is the rounded one
  Value* y = name == "hamming_window"
                 ? aten("hamming_window.periodic_alpha_beta", size, n.flag("periodic"), 25.0 / 46.0, 21.0 / 46.0, kind)
                 : aten(fmt::format("{}.periodic", name), size, n.flag("periodic"), kind);
  return cast(aten, y, wide, dtype);
}

constexpr OpsetStep kDftHistory[] = {{.to = 20, .up = up_dft_20, .down = down_dft_20}};

#define WINDOW(op) op "(T1 size, *, int periodic=1, int output_datatype=1) -> T2 output"
constexpr OnnxOp kSignalOnnx[] = {
    {.sig = "DFT(T1 input, T2? dft_length, tensor(int64)? axis, *, int inverse=0, int onesided=0) -> T1 output",
     .since = 17,
     .history = kDftHistory,
     .infer = infer_dft,
     .eval = eval_dft,
     .lower = lower_dft,
     .expand = expand_dft},
    {.sig = "STFT(T1 signal, T2 frame_step, T1? window, T2? frame_length, *, int onesided=1) -> T1 output",
     .since = 17,
     .infer = infer_stft,
     .eval = eval_stft,
     .lower = lower_stft},
    {.sig =
         "MelWeightMatrix(T1 num_mel_bins, T1 dft_length, T1 sample_rate, T2 lower_edge_hertz, T2 upper_edge_hertz, *, "
         "int output_datatype=1) -> T3 output",
     .since = 17,
     .infer = infer_mel_weight_matrix,
     .lower = lower_mel_weight_matrix},
    {.sig = WINDOW("HannWindow"),
     .since = 17,
     .infer = infer_window,
     .eval = eval_hann_window,
     .lower = lower_window<"hann_window">},
    {.sig = WINDOW("HammingWindow"),
     .since = 17,
     .infer = infer_window,
     .eval = eval_hamming_window,
     .lower = lower_window<"hamming_window">},
    {.sig = WINDOW("BlackmanWindow"),
     .since = 17,
     .infer = infer_window,
     .eval = eval_blackman_window,
     .lower = lower_window<"blackman_window">},
};
#undef WINDOW

#define FACTORY "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
constexpr AtenOp kSignalAten[] = {
    {.sig = "aten::fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     .types = types_fft,
     .layout = Layout::Own,
     .python = "torch.fft.fft",
     .raise = raise_fft},
    {.sig = "aten::fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     .types = types_fft,
     .layout = Layout::Own,
     .python = "torch.fft.ifft",
     .raise = raise_fft},
    {.sig = "aten::fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     .types = types_rfft,
     .layout = Layout::Own,
     .python = "torch.fft.rfft",
     .raise = raise_fft},
    {.sig = "aten::fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     .types = types_irfft,
     .layout = Layout::Own,
     .python = "torch.fft.irfft",
     .raise = raise_fft},
    {.sig = "aten::view_as_complex(Tensor(a) self) -> Tensor(a)",
     .types = types_view_as_complex,
     .view = ViewRule::Opaque,
     .python = "torch.view_as_complex",
     .raise = raise_nothing},
    {.sig = "aten::view_as_real(Tensor(a) self) -> Tensor(a)",
     .types = types_view_as_real,
     .view = ViewRule::Opaque,
     .python = "torch.view_as_real",
     .raise = raise_nothing},
    {.sig = "aten::log10(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.log10",
     .raise = raise_log10,
     .raise_complex = raise_complex_function},
    {.sig = "aten::hann_window.periodic(int window_length, bool periodic, *, " FACTORY,
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_hann_window},
    {.sig = "aten::hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, "
            "*, " FACTORY,
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_hamming_window},
    {.sig = "aten::blackman_window.periodic(int window_length, bool periodic, *, " FACTORY,
     .types = types_window,
     .emit = emit_factory,
     .raise = raise_blackman_window},
};
#undef FACTORY

}  // namespace

extern const OpFamily kSignalOps;
constinit const OpFamily kSignalOps{"signal", kSignalOnnx, kSignalAten};

}  // namespace tonnx
