// activation.cpp - activation functions: Relu and its kin, Clip.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/activation/rows.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/expansion.h"
#include "ops/frame/same_value.h"
#include "ops/math/complex.h"
#include "ops/math/rows.h"

namespace tonnx {
namespace {

bool is_float32(double number, double of) { return static_cast<float>(number) == static_cast<float>(of); }

/// PyTorch multiplies 0 by the slope too, of which nothing is left but where the slope is no finite number.
Values lower_leaky_relu(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("X");
  const double alpha = n.f("alpha");
  if (std::isfinite(alpha)) return aten("leaky_relu", x, alpha);
  return aten("where.self", aten("lt.Scalar", x, 0), aten("mul.Scalar", x, alpha), x);
}
Values lower_elu(const OnnxNode& n, AtenBuilder& aten) { return aten("elu", n.input("X"), n.f("alpha")); }
Values lower_celu(const OnnxNode& n, AtenBuilder& aten) { return aten("celu", n.input("X"), n.f("alpha")); }

/// PyTorch has the two constants of SELU built in.
Values lower_selu(const OnnxNode& n, AtenBuilder& aten) {
  const double alpha = n.f("alpha"), gamma = n.f("gamma");
  if (is_float32(alpha, 1.6732632423543772) && is_float32(gamma, 1.0507009873554805)) return aten("selu", n.input("X"));
  return aten("mul.Scalar", aten("elu", n.input("X"), alpha), gamma);
}

Values lower_gelu(const OnnxNode& n, AtenBuilder& aten) {
  const std::string approximate = n.s("approximate");
  require(approximate == "none" || approximate == "tanh", "Gelu cannot be approximated by '{}'", approximate);
  return aten("gelu", n.input("X"), Kw{"approximate", approximate});
}

Value* swish(AtenBuilder& aten, Value* x, double alpha) {
  return alpha == 1.0 ? aten("silu", x) : aten("mul.Tensor", x, aten("sigmoid", aten("mul.Scalar", x, alpha)));
}

Values lower_swish(const OnnxNode& n, AtenBuilder& aten) { return swish(aten, n.input("X"), n.f("alpha")); }

Values lower_swiglu(const OnnxNode& n, AtenBuilder& aten) {
  return aten("mul.Tensor", swish(aten, n.input("A"), n.f("alpha")), n.input("B"));
}

/// PyTorch's own has alpha = 1/6, ONNX's default is 0.2.
Values lower_hard_sigmoid(const OnnxNode& n, AtenBuilder& aten) {
  const double alpha = n.f("alpha"), beta = n.f("beta");
  const bool is_sixth = std::abs(alpha - 1.0 / 6.0) < 1e-7;  // files say 0.1666667, too
  if (is_sixth && beta == 0.5) return aten("hardsigmoid", n.input("X"));
  Value* line = aten("add.Scalar", aten("mul.Scalar", n.input("X"), alpha), beta);
  return aten("clamp", line, 0.0, 1.0);
}

Values lower_softsign(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  return aten("div.Tensor", x, aten("add.Scalar", aten("abs", x), 1.0));
}

Values lower_thresholded_relu(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("X");  // not aten::threshold, which keeps what is no number
  return aten("where.ScalarOther", aten("gt.Scalar", x, n.f("alpha")), x, 0.0);
}

Values lower_shrink(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("input");
  const double bias = n.f("bias"), lambd = n.f("lambd");
  Value* x = n.input("input");
  // not aten::hardshrink or aten::softshrink, which keep what is no number
  if (is_integer(dtype)) x = aten("to.dtype", x, DType::Float64);
  Value* above = aten("where.ScalarOther", aten("gt.Scalar", x, lambd), aten("sub.Scalar", x, bias), 0.0);
  Value* y = aten("where.self", aten("lt.Scalar", x, -lambd), aten("add.Scalar", x, bias), above);
  return is_integer(dtype) ? aten("to.dtype", y, dtype) : y;
}

/// How many slopes nn.PReLU would have: one for all, or one for each size of dimension 1; nothing where neither fits.
std::optional<int64_t> slope_count(const OnnxNode& n, const std::vector<int64_t>& slope) {
  if (count_of(slope) == 1) return 1;
  const auto rank = n.find_rank("X");
  if (!rank || *rank < 2 || static_cast<int64_t>(slope.size()) > *rank) return std::nullopt;
  const int64_t shift = *rank - static_cast<int64_t>(slope.size());
  for (int64_t d = shift; d < *rank; ++d) {
    if (d != 1 && slope[static_cast<size_t>(d - shift)] != 1) return std::nullopt;
  }
  return count_of(slope);
}

bool is_finite(const Tensor& tensor) {
  const auto numbers = floats_of(tensor);  // of more there is one for each channel, as they were trained
  return !numbers || std::all_of(numbers->begin(), numbers->end(), [](double number) { return std::isfinite(number); });
}

Values lower_prelu(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("X");
  Value* x = n.input("X");
  Value* slope = n.input("slope");
  if (is_unsigned(dtype)) return x;
  const bool is_known = slope->constant && is_float(dtype) && is_finite(*slope->constant);
  const auto count = is_known ? slope_count(n, slope->constant->dims) : std::nullopt;
  if (count) return aten("prelu", x, aten.reshaped(slope, {*count}));
  return aten("where.self", aten("lt.Scalar", x, 0), aten("mul.Tensor", x, slope), x);
}

std::optional<ModuleSpec> module_prelu(const Emission& e) {
  Value* weight = e.value("weight");
  if (weight == nullptr || !weight->constant || weight->constant->dims.size() != 1) return std::nullopt;
  ModuleSpec spec{.type = "nn.PReLU", .inputs = {"self"}, .short_name = "prelu"};
  if (weight->constant->count() != 1) spec.arguments = std::to_string(weight->constant->count());
  spec.weights.push_back({"weight", weight});
  return spec;
}

/// Opsets 1 to 6 match the slope with dimension 1, later ones with the last.
void up_prelu_7(OnnxEdit& edit) {
  Value* slope = edit.node().input(1);
  if (slope == nullptr || (slope->constant && slope->constant->count() == 1)) return;
  const auto rank = edit.rank(0), slope_rank = edit.rank(1);
  if (!rank || !slope_rank) edit.cannot("the ranks of its inputs are not known, so that its slope says nothing");
  if (*slope_rank == 1) edit.node().set_input(1, with_trailing_ones(edit, slope, 1, *rank - 2));
}

void down_prelu_7(OnnxEdit& edit) {
  Value* slope = edit.node().input(1);
  if (slope == nullptr || (slope->constant && slope->constant->count() == 1)) return;
  const auto rank = edit.rank(0);
  if (!rank || !slope->constant) edit.cannot("its slope is not constant, or the rank of its input is not known");
  const std::vector<int64_t>& dims = slope->constant->dims;
  const auto shift = *rank - static_cast<int64_t>(dims.size());
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (d + shift != 1 && dims[static_cast<size_t>(d)] != 1) edit.cannot("opset 6 has one slope for each channel only");
  }
  auto flat = std::make_shared<Tensor>(*slope->constant);
  flat->dims = {slope->constant->count()};
  flat->source = {};
  edit.node().set_input(1, edit.constant(std::move(flat), "slope"));
}

/// Opset 6 brought more digits to the defaults.
void up_selu_6(OnnxEdit& edit) {
  drop_attribute(edit, "consumed_inputs");
  if (!edit.node().find_attribute("alpha")) edit.node().set_attribute("alpha", 1.6732, AttrType::Float);
  if (!edit.node().find_attribute("gamma")) edit.node().set_attribute("gamma", 1.0507, AttrType::Float);
}

void down_selu_6(OnnxEdit& edit) {
  if (!edit.node().find_attribute("alpha"))
    edit.node().set_attribute("alpha", 1.67326319217681884765625, AttrType::Float);
  if (!edit.node().find_attribute("gamma"))
    edit.node().set_attribute("gamma", 1.05070102214813232421875, AttrType::Float);
}

Values lower_clip(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  const bool has_min = n.has("min"), has_max = n.has("max");
  if (!has_min && !has_max) return x;
  const DType dtype = n.dtype("input"), wide = computed_in(dtype);
  const auto min = has_min ? find_literal(n, "min", "min") : Arg(nullptr);
  const auto max = has_max ? find_literal(n, "max", "max") : Arg(nullptr);
  if (min && max && dtype != DType::UInt64) {
    const auto low = n.find_scalar("min"), high = n.find_scalar("max");
    if (is_float(dtype) && low == 0.0 && high == 6.0) return aten("relu6", x);
    if (is_float(dtype) && low == 0.0 && !has_max) return aten("relu", x);
    return cast(aten, aten("clamp", cast(aten, x, dtype, wide), *min, *max), wide, dtype);
  }
  if (dtype == DType::UInt64) {
    const auto bounded = [&](Value* a, Value* b, const char* compare) {
      return aten("where.self", aten(compare, ordered(aten, a, dtype), ordered(aten, b, dtype)), a, b);
    };
    if (has_min) x = bounded(x, n.input("min"), "gt.Tensor");
    return has_max ? bounded(x, n.input("max"), "lt.Tensor") : x;
  }
  Value* low = has_min ? wide_input(n, aten, "min") : nullptr;
  Value* high = has_max ? wide_input(n, aten, "max") : nullptr;
  return cast(aten, aten("clamp.Tensor", cast(aten, x, dtype, wide), low, high), wide, dtype);
}

/// The bounds were attributes, whatever the type of the input.
void up_clip_11(OnnxEdit& edit) {
  for (const auto& [name, input] : {std::pair("min", size_t{1}), std::pair("max", size_t{2})}) {
    const Attribute* found = edit.node().find_attribute(name);
    if (found == nullptr) continue;
    const auto* number = found->value.get<double>();
    require(number != nullptr, "attribute '{}' is of the wrong type", name);
    const DType dtype = edit.node().input(0) ? edit.node().input(0)->type.dtype : DType::Undefined;
    if (!is_float(dtype)) edit.cannot("the element type of its input is not known");
    const double value = *number;
    edit.node().take_attribute(name);
    if (std::fabs(value) < 3.4028234e38) edit.node().set_input(input, edit.constant(make_scalar(dtype, value), name));
  }
}

void down_clip_11(OnnxEdit& edit) {
  for (const auto& [name, input] : {std::pair("max", size_t{2}), std::pair("min", size_t{1})}) {
    if (edit.node().input(input) == nullptr) continue;
    const auto numbers = edit.const_floats(input);
    if (!numbers || numbers->size() != 1)
      edit.cannot("input '{}' is not constant, and is an attribute in the older opset", name);
    edit.node().set_attribute(name, (*numbers)[0], AttrType::Float);
  }
  edit.node().resize_inputs(1);
}

// The younger ones in older operators, as their function bodies in the standard have them.

/// x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh.
bool gelu_in_older(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  Value* x = n.node().input(0);
  const DType dtype = n.dtype("X");
  const auto number = [&](double value) { return make.number(dtype, value); };
  Value* half = make("Mul", {x, number(0.5)});
  if (n.s("approximate") == "none") {
    Value* erf = make("Erf", {make("Div", {x, number(std::sqrt(2.0))})});
    return edit.replace_with({make("Mul", {half, make("Add", {erf, number(1)})})});
  }
  Value* cube = make("Mul", {make("Mul", {x, x}), x});
  Value* inner = make("Add", {x, make("Mul", {cube, number(0.044715)})});
  Value* tanh = make("Tanh", {make("Mul", {inner, number(std::sqrt(2 / std::acos(-1.0)))})});
  return edit.replace_with({make("Mul", {half, make("Add", {tanh, number(1)})})});
}

bool hard_swish_in_older(const NodeView& n, OnnxEdit& edit) {
  Value* x = n.node().input(0);
  Value* gate = edit.before("HardSigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
  return edit.replace_with({edit.before("Mul", {x, gate})});
}

bool mish_in_older(const NodeView& n, OnnxEdit& edit) {
  Value* x = n.node().input(0);
  return edit.replace_with({edit.before("Mul", {x, edit.before("Tanh", {edit.before("Softplus", {x})})})});
}

bool swish_in_older(const NodeView& n, OnnxEdit& edit) {
  Value* x = n.node().input(0);
  Expansion make(edit);
  const double alpha = n.f("alpha");
  Value* scaled = alpha == 1 ? x : make("Mul", {x, make.number(n.dtype("X"), alpha)});
  return edit.replace_with({make("Mul", {x, make("Sigmoid", {scaled})})});
}

/// alpha * elu(x / alpha)
bool celu_in_older(const NodeView& n, OnnxEdit& edit) {
  Value* x = n.node().input(0);
  Expansion make(edit);
  const double alpha = n.f("alpha");
  if (alpha == 1) return edit.replace_with({make("Elu", {x})});
  Value* factor = make.number(n.dtype("X"), alpha);
  return edit.replace_with({make("Mul", {make("Elu", {make("Div", {x, factor})}), factor})});
}

/// `torch.clamp(x, min=0.0, max=6.0)`
std::string emit_clamp(const Emission& e) {
  std::string text = "torch.clamp(" + e.text("self");
  for (const char* bound : {"min", "max"}) {
    if (e.has(bound)) text += fmt::format(", {}={}", bound, e.text(bound));
  }
  return text + ")";
}

constexpr OpsetStep kSince1[] = {{.to = 6, .up = up_drop<"consumed_inputs">}, {.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kSince1Types22[] = {{.to = 6, .up = up_drop<"consumed_inputs">}, {.to = 22, .adds = kBFloat16}};
constexpr OpsetStep kTypes22[] = {{.to = 22, .adds = kBFloat16}};
constexpr OpsetStep kReluHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">},
    {.to = 13, .adds = kBFloat16},
    {.to = 14, .adds = kSignedInts},
};
constexpr OpsetStep kLeakyReluHistory[] = {{.to = 6, .up = up_drop<"consumed_inputs">}, {.to = 16, .adds = kBFloat16}};
constexpr OpsetStep kPReluHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">},
    {.to = 7, .up = up_prelu_7, .down = down_prelu_7},
    {.to = 9, .adds = kAllInts & ~kSmallInts},
    {.to = 16, .adds = kBFloat16},
};
constexpr OpsetStep kSeluHistory[] = {{.to = 6, .up = up_selu_6, .down = down_selu_6}, {.to = 22, .adds = kBFloat16}};
constexpr OpsetStep kCeluHistory[] = {{.to = 28, .adds = kBFloat16 | dtype_set(DType::Float64, DType::Float16)}};
constexpr OpsetStep kClipHistory[] = {
    {.to = 6, .up = up_drop<"consumed_inputs">},
    {.to = 11, .up = up_clip_11, .down = down_clip_11},
    {.to = 12, .adds = kAllInts},
    {.to = 13, .adds = kBFloat16},
};

struct Range {
  double lowest, highest;
};

/// The numbers that a type has, infinite ones too.
std::optional<Range> range_of(DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (contains(dtype_set(DType::Float16, DType::BFloat16, DType::Float32, DType::Float64), dtype))
    return Range{-kInfinity, kInfinity};
  if (!is_integer(dtype)) return std::nullopt;
  const int bits = info(dtype).bits;
  if (is_unsigned(dtype)) return Range{0, std::ldexp(1.0, bits) - 1};
  return Range{-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

/// Clip to all that the type has. Where a float has no bound, it is the largest finite number.
Value* same_of_clip(const Node& node) {
  const Value* x = node.input(0);
  if (x == nullptr || !x->type.is_tensor()) return nullptr;
  const auto range = range_of(x->type.dtype);
  if (!range) return nullptr;
  const bool is_whole = is_integer(x->type.dtype);
  const auto min = float_of(node, "min"), max = float_of(node, "max");
  const bool low = has(node, "min") ? min && *min <= range->lowest : is_whole;
  // a bound of 64 bits may have been rounded up on its way to a double
  const bool is_exact = info(x->type.dtype).bits < 64 || !is_whole;
  const bool high = has(node, "max") ? is_exact && max && *max >= range->highest : is_whole;
  return low && high ? node.input(0) : nullptr;
}

constexpr OnnxOp kActivationOnnx[] = {
    {.sig = "Celu(T X, *, float alpha=1.0) -> T Y",
     .since = 12,
     .traits = kElementwise,
     .history = kCeluHistory,
     .infer = infer_same_as_first,
     .eval = eval_celu,
     .lower = lower_celu,
     .in_older = celu_in_older},
    with(
        unary("Clip(T input, T? min, T? max) -> T output", 1, kClipHistory, lower_clip, infer_same_as_first, eval_clip),
        {.runtime = {kClippedInts}, .same = same_of_clip}),
    unary("Elu(T X, *, float alpha=1.0) -> T Y", 1, kSince1Types22, lower_elu, infer_same_as_first, eval_elu),
    {.sig = "Gelu(T X, *, str approximate=\"none\") -> T Y",
     .since = 20,
     .traits = kElementwise,
     .infer = infer_same_as_first,
     .eval = eval_gelu,
     .lower = lower_gelu,
     .in_older = gelu_in_older},
    with(unary("HardSigmoid(T X, *, float alpha=0.2, float beta=0.5) -> T Y", 1, kSince1Types22, lower_hard_sigmoid,
               infer_same_as_first, eval_hard_sigmoid),
         {.traits = kNotNegative}),
    {.sig = "HardSwish(T X) -> T Y",
     .since = 14,
     .traits = kElementwise,
     .history = kTypes22,
     .infer = infer_same_as_first,
     .eval = eval_hard_swish,
     .lower = lower_unary<"hardswish">,
     .in_older = hard_swish_in_older},
    unary("LeakyRelu(T X, *, float alpha=0.01) -> T Y", 1, kLeakyReluHistory, lower_leaky_relu, infer_same_as_first,
          eval_leaky_relu),
    {.sig = "Mish(T X) -> T Y",
     .since = 18,
     .traits = kElementwise,
     .history = kTypes22,
     .infer = infer_same_as_first,
     .eval = eval_mish,
     .lower = lower_unary<"mish">,
     .in_older = mish_in_older},
    unary("PRelu(T X, T slope) -> T Y", 1, kPReluHistory, lower_prelu, infer_same_as_first, eval_prelu),
    with(unary("Relu(T X) -> T Y", 1, kReluHistory, lower_unary<"relu">, infer_same_as_first, eval_relu),
         {.traits = kNotNegative, .same = same_of_positive}),
    unary("Selu(T X, *, float alpha=1.67326319217681884765625, float gamma=1.05070102214813232421875) -> T Y", 1,
          kSeluHistory, lower_selu, infer_same_as_first, eval_selu),
    unary("Shrink(T input, *, float bias=0.0, float lambd=0.5) -> T output", 9, {}, lower_shrink, infer_same_as_first,
          eval_shrink),
    with(unary("Sigmoid(T X) -> T Y", 1, kSince1, lower_unary<"sigmoid">, infer_same_as_first, eval_sigmoid),
         {.traits = kNotNegative}),
    unary("Softplus(T X) -> T Y", 1, kTypes22, lower_unary<"softplus">, infer_same_as_first, eval_softplus),
    unary("Softsign(T input) -> T output", 1, kTypes22, lower_softsign, infer_same_as_first, eval_softsign),
    unary("SwiGLU(T A, T B, *, float alpha=1.0) -> T Y", 28, {}, lower_swiglu, infer_same_as_first, eval_swiglu),
    {.sig = "Swish(T X, *, float alpha=1.0) -> T Y",
     .since = 24,
     .traits = kElementwise,
     .infer = infer_same_as_first,
     .eval = eval_swish,
     .lower = lower_swish,
     .in_older = swish_in_older},
    unary("Tanh(T input) -> T output", 1, kSince1, lower_unary<"tanh">, infer_same_as_first, eval_tanh),
    unary("ThresholdedRelu(T X, *, float alpha=1.0) -> T Y", 10, kTypes22, lower_thresholded_relu, infer_same_as_first,
          eval_thresholded_relu),
};

constexpr AtenOp kActivationAten[] = {
    {.sig = "aten::celu(Tensor self, Scalar alpha=1.) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.celu",
     .raise = raise_celu},
    {.sig = "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .emit = emit_clamp,
     .raise = raise_clamp},
    {.sig = "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .emit = emit_clamp,
     .raise = raise_clamp},
    {.sig = "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.elu",
     .raise = raise_elu},
    {.sig = "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.gelu",
     .raise = raise_gelu},
    {.sig = "aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
     .types = types_as_self,
     .python = "F.hardshrink",
     .raise = raise_hardshrink},
    {.sig = "aten::hardsigmoid(Tensor self) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.hardsigmoid",
     .raise = raise_hardsigmoid},
    {.sig = "aten::hardswish(Tensor self) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.hardswish",
     .raise = raise_hardswish},
    {.sig = "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.leaky_relu",
     .raise = raise_leaky_relu},
    {.sig = "aten::mish(Tensor self) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.mish",
     .raise = raise_mish},
    {.sig = "aten::prelu(Tensor self, Tensor weight) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Inputs,
     .low_precision = true,
     .python = "F.prelu",
     .module = module_prelu,
     .raise = raise_prelu},
    {.sig = "aten::relu(Tensor self) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "F.relu",
     .raise = raise_relu},
    {.sig = "aten::relu6(Tensor self) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.relu6",
     .raise = raise_relu6},
    {.sig = "aten::selu(Tensor self) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.selu",
     .raise = raise_selu},
    {.sig = "aten::sigmoid(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.sigmoid",
     .raise = raise_unary<"Sigmoid">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::silu(Tensor self) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.silu",
     .raise = raise_silu},
    {.sig = "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.softplus",
     .raise = raise_softplus},
    {.sig = "aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
     .types = types_as_self,
     .python = "F.softshrink",
     .raise = raise_softshrink},
    {.sig = "aten::tanh(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.tanh",
     .raise = raise_unary<"Tanh">,
     .raise_complex = raise_complex_function},
    {.sig = "aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = "F.threshold",
     .raise = raise_threshold},
};

}  // namespace

extern const OpFamily kActivationOps;
constinit const OpFamily kActivationOps{"activation", kActivationOnnx, kActivationAten};

}  // namespace tonnx
