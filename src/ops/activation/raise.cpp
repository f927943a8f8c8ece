// raise.cpp - PyTorch's activation functions and softmax as ONNX.
#include <cmath>
#include <limits>

#include "ops/activation/rows.h"
#include "ops/frame/aten_types.h"
#include "ops/math/complex.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

/// ONNX Runtime has these functions for float32 (and so for float16), not for float64.
bool has_kernel(DType dtype) { return dtype != DType::Float64; }

Value* number(OnnxBuilder& onnx, Value* x, double value) { return onnx.number(OnnxBuilder::dtype(x), value); }

/// One value where x > 0, another elsewhere; NaN is elsewhere.
Value* where_positive(Value* x, Value* positive, Value* other, OnnxBuilder& onnx) {
  return onnx.where(onnx("Greater", {x, number(onnx, x, 0)}), positive, other);
}

/// scale * (x > 0 ? x : alpha * (exp(x * input_scale) - 1))
Value* elu(Value* x, double alpha, double scale, double input_scale, OnnxBuilder& onnx) {
  const DType dtype = OnnxBuilder::dtype(x);
  if (has_kernel(dtype) && input_scale == 1) {
    Value* y = onnx("Elu", {x}, {{"alpha", alpha}});
    return scale == 1 ? y : onnx("Mul", {y, number(onnx, x, scale)});
  }
  Value* bent = input_scale == 1 ? x : onnx("Mul", {x, number(onnx, x, input_scale)});
  Value* below = onnx("Mul", {expm1(bent, onnx), number(onnx, x, alpha * scale)});
  Value* above = scale == 1 ? x : onnx("Mul", {x, number(onnx, x, scale)});
  return where_positive(x, above, below, onnx);
}

Values raise_glu(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t dim = n.dim("dim", "self");
  const Values halves = onnx.all(2, "Split", {n.input("self")}, {{"axis", dim}, {"num_outputs", int64_t{2}}});
  return onnx("Mul", {halves[0], onnx("Sigmoid", {halves[1]})});
}

Values raise_hardtanh(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  return onnx("Clip", {n.input("self"), n.input_as("min_val", dtype), n.input_as("max_val", dtype)});
}

/// -softplus(-x)
Values raise_log_sigmoid(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx("Neg", {softplus(onnx("Neg", {n.input("self")}), onnx)});
}

Values raise_log_sigmoid_forward(const AtenNode& n, OnnxBuilder& onnx) {
  Value* y = raise_log_sigmoid(n, onnx)[0];
  if (n.wants_output(1)) n.cannot("the buffer of log_sigmoid_forward");
  return {y, nullptr};
}

/// In training the slope is random, between the two; elsewhere it is their mean.
Values raise_rrelu(const AtenNode& n, OnnxBuilder& onnx) {
  const double lower = n.f("lower"), upper = n.f("upper");
  Value* x = n.input("self");
  if (!n.flag("training")) return leaky_relu(x, (lower + upper) / 2, onnx);
  Value* slope = onnx("RandomUniformLike", {x}, {{"low", lower}, {"high", upper}});
  return where_positive(x, x, onnx("Mul", {x, slope}), onnx);
}

/// Softmax of rows that are -inf throughout is 0, and not NaN.
Values raise_safe_softmax(const AtenNode& n, OnnxBuilder& onnx) {
  Value* y = raise_softmax(n, onnx)[0];
  const double inf = std::numeric_limits<double>::infinity();
  if (n.rank("self") == 0) return y;
  Value* x = n.input_as("self", n.output_dtype());
  Value* most = onnx.reduce("ReduceMax", x, {n.dim("dim", "self")}, true);
  return onnx.where(onnx("Equal", {most, number(onnx, x, -inf)}), number(onnx, x, 0), y);
}

/// grad * output, less its mean weighted by output.
Values raise_softmax_backward(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"input_dtype"});
  Value* y = n.input("output");
  Value* product = onnx("Mul", {n.input("grad_output"), y});
  if (n.rank("output") == 0) return onnx.cast(onnx("Sub", {product, onnx("Mul", {y, product})}), n.output_dtype());
  Value* sum = onnx.reduce("ReduceSum", product, {n.dim("dim", "output")}, true);
  return onnx.cast(onnx("Sub", {product, onnx("Mul", {y, sum})}), n.output_dtype());
}

/// The two halves become one.
void types_glu(TypeNode& n) {
  reshape_self(n, [&](Shape shape) -> MaybeShape {
    const auto dim = n.dim("dim", shape.size());
    if (!dim) return std::nullopt;
    shape[*dim] = floor_div(shape[*dim], Dim(2));
    return shape;
  });
}

constexpr AtenOp kAtenActivationAten[] = {
    {.sig = "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten._safe_softmax",
     .raise = raise_safe_softmax},
    {.sig = "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     .types = types_softmax_forward,
     .python = "torch.ops.aten._softmax",
     .raise = raise_softmax},
    {.sig = "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     .types = types_softmax_forward,
     .python = "torch.ops.aten._log_softmax",
     .raise = raise_softmax},
    {.sig =
         "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
     .python = "torch.ops.aten._softmax_backward_data",
     .raise = raise_softmax_backward},
    {.sig = "aten::glu(Tensor self, int dim=-1) -> Tensor", .types = types_glu, .python = "F.glu", .raise = raise_glu},
    {.sig = "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.hardtanh",
     .raise = raise_hardtanh},
    {.sig = "aten::log_sigmoid(Tensor self) -> Tensor",
     .types = types_as_self,
     .python = "F.logsigmoid",
     .raise = raise_log_sigmoid},
    {.sig = "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
     .python = "torch.ops.aten.log_sigmoid_forward",
     .raise = raise_log_sigmoid_forward},
    {.sig = "aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, "
            "Generator? generator=None) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .python = "F.rrelu",
     .raise = raise_rrelu},
};

}  // namespace

Value* leaky_relu(Value* x, double slope, OnnxBuilder& onnx) {
  if (has_kernel(OnnxBuilder::dtype(x))) return onnx("LeakyRelu", {x}, {{"alpha", slope}});
  return where_positive(x, x, onnx("Mul", {x, number(onnx, x, slope)}), onnx);
}

Values raise_elu(const AtenNode& n, OnnxBuilder& onnx) {
  return elu(n.input("self"), n.f("alpha"), n.f("scale"), n.f("input_scale"), onnx);
}

/// x > 0 ? x : alpha * (exp(x / alpha) - 1)
Values raise_celu(const AtenNode& n, OnnxBuilder& onnx) {
  const double alpha = n.f("alpha");
  if (n.dtype("self") == DType::Float32) return onnx("Celu", {n.input("self")}, {{"alpha", alpha}});
  return elu(n.input("self"), alpha, 1, 1 / alpha, onnx);
}

Values raise_selu(const AtenNode& n, OnnxBuilder& onnx) {
  if (has_kernel(n.dtype("self"))) return onnx("Selu", {n.input("self")});
  return elu(n.input("self"), kSeluAlpha, kSeluScale, 1, onnx);
}

Values raise_gelu(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string approximate = n.s("approximate");
  Value* x = n.input("self");
  if (has_kernel(n.dtype("self")) || approximate != "none") {
    if (approximate == "none") return onnx("Gelu", {x});
    return onnx("Gelu", {x}, {{"approximate", approximate}});
  }
  Value* erf = apply_unary("Erf", onnx("Mul", {x, number(onnx, x, std::sqrt(0.5))}), onnx);
  Value* half = onnx("Mul", {x, number(onnx, x, 0.5)});
  return onnx("Mul", {half, onnx("Add", {erf, number(onnx, x, 1)})});
}

Values raise_hardshrink(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  // NaN is kept: it is not within the bounds
  Value* is_within = onnx("LessOrEqual", {onnx("Abs", {x}), number(onnx, x, n.f("lambd"))});
  return onnx.where(is_within, number(onnx, x, 0), x);
}

Values raise_hardsigmoid(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  if (has_kernel(n.dtype("self"))) return onnx("HardSigmoid", {x}, {{"alpha", 1.0 / 6}});
  Value* line = onnx("Div", {onnx("Add", {x, number(onnx, x, 3)}), number(onnx, x, 6)});
  return onnx("Clip", {line, number(onnx, x, 0), number(onnx, x, 1)});
}

Values raise_hardswish(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  if (has_kernel(n.dtype("self"))) return onnx("HardSwish", {x});
  return onnx("Mul", {x, raise_hardsigmoid(n, onnx)[0]});
}

Values raise_leaky_relu(const AtenNode& n, OnnxBuilder& onnx) {
  return leaky_relu(n.input("self"), n.f("negative_slope"), onnx);
}

Values raise_mish(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  if (has_kernel(n.dtype("self"))) return onnx("Mish", {x});
  return onnx("Mul", {x, onnx("Tanh", {softplus(x, onnx)})});
}

/// The weights belong to dimension 1.
Values raise_prelu(const AtenNode& n, OnnxBuilder& onnx) {
  Value *x = n.input("self"), *weight = n.input("weight");
  const int64_t rank = n.rank("self");
  if (n.rank("weight") == 1 && rank > 2 && !n.shape("weight")[0].is(1)) {
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < rank - 1; ++axis) axes.push_back(axis);
    weight = onnx.unsqueeze(weight, axes);
  } else if (n.rank("weight") == 1 && rank == 0) {
    weight = onnx.squeeze(weight, {0});
  }
  if (has_kernel(n.dtype("self"))) return onnx("PRelu", {x, weight});
  return where_positive(x, x, onnx("Mul", {x, weight}), onnx);
}

Values raise_relu(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  return is_float(n.dtype("self")) ? onnx("Relu", {x}) : onnx("Max", {x, number(onnx, x, 0)});
}

Values raise_relu6(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input("self");
  return onnx("Clip", {x, number(onnx, x, 0), number(onnx, x, 6)});
}

Values raise_silu(const AtenNode& n, OnnxBuilder& onnx) {
  if (info(n.dtype("self")).kind == 'c') return raise_complex_silu(n, onnx);
  return onnx("Swish", {n.input("self")});
}

/// log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold.
Values raise_softplus(const AtenNode& n, OnnxBuilder& onnx) {
  const double beta = n.f("beta"), threshold = n.f("threshold");
  Value* x = n.input("self");
  Value* scaled = beta == 1 ? x : onnx("Mul", {x, n.input_as("beta", n.dtype("self"))});
  Value* y = softplus(scaled, onnx);
  if (beta != 1) y = onnx("Div", {y, n.input_as("beta", n.dtype("self"))});
  // from 20 on the two do not differ in float32
  const double enough = n.dtype("self") == DType::Float64 ? 40 : 20;
  if (threshold >= enough || (threshold == 20 && beta > 0)) return y;
  return onnx.where(onnx("Greater", {scaled, number(onnx, x, threshold)}), x, y);
}

Values raise_softshrink(const AtenNode& n, OnnxBuilder& onnx) {
  const double lambd = n.f("lambd");
  return onnx("Shrink", {n.input("self")}, {{"lambd", lambd}, {"bias", lambd}});
}

Values raise_threshold(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* x = n.input("self");
  Value* is_below = onnx("LessOrEqual", {x, n.input_as("threshold", dtype)});
  return onnx.where(is_below, n.input_as("value", dtype), x);
}

/// softmax and log_softmax, with the type of the result where one is given.
Values raise_softmax(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_log = n.node().op.view().find("log_softmax") != std::string_view::npos;
  if (n.node().find_attribute("half_to_float")) n.ignore({"half_to_float"});
  if (n.node().find_attribute("dtype")) n.ignore({"dtype"});
  Value* x = n.input_as("self", n.output_dtype());
  if (n.rank("self") == 0) {
    n.ignore({"dim"});
    Value* one = onnx.unsqueeze(x, {0});
    return onnx.squeeze(onnx(is_log ? "LogSoftmax" : "Softmax", {one}, {{"axis", int64_t{0}}}), {0});
  }
  return onnx(is_log ? "LogSoftmax" : "Softmax", {x}, {{"axis", n.dim("dim", "self")}});
}

extern const OpFamily kAtenActivationOps;
constinit const OpFamily kAtenActivationOps{"aten_activation", {}, kAtenActivationAten};

}  // namespace tonnx
