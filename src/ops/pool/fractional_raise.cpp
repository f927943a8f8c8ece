// fractional_raise.cpp - pools over windows that random numbers place, as ONNX.
#include "base/budget.h"
#include "ops/frame/aten_types.h"
#include "ops/pool/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// Where the windows of one dimension start, in every plane: [batch, channels, windows].
Value* window_starts(OnnxBuilder& onnx, Value* sample, int64_t in, int64_t out, int64_t kernel) {
  const DType dtype = onnx.dtype(sample);
  std::vector<double> numbers;
  numbers.reserve(room_for<double>({out}));
  for (int64_t i = 0; i < out; ++i) numbers.push_back(static_cast<double>(i));
  Value* step = onnx.number(
      dtype, out > 1 ? static_cast<double>(static_cast<float>(in - kernel) / static_cast<float>(out - 1)) : 0);
  const auto whole = [&](Value* x) { return onnx.cast(onnx("Mul", {x, step}), DType::Int64); };
  Value* starts = onnx("Sub", {whole(onnx("Add", {onnx.numbers(dtype, {out}, numbers), sample})), whole(sample)});
  std::vector<double> is_last(static_cast<size_t>(out), 0);
  if (out > 0) is_last.back() = 1;
  return onnx.where(onnx.numbers(DType::Bool, {out}, is_last), onnx.integer(DType::Int64, in - kernel), starts);
}

/// For each window of each plane the numbers of its elements in the plane: [batch, channels, windows, elements].
Value* window_places(const AtenNode& n, OnnxBuilder& onnx, Value* samples, const std::vector<int64_t>& in,
                     const std::vector<int64_t>& out, const std::vector<int64_t>& kernel) {
  const auto spatial = static_cast<int64_t>(in.size());
  Value* places = nullptr;
  for (int64_t d = 0; d < spatial; ++d) {
    const auto i = static_cast<size_t>(d);
    // two dimensions have their numbers the other way round
    const int64_t which = spatial == 2 ? 1 - d : d;
    Value* sample = onnx("Gather", {samples, onnx.ints({which})}, {attr("axis", int64_t{2})});
    Value* starts = window_starts(onnx, sample, in[i], out[i], kernel[i]);
    std::vector<double> offsets;
    offsets.reserve(room_for<double>({kernel[i]}));
    for (int64_t k = 0; k < kernel[i]; ++k) offsets.push_back(static_cast<double>(k));
    std::vector<int64_t> axes;  // [batch, channels, windows ..., elements ...]
    for (int64_t a = 2; a < 2 + 2 * spatial; ++a) {
      if (a != 2 + d) axes.push_back(a);
    }
    std::vector<int64_t> dims(static_cast<size_t>(spatial - d), 1);
    dims[0] = kernel[i];
    Value* at = onnx("Add", {onnx.unsqueeze(starts, axes), onnx.numbers(DType::Int64, dims, offsets)});
    places = places ? onnx("Add", {onnx("Mul", {places, onnx.integer(DType::Int64, in[i])}), at}) : at;
  }
  int64_t windows = 1, elements = 1;
  for (size_t i = 0; i < in.size(); ++i) {
    windows = checked_mul(windows, out[i]);
    elements = checked_mul(elements, kernel[i]);
  }
  const Shape& shape = n.output_shape();
  const size_t lead = shape.size() - in.size();
  const Dim batch = lead == 2 ? shape[0] : Dim(1);
  return onnx.reshape(places, Shape{batch, shape[lead - 1], Dim(windows), Dim(elements)});
}

Values raise_fractional_max_pool(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = spatial_of(n);
  const Ints kernel = each(n.positives("kernel_size"), spatial), out = each(n.positives("output_size"), spatial);
  std::vector<int64_t> in;
  const Batched given = batched(onnx, n.input("self"), spatial);
  const Shape shape = onnx.shape(given.x);
  for (const Dim& size : shape.last(spatial)) {
    if (!size.is_constant()) n.cannot("sizes that are only known at run time");
    in.push_back(*size.constant());
  }
  Value* places = window_places(n, onnx, n.input("random_samples"), in, out, kernel);
  const Shape wide = onnx.shape(places);
  Value* list = onnx.reshape(places, Shape{wide[0], wide[1], wide[2] * wide[3]});
  Dim plane(1);
  for (const int64_t size : in) plane = plane * Dim(size);
  Value* planes = onnx.reshape(given.x, Shape{shape[0], shape[1], plane});
  Value* elements = onnx.reshape(onnx("GatherElements", {planes, list}, {attr("axis", int64_t{2})}), wide);
  Values results{onnx.reshape(onnx.reduce("ReduceMax", elements, {3}, false), n.output_shape()), nullptr};
  if (!n.wants_output(1)) return results;
  Value* best = onnx("ArgMax", {elements}, {attr("axis", int64_t{3})});
  results[1] = onnx.reshape(onnx("GatherElements", {places, best}, {attr("axis", int64_t{3})}), n.output_shape(1));
  return results;
}

constexpr AtenOp kAtenFractionalPoolAten[] = {
    {.sig = "aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) "
            "-> (Tensor, Tensor)",
     .types = types_adaptive_pool,
     .python = "torch.ops.aten.fractional_max_pool2d",
     .raise = raise_fractional_max_pool},
    {.sig = "aten::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) "
            "-> (Tensor, Tensor)",
     .types = types_adaptive_pool,
     .python = "torch.ops.aten.fractional_max_pool3d",
     .raise = raise_fractional_max_pool},
};

}  // namespace

extern const OpFamily kAtenFractionalPoolOps;
constinit const OpFamily kAtenFractionalPoolOps{"aten_fractional_pool", {}, kAtenFractionalPoolAten};

}  // namespace tonnx
