// raise.cpp - PyTorch's normalisations as ONNX.
#include "base/checked_int.h"
#include "ops/norm/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// A list of equal numbers, one for each channel.
Value* filled(OnnxBuilder& onnx, const Dim& channels, DType dtype, double value) {
  const auto count = channels.constant();
  if (count && *count <= int64_t{1} << 16)
    return onnx.numbers(dtype, {*count}, std::vector<double>(static_cast<size_t>(*count), value));
  return onnx.expand(onnx.number(dtype, value), {channels});
}

/// Scale and bias for each channel; ones and zeros where they are not given.
struct Affine {
  Value *scale, *bias;
  bool is_given;
};
Affine affine_of(const AtenNode& n, OnnxBuilder& onnx, const Dim& channels, DType dtype) {
  Value *scale = n.find_input("weight"), *bias = n.find_input("bias");
  const bool is_given = scale || bias;
  return {scale ? onnx.cast(scale, dtype) : filled(onnx, channels, dtype, 1),
          bias ? onnx.cast(bias, dtype) : filled(onnx, channels, dtype, 0), is_given};
}

std::vector<int64_t> all_but_channels(int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  return axes;
}

/// The statistics of the batch itself.
struct BatchStatistics {
  Value *mean, *variance;  // one for each channel
};
BatchStatistics statistics_of(OnnxBuilder& onnx, Value* x) {
  const std::vector<int64_t> axes = all_but_channels(onnx.rank(x));
  Value* mean = onnx.reduce("ReduceMean", x, axes, true);
  Value* centred = onnx("Sub", {x, mean});
  return {onnx.squeeze(mean, axes), onnx.reduce("ReduceMean", onnx("Mul", {centred, centred}), axes, false)};
}

/// Every channel over the whole batch: the batch becomes a part of the plane.
Value* normalized_by_batch(OnnxBuilder& onnx, Value* x, const Affine& affine, double eps) {
  const Shape shape = onnx.shape(x);
  Value* first = onnx.rank(x) < 2 ? x : onnx.swap_axes(x, 0, 1);
  Value* flat =
      onnx.reshape(first, IntArgs{1, shape[1].is_constant() ? IntArg(*shape[1].constant()) : onnx.size(x, 1), -1});
  Value* y = onnx("InstanceNormalization", {flat, affine.scale, affine.bias}, {attr("epsilon", eps)});
  Shape swapped = shape;
  std::swap(swapped[0], swapped[1]);
  return onnx.swap_axes(onnx.reshape(y, swapped), 0, 1);
}

Value* inverse_deviation(OnnxBuilder& onnx, Value* variance, double eps) {
  Value* deviation = onnx("Sqrt", {onnx("Add", {variance, onnx.number(onnx.dtype(variance), eps)})});
  return onnx("Reciprocal", {deviation});
}

/// (1 - momentum) * old + momentum * now
Value* running(OnnxBuilder& onnx, Value* old, Value* now, double momentum) {
  const DType dtype = onnx.dtype(old);
  Value* kept = onnx("Mul", {old, onnx.number(dtype, 1 - momentum)});
  return onnx("Add", {kept, onnx("Mul", {onnx.cast(now, dtype), onnx.number(dtype, momentum)})});
}

/// The variance with Bessel's correction, as PyTorch's running variance has it.
Value* corrected(OnnxBuilder& onnx, Value* variance, Value* x) {
  Dim count(1);
  for (const int64_t axis : all_but_channels(onnx.rank(x))) count = count * onnx.shape(x)[static_cast<size_t>(axis)];
  const DType dtype = onnx.dtype(variance);
  if (const auto known = count.constant()) {
    const double all = static_cast<double>(*known);
    return onnx("Mul", {variance, onnx.number(dtype, all / (all - 1))});
  }
  Value* all = onnx.cast(onnx.list(onnx.int_of(count)), dtype);
  return onnx("Mul", {variance, onnx("Div", {all, onnx("Sub", {all, onnx.number(dtype, 1)})})});
}

Value* normalized_by_running(const AtenNode& n, OnnxBuilder& onnx, const Affine& affine) {
  Value *mean = n.find_input("running_mean"), *variance = n.find_input("running_var");
  if (!mean || !variance) n.cannot("running statistics are not given");
  constexpr double kUsualMomentum = 0.1;
  std::vector<Attribute> attributes{attr("epsilon", n.f("eps"))};
  const double momentum = n.f("momentum");  // of a module that averages over all batches it is 0, and ONNX has no such
  if (momentum != 0 && momentum != kUsualMomentum) attributes.push_back(attr("momentum", 1 - momentum));
  return onnx("BatchNormalization", {n.input("input"), affine.scale, affine.bias, mean, variance}, attributes);
}

}  // namespace

Values raise_batch_norm(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"cudnn_enabled", "running_mean", "running_var"});
  const double momentum = n.f("momentum");
  const DType dtype = n.dtype("input");
  if (n.rank("input") < 2) {
    n.ignore({"weight", "bias", "training", "eps"});
    if (!n.shape("input").at(0).is(0)) n.cannot("a batch of single numbers");
    return n.input("input");
  }
  const Affine affine = affine_of(n, onnx, n.shape("input").at(1), dtype);
  if (!n.flag("training")) return normalized_by_running(n, onnx, affine);
  Value *x = n.input("input"), *mean = n.find_input("running_mean"), *variance = n.find_input("running_var");
  if (!onnx.is_training()) return normalized_by_batch(onnx, x, affine, n.f("eps"));
  const Dim& channels = n.shape("input").at(1);
  return onnx.all(3, "BatchNormalization",
                  {x, affine.scale, affine.bias, mean ? mean : filled(onnx, channels, dtype, 0),
                   variance ? variance : filled(onnx, channels, dtype, 1)},
                  {attr("epsilon", n.f("eps")), attr("momentum", 1 - momentum), attr("training_mode", int64_t{1})})[0];
}

namespace {

/// What the forms with several outputs share: the result, and what of the statistics is wanted. `first_running` is the
/// place of the first of the two outputs that run along, or 0.
Values batch_norm_outputs(const AtenNode& n, OnnxBuilder& onnx, bool trains, bool has_running, size_t first_running) {
  Value* x = n.input("input");
  const DType dtype = n.dtype("input");
  const double eps = n.f("eps"), momentum = n.f("momentum");
  if (has_running) n.ignore({"running_mean", "running_var"});
  const Affine affine = affine_of(n, onnx, n.shape("input").at(1), dtype);
  Values results(std::vector<Value*>(n.output_count(), nullptr));
  const auto empty = [&](size_t i) { return onnx.numbers(n.output_dtype(i), {0}, {}); };
  const size_t reserve = n.output_count() - 1;
  const bool has_reserve = n.output_dtype(reserve) == DType::UInt8;
  if (has_reserve) results[reserve] = empty(reserve);
  if (first_running == 4 && n.output_dtype(3) == DType::UInt8) results[3] = empty(3);
  if (!trains) {
    results[0] = normalized_by_running(n, onnx, affine);
    for (size_t i = 1; i < 3; ++i) {
      const bool is_empty = n.output_shape(i).size() == 1 && n.output_shape(i)[0].is(0);
      if (!n.wants_output(i)) continue;
      if (is_empty) {
        results[i] = empty(i);
        continue;
      }
      Value* kept = n.input_as(i == 1 ? "running_mean" : "running_var", n.output_dtype(i));
      results[i] = i == 1 ? kept : inverse_deviation(onnx, kept, eps);
    }
    if (first_running > 0) {
      results[first_running] = n.input("running_mean");
      results[first_running + 1] = n.input("running_var");
    }
    return results;
  }
  results[0] = normalized_by_batch(onnx, x, affine, eps);
  const bool wants_running = first_running > 0 && (n.wants_output(first_running) || n.wants_output(first_running + 1));
  if (!n.wants_output(1) && !n.wants_output(2) && !wants_running) return results;
  const BatchStatistics now = statistics_of(onnx, onnx.cast(x, n.output_dtype(1)));
  results[1] = now.mean;
  if (n.wants_output(2)) results[2] = inverse_deviation(onnx, now.variance, eps);
  if (wants_running) {
    results[first_running] = running(onnx, n.input("running_mean"), now.mean, momentum);
    results[first_running + 1] = running(onnx, n.input("running_var"), corrected(onnx, now.variance, x), momentum);
  }
  return results;
}

Values raise_native_batch_norm(const AtenNode& n, OnnxBuilder& onnx) {
  return batch_norm_outputs(n, onnx, n.flag("training"), true, 0);
}
Values raise_batch_norm_without_statistics(const AtenNode& n, OnnxBuilder& onnx) {
  if (!n.flag("training")) n.cannot("running statistics are not given");
  return batch_norm_outputs(n, onnx, true, false, 0);
}
Values raise_batch_norm_no_training(const AtenNode& n, OnnxBuilder& onnx) {
  return batch_norm_outputs(n, onnx, false, true, 0);
}
Values raise_batch_norm_functional(const AtenNode& n, OnnxBuilder& onnx) {
  return batch_norm_outputs(n, onnx, n.flag("training"), true, 3);
}
Values raise_batch_norm_by_batch(const AtenNode& n, OnnxBuilder& onnx) {
  return batch_norm_outputs(n, onnx, true, true, 0);
}
Values raise_batch_norm_with_update(const AtenNode& n, OnnxBuilder& onnx) {
  return batch_norm_outputs(n, onnx, true, true, 4);
}

}  // namespace

Values raise_instance_norm(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"cudnn_enabled", "momentum", "running_mean", "running_var"});
  const Affine affine = affine_of(n, onnx, n.shape("input").at(1), n.dtype("input"));
  if (!n.flag("use_input_stats")) return normalized_by_running(n, onnx, affine);
  return onnx("InstanceNormalization", {n.input("input"), affine.scale, affine.bias}, {attr("epsilon", n.f("eps"))});
}

Values raise_group_norm(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"cudnn_enabled"});
  const Affine affine = affine_of(n, onnx, n.shape("input").at(1), n.dtype("input"));
  return onnx("GroupNormalization", {n.input("input"), affine.scale, affine.bias},
              {attr("epsilon", n.f("eps")), attr("num_groups", n.i("num_groups"))});
}

namespace {

/// Ones in the sizes that are normalised, unless the weight is given.
Value* layer_scale(const AtenNode& n, OnnxBuilder& onnx, int64_t count) {
  const DType dtype = n.dtype("input");
  if (Value* weight = n.find_input("weight")) return onnx.cast(weight, dtype);
  const Shape& shape = n.shape("input");
  const Shape sizes = shape.last(count);
  int64_t all = 1;
  std::vector<int64_t> dims;
  for (const Dim& size : sizes) {
    if (!size.is_constant() || *size.constant() > int64_t{1} << 20) return onnx.expand(onnx.number(dtype, 1), sizes);
    dims.push_back(*size.constant());
    all = checked_mul(all, dims.back());
  }
  if (all > int64_t{1} << 20) return onnx.expand(onnx.number(dtype, 1), sizes);
  return onnx.numbers(dtype, dims, std::vector<double>(static_cast<size_t>(all), 1));
}

int64_t normalized_count(const AtenNode& n) { return static_cast<int64_t>(n.int_args("normalized_shape").size()); }

}  // namespace

Values raise_layer_norm(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t count = normalized_count(n);
  const bool is_native = n.node().op == "native_layer_norm";
  if (!is_native) n.ignore({"cudnn_enable"});
  const DType dtype = n.dtype("input");
  Value *x = n.input("input"), *bias = n.find_input("bias");
  const std::vector<Value*> inputs{x, layer_scale(n, onnx, count), bias ? onnx.cast(bias, dtype) : nullptr};
  const std::vector<Attribute> attributes{attr("axis", -count), attr("epsilon", n.f("eps"))};
  Values results{onnx("LayerNormalization", inputs, attributes)};
  if (!is_native || (!n.wants_output(1) && !n.wants_output(2))) return {results[0], nullptr, nullptr};
  x = onnx.cast(x, n.output_dtype(1));
  std::vector<int64_t> axes;
  for (int64_t i = count; i > 0; --i) axes.push_back(onnx.rank(x) - i);
  Value* mean = onnx.reduce("ReduceMean", x, axes, true);
  Value* centred = onnx("Sub", {x, mean});
  Value* variance = onnx.reduce("ReduceMean", onnx("Mul", {centred, centred}), axes, true);
  return {results[0], mean, inverse_deviation(onnx, variance, n.f("eps"))};
}

namespace {

Values raise_native_group_norm(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"N", "C", "HxW"});
  const int64_t groups = n.i("group");
  const double eps = n.f("eps");
  const Affine affine = affine_of(n, onnx, n.shape("input").at(1), n.dtype("input"));
  Value* x = n.input("input");
  Values results{
      onnx("GroupNormalization", {x, affine.scale, affine.bias}, {attr("epsilon", eps), attr("num_groups", groups)}),
      nullptr, nullptr};
  if (!n.wants_output(1) && !n.wants_output(2)) return results;
  const Shape& shape = onnx.shape(x);
  Dim plane(1);
  for (size_t i = 1; i < shape.size(); ++i) plane = plane * shape[i];
  Value* flat = onnx.reshape(x, Shape{shape[0], Dim(groups), floor_div(plane, Dim(groups))});
  flat = onnx.cast(flat, n.output_dtype(1));
  Value* mean = onnx.reduce("ReduceMean", flat, {2}, true);
  Value* centred = onnx("Sub", {flat, mean});
  Value* variance = onnx.reduce("ReduceMean", onnx("Mul", {centred, centred}), {2}, false);
  results[1] = onnx.squeeze(mean, {2});
  results[2] = inverse_deviation(onnx, variance, eps);
  return results;
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::Float64: return 2.220446049250313e-16;
    case DType::Float16: return 0.0009765625;
    case DType::BFloat16: return 0.0078125;
    default: return 1.1920928955078125e-07;
  }
}

}  // namespace

Values raise_rms_norm(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t count = normalized_count(n);
  const DType dtype = n.dtype("input");
  const double eps = n.find_f("eps").value_or(epsilon_of(dtype));
  Value* x = n.input("input");
  const int64_t stash = dtype == DType::Float64 ? 11 : 1;
  Value* y = onnx("RMSNormalization", {x, layer_scale(n, onnx, count)},
                  {attr("axis", -count), attr("epsilon", eps), attr("stash_type", stash)});
  if (n.output_count() < 2 || !n.wants_output(1)) return {y, nullptr};
  x = onnx.cast(x, n.output_dtype(1));
  std::vector<int64_t> axes;
  for (int64_t i = count; i > 0; --i) axes.push_back(onnx.rank(x) - i);
  return {y, inverse_deviation(onnx, onnx.reduce("ReduceMean", onnx("Mul", {x, x}), axes, true), eps)};
}

namespace {

constexpr AtenOp kAtenNormAten[] = {
    {.sig = "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
            "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .layout = Layout::Channels,
     .python = "torch.native_batch_norm",
     .raise = raise_native_batch_norm},
    {.sig = "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
            "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .python = "torch.ops.aten._native_batch_norm_legit",
     .raise = raise_native_batch_norm},
    {.sig = "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float "
            "momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .python = "torch.ops.aten._native_batch_norm_legit",
     .raise = raise_batch_norm_without_statistics},
    {.sig = "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
            "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .layout = Layout::Channels,
     .python = "torch.ops.aten._native_batch_norm_legit_no_training",
     .raise = raise_batch_norm_no_training},
    {.sig = "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
            "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, "
            "Tensor running_mean_out, Tensor running_var_out)",
     .python = "torch.ops.aten._native_batch_norm_legit_functional",
     .raise = raise_batch_norm_functional},
    {.sig = "aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
            "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
     .layout = Layout::Channels,
     .python = "torch.ops.aten._batch_norm_no_update",
     .raise = raise_batch_norm_no_training},
    {.sig = "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
            "Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
     .layout = Layout::Channels,
     .python = "torch.ops.aten._batch_norm_with_update",
     .raise = raise_batch_norm_by_batch},
    {.sig = "aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
            "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor "
            "running_mean_out, Tensor running_var_out)",
     .python = "torch.ops.aten._batch_norm_with_update_functional",
     .raise = raise_batch_norm_with_update},
    {.sig = "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
            "-> (Tensor, Tensor, Tensor)",
     .types = types_native_layer_norm,
     .python = "torch.native_layer_norm",
     .raise = raise_layer_norm},
    {.sig = "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int "
            "group, float eps) -> (Tensor, Tensor, Tensor)",
     .types = types_native_group_norm,
     .layout = Layout::Channels,
     .python = "torch.native_group_norm",
     .raise = raise_native_group_norm},
    {.sig = "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, "
            "Tensor)",
     .layout = Layout::Channels,
     .python = "torch.ops.aten._fused_rms_norm",
     .raise = raise_rms_norm},
};

}  // namespace

extern const OpFamily kAtenNormOps;
constinit const OpFamily kAtenNormOps{"aten_norm", {}, kAtenNormAten};

}  // namespace tonnx
