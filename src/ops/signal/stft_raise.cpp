// stft_raise.cpp - short-time Fourier transforms and their inverses as ONNX.
#include <cmath>

#include "ops/signal/fourier.h"
#include "ops/signal/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// The window in the middle of a frame.
Value* window_of(const AtenNode& n, OnnxBuilder& onnx, int64_t length, DType dtype) {
  Value* window = n.find_input("window");
  const int64_t given = n.find_i("win_length").value_or(length);
  if (window == nullptr) {
    if (given < 0 || given > int64_t{1} << 20) n.cannot("a window of {} elements", given);
    window = onnx.numbers(dtype, {given}, std::vector<double>(static_cast<size_t>(given), 1));
  }
  if (given == length) return onnx.cast(window, dtype);
  const int64_t before = (length - given) / 2;
  return onnx("Pad", {onnx.cast(window, dtype), onnx.ints({before, length - given - before})});
}

/// What STFT gives: batch, frames, frequencies, parts.
Value* frames_by_convolution(OnnxBuilder& onnx, Value* x, Value* window, int64_t length, int64_t hop, bool onesided) {
  Value* waves = onnx("Mul", {frame_waves(onnx, OnnxBuilder::dtype(x), length, onesided), window});
  Value* y = onnx("Conv", {onnx.unsqueeze(x, {1}), waves}, {attr("strides", std::vector<int64_t>{hop})});
  const int64_t frequencies = onesided ? length / 2 + 1 : length;
  return onnx.transpose(onnx.reshape(y, IntArgs{onnx.size(y, 0), 2, frequencies, -1}), {0, 3, 2, 1});
}

Values raise_stft(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"return_complex"});
  if (n.find_flag("align_to_window").value_or(false)) n.cannot("align_to_window");
  if (is_complex(n.dtype("self"))) n.cannot("the short-time transform of complex numbers");
  const int64_t length = n.positive("n_fft"), hop = n.find_i("hop_length").value_or(length / 4);
  require(n.rank("self") == 1 || n.rank("self") == 2, "a signal of {} dimensions", n.rank("self"));
  const bool has_operator = onnx.target_opset() >= kOpsetOfTransforms;
  const DType dtype = has_operator ? transform_dtype(n.dtype("self"), length) : n.dtype("self");
  Value* x = n.input_as("self", dtype);
  const bool is_single = n.rank("self") == 1;
  if (n.node().overload == "center" && n.flag("center")) {
    const std::string mode = n.s("pad_mode");
    std::vector<int64_t> pads(static_cast<size_t>(2 * onnx.rank(x)), 0);
    pads[static_cast<size_t>(onnx.rank(x)) - 1] = pads.back() = length / 2;
    const std::string name = mode == "replicate" ? "edge" : mode == "circular" ? "wrap" : mode;
    x = onnx("Pad", {x, onnx.ints(pads)}, {attr("mode", name)});
  } else if (n.node().overload == "center") {
    n.ignore({"pad_mode"});
  }
  if (is_single) x = onnx.unsqueeze(x, {0});
  const bool onesided = n.find_flag("onesided").value_or(true);
  Value* window = window_of(n, onnx, length, dtype);
  Value* y =
      !has_operator
          ? frames_by_convolution(onnx, x, window, length, hop, onesided)
          : onnx("STFT",
                 {onnx.unsqueeze(x, {2}), onnx.integer(DType::Int64, hop), window, onnx.integer(DType::Int64, length)},
                 {attr("onesided", int64_t{onesided})});
  if (n.flag("normalized")) y = onnx("Mul", {y, onnx.number(dtype, 1 / std::sqrt(static_cast<double>(length)))});
  y = onnx.cast(onnx.transpose(y, {0, 2, 1, 3}), n.dtype("self"));
  return is_single ? onnx.squeeze(y, {0}) : y;
}

/// What was cut into frames: they are added up, and divided by what the windows add up to.
Values raise_istft(const AtenNode& n, OnnxBuilder& onnx) {
  const bool gives_pairs = n.flag("return_complex");
  n.ignore({"onesided"});  // of both sides the first one is enough, where the result is real
  const int64_t rank = n.rank("self"), length = n.positive("n_fft"), hop = n.find_i("hop_length").value_or(length / 4);
  require(rank == 2 || rank == 3, "a spectrum of {} dimensions", rank);
  require(hop >= 1, "hop_length is {}", hop);
  Value* frames =
      (gives_pairs ? inverse_of_wholes : inverse_of_halves)(n, onnx, "self", rank - 2, length, n.flag("normalized"));
  const DType dtype = OnnxBuilder::dtype(frames);
  if (n.has("window") && is_complex(n.dtype("window"))) n.cannot("a window of complex numbers");
  Value* window = window_of(n, onnx, length, dtype);
  if (gives_pairs)
    frames = onnx.transpose(frames, rank == 2 ? std::vector<int64_t>{2, 0, 1} : std::vector<int64_t>{3, 0, 1, 2});
  const int64_t last = onnx.rank(frames) - 1;
  frames = onnx("Mul", {onnx.swap_axes(frames, last - 1, last), window});
  const IntArg count = onnx.size(frames, last - 1);
  Value* weights = onnx("Expand", {onnx("Mul", {window, window}), onnx.list(IntArgs{count, length})});

  const IntArg whole = onnx.add(onnx.mul(onnx.sub(count, 1), hop), length);
  const int64_t start = n.flag("center") ? length / 2 : 0;
  const auto wanted = n.find_i("length");
  const IntArg end = wanted ? onnx.min(whole, start + *wanted) : onnx.sub(whole, start);
  const auto added = [&](Value* x) {
    return onnx.slice(added_windows(onnx, x, length, hop), onnx.rank(x) - 2, start, end);
  };
  Value* y = onnx("Div", {added(frames), added(weights)});
  const IntArg missing = wanted ? onnx.sub(start + *wanted, end) : IntArg(0);
  if (!missing.is(0)) {
    IntArgs pads(static_cast<size_t>(2 * last), 0);
    pads.back() = missing;
    y = onnx("Pad", {y, onnx.list(pads)});
  }
  if (!gives_pairs) return y;
  return onnx.transpose(y, rank == 2 ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{1, 2, 0});
}

constexpr AtenOp kAtenStftAten[] = {
    {.sig = "aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
            "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> "
            "Tensor",
     .types = types_istft,
     .layout = Layout::Own,
     .python = "torch.istft",
     .raise = raise_istft},
    {.sig = "aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
            "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
     .types = types_stft,
     .layout = Layout::Own,
     .python = "torch.ops.aten.stft",
     .raise = raise_stft},
    {.sig = "aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
            "window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, "
            "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
     .types = types_stft,
     .layout = Layout::Own,
     .python = "torch.stft",
     .raise = raise_stft},
};

}  // namespace

extern const OpFamily kAtenStftOps;
constinit const OpFamily kAtenStftOps{"aten_stft", {}, kAtenStftAten};

}  // namespace tonnx
