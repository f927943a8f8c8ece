// raise.cpp - PyTorch's random numbers and dropout as ONNX's random operators.
#include <cmath>
#include <numbers>

#include "ops/create/rows.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/emission.h"
#include "ops/math/rows.h"
#include "ops/random/rows.h"

namespace tonnx {
namespace {

void ignore_all(const AtenNode& n) {
  for (const Attribute& argument : n.node().attributes) n.ignore({argument.name});
}

/// Numbers of a shape, in float32 or float64: between 0 and 1, or of the normal distribution.
Value* draw(OnnxBuilder& onnx, const Shape& shape, DType dtype, bool is_normal) {
  const DType kernel = dtype == DType::Float64 ? dtype : DType::Float32;
  std::vector<int64_t> sizes;
  for (const Dim& dim : shape) {
    if (const auto size = dim.constant()) sizes.push_back(*size);
  }
  Value* numbers;
  if (sizes.size() == shape.size()) {
    numbers = onnx(is_normal ? "RandomNormal" : "RandomUniform", {},
                   {{"shape", sizes}, {"dtype", static_cast<int64_t>(kernel)}});
  } else {
    Value* like = onnx.expand(onnx.number(kernel, 0), shape);
    numbers = onnx(is_normal ? "RandomNormalLike" : "RandomUniformLike", {like});
  }
  return is_float(dtype) ? onnx.cast(numbers, dtype) : numbers;
}

Values raise_drawn(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_all(n);
  return draw(onnx, n.output_shape(), n.output_dtype(), n.node().op.view().starts_with("randn"));
}

/// Whole numbers from low to high - 1.
Values raise_randint(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_all(n);
  const DType dtype = n.output_dtype(), wide = DType::Float64;
  const bool has_low = n.node().find_attribute("low") != nullptr;
  Value* low = has_low ? n.input_as("low", wide) : onnx.number(wide, 0);
  Value* span = has_low ? onnx("Sub", {n.input_as("high", wide), low}) : n.input_as("high", wide);
  Value* drawn = draw(onnx, n.output_shape(), wide, false);
  Value* whole = onnx("Floor", {onnx("Mul", {drawn, span})});
  return onnx.cast(has_low ? onnx("Add", {whole, low}) : whole, dtype);
}

/// The order of random numbers.
Values raise_randperm(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_all(n);
  const Shape& shape = n.output_shape();
  Value* keys = draw(onnx, shape, DType::Float32, false);
  const Values sorted = onnx.all(2, "TopK", {keys, onnx.list(onnx.int_of(shape[0]))});
  return onnx.cast(sorted[1], n.output_dtype());
}

Values raise_normal(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"generator"});
  ignore_all(n);
  const DType dtype = n.output_dtype();
  Value* drawn = draw(onnx, n.output_shape(), dtype, true);
  Value* spread = onnx("Mul", {drawn, n.input_as("std", dtype)});
  return onnx("Add", {spread, n.input_as("mean", dtype)});
}

/// Whether a number between 0 and 1 is below the probability.
Values raise_bernoulli_p(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_all(n);
  Value* drawn = draw(onnx, n.output_shape(), DType::Float32, false);
  return onnx.cast(onnx("Less", {drawn, n.input_as("p", DType::Float32)}), n.output_dtype());
}

/// What the in-place fillers give: uniform, exponential, log_normal, cauchy, geometric.
Values raise_filler(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_all(n);
  const std::string_view name = n.node().op.view();
  const DType dtype = n.output_dtype();
  const auto number = [&](double value) { return onnx.number(dtype, value); };
  if (name == "log_normal") {
    Value* drawn = onnx("Mul", {draw(onnx, n.output_shape(), dtype, true), number(n.f("std"))});
    return onnx("Exp", {onnx("Add", {drawn, number(n.f("mean"))})});
  }
  Value* drawn = draw(onnx, n.output_shape(), dtype, false);
  if (name == "uniform") {
    const double from = n.f("from"), to = n.f("to");
    return onnx("Add", {onnx("Mul", {drawn, number(to - from)}), number(from)});
  }
  if (name == "cauchy") {
    Value* angle = onnx("Mul", {onnx("Sub", {drawn, number(0.5)}), number(std::numbers::pi)});
    Value* tangent = onnx("Div", {onnx("Sin", {angle}), onnx("Cos", {angle})});
    return onnx("Add", {onnx("Mul", {tangent, number(n.f("sigma"))}), number(n.f("median"))});
  }
  Value* log = onnx("Log", {onnx("Sub", {number(1), drawn})});
  if (name == "exponential") return onnx("Div", {log, number(-n.f("lambd"))});
  return onnx("Ceil", {onnx("Div", {log, number(std::log1p(-n.f("p")))})});
}

/// 0 with probability p, and 1 / (1 - p) elsewhere, of a shape of its own.
Value* kept(OnnxBuilder& onnx, const Shape& shape, DType dtype, double p) {
  Value* drawn = draw(onnx, shape, DType::Float32, false);
  Value* is_kept = onnx("GreaterOrEqual", {drawn, onnx.number(DType::Float32, p)});
  return onnx.cast(is_kept, dtype);
}

/// The shape of one decision for each channel.
Shape channels_of(const Shape& shape) {
  Shape result(shape.size(), Dim(1));
  for (size_t i = 0; i < 2 && i < shape.size(); ++i) result[i] = shape[i];
  return result;
}

Values raise_feature_dropout(const AtenNode& n, OnnxBuilder& onnx) {
  const double p = n.f("p");
  Value* x = n.input("input");
  if (!n.flag("train") || p == 0) return x;
  const DType dtype = n.dtype("input");
  if (p == 1) return onnx("Mul", {x, onnx.number(dtype, 0)});
  Value* mask = kept(onnx, channels_of(n.shape("input")), dtype, p);
  return onnx("Mul", {x, onnx("Mul", {mask, onnx.number(dtype, 1 / (1 - p))})});
}

/// Dropped elements become the value that keeps mean and variance of SELU networks.
Values raise_alpha_dropout(const AtenNode& n, OnnxBuilder& onnx) {
  const double p = n.f("p");
  Value* x = n.input("input");
  if (!n.flag("train") || p == 0) return x;
  const DType dtype = n.dtype("input");
  if (p == 1) return onnx("Mul", {x, onnx.number(dtype, 0)});
  const bool by_channel = n.node().op.view() == "feature_alpha_dropout";
  constexpr double kAlpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  Value* mask = kept(onnx, by_channel ? channels_of(n.shape("input")) : n.shape("input"), dtype, p);
  // kept: a * x + b; dropped: a * -alpha + b, with b = a * alpha * p
  Value* is_dropped = onnx("Sub", {mask, onnx.number(dtype, 1)});
  Value* shift =
      onnx("Add", {onnx("Mul", {is_dropped, onnx.number(dtype, kAlpha * a)}), onnx.number(dtype, kAlpha * a * p)});
  return onnx("Add", {onnx("Mul", {x, onnx("Mul", {mask, onnx.number(dtype, a)})}), shift});
}

Values raise_native_dropout(const AtenNode& n, OnnxBuilder& onnx) {
  const double p = n.f("p");
  Value* x = n.input("input");
  const auto train = n.find_flag("train");
  if (train && !*train) return {x, onnx.expand(onnx.flag(true), n.shape("input"))};
  return onnx.all(2, "Dropout", {x, onnx.number(DType::Float32, p), onnx.flag(true)});
}

Values raise_native_dropout_backward(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* mask = onnx("Mul", {n.input_as("mask", dtype), onnx.number(dtype, n.f("scale"))});
  return onnx("Mul", {n.input_as("grad_output", dtype), mask});
}

std::string emit_alpha_dropout(const Emission& e) {
  return fmt::format("F.alpha_dropout({}, {}, training={})", e.text("input"), e.text("p"), e.text("train"));
}

constexpr AtenOp kAtenRandomAten[] = {
    {.sig = "aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor",
     .types = types_as_input,
     .view = ViewRule::Dropout,
     .emit = emit_alpha_dropout,
     .raise = raise_alpha_dropout},
    {.sig = "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.bernoulli",
     .raise = raise_bernoulli_p},
    {.sig = "aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "torch.bernoulli",
     .raise = raise_bernoulli_p},
    {.sig = "aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten.cauchy",
     .raise = raise_filler},
    {.sig = "aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten.exponential",
     .raise = raise_filler},
    {.sig = "aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
     .types = types_as_input,
     .view = ViewRule::Dropout,
     .python = "torch.feature_alpha_dropout",
     .raise = raise_alpha_dropout},
    {.sig = "aten::feature_dropout(Tensor input, float p, bool train) -> Tensor",
     .types = types_as_input,
     .view = ViewRule::Dropout,
     .python = "torch.feature_dropout",
     .raise = raise_feature_dropout},
    {.sig = "aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten.geometric",
     .raise = raise_filler},
    {.sig = "aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten.log_normal",
     .raise = raise_filler},
    {.sig = "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
     .types = types_native_dropout,
     .layout = Layout::Inputs,
     .python = "torch.native_dropout",
     .raise = raise_native_dropout},
    {.sig = "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
     .types = types_dropout_backward,
     .python = "torch.ops.aten.native_dropout_backward",
     .raise = raise_native_dropout_backward},
    {.sig = "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .types = types_normal,
     .python = "torch.normal",
     .raise = raise_normal},
    {.sig = "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
     .types = types_as_first,
     .python = "torch.normal",
     .raise = raise_normal},
    {.sig = "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .types = types_as_first,
     .python = "torch.normal",
     .raise = raise_normal},
    {.sig = "aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? "
            "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_of_size,
     .python = "torch.normal",
     .raise = raise_normal},
    {.sig = "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten.normal_functional",
     .raise = raise_normal},
    {.sig = "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
     .types = types_of_integers,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_randint},
    {.sig = "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, "
            "Device? device=None, bool? pin_memory=None) -> Tensor",
     .types = types_of_integers,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_randint},
    {.sig = "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .types = types_as_first,
     .layout = Layout::Inputs,
     .python = "torch.randint_like",
     .raise = raise_randint},
    {.sig = "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .types = types_as_first,
     .layout = Layout::Inputs,
     .python = "torch.randint_like",
     .raise = raise_randint},
    {.sig = "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None) -> Tensor",
     .types = types_permutation,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_randperm},
    {.sig = "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten.uniform",
     .raise = raise_filler},
};

}  // namespace

Values raise_dropout(const AtenNode& n, OnnxBuilder& onnx) {
  const double p = n.f("p");
  if (!n.flag("train") || p == 0) return n.input("input");
  if (p == 1) return onnx("Mul", {n.input("input"), onnx.number(n.dtype("input"), 0)});
  return onnx("Dropout", {n.input("input"), onnx.number(DType::Float32, p), onnx.flag(true)});
}

Values raise_random(const AtenNode& n, OnnxBuilder& onnx) { return raise_drawn(n, onnx); }

Values raise_bernoulli(const AtenNode& n, OnnxBuilder& onnx) {
  ignore_all(n);
  const DType dtype = n.dtype("self"), kernel = dtype == DType::Float64 ? dtype : DType::Float32;
  Value* drawn = draw(onnx, n.output_shape(), kernel, false);
  return onnx.cast(onnx("Less", {drawn, n.input_as("self", kernel)}), n.output_dtype());
}

/// Without replacement the largest keys of Gumbel's kind are drawn.
Values raise_multinomial(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"generator"});
  const bool is_row = n.rank("self") == 1;
  Value* x = n.input_as("self", DType::Float32);
  if (is_row) x = onnx.unsqueeze(x, {0});
  Value* log = onnx("Log", {x});
  Value* drawn;
  if (n.flag("replacement")) {
    const auto count = n.find_i("num_samples");
    drawn = onnx("Multinomial", {log}, {{"sample_size", *count}, {"dtype", static_cast<int64_t>(DType::Int64)}});
  } else {
    Value* uniform = onnx("RandomUniformLike", {log}, {{"low", 1e-20}});
    Value* noise = onnx("Neg", {onnx("Log", {onnx("Neg", {onnx("Log", {uniform})})})});
    drawn = onnx.all(2, "TopK", {onnx("Add", {log, noise}), onnx.list(n.int_arg("num_samples"))})[1];
  }
  return is_row ? onnx.squeeze(drawn, {0}) : drawn;
}

extern const OpFamily kAtenRandomOps;
constinit const OpFamily kAtenRandomOps{"aten_random", {}, kAtenRandomAten};

}  // namespace tonnx
