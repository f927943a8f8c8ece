// polynomial_raise.cpp - PyTorch's functions whose count of steps only the run tells, as loops of ONNX: polynomials of
// an order that is a tensor, incomplete gamma functions, common divisors.
#include <functional>
#include <limits>

#include "ops/frame/expansion.h"
#include "ops/frame/wide_number.h"
#include "ops/special/constants.h"

namespace tonnx {
namespace {

/// What one step makes of the states; the first value is whether to go on.
using Step = std::function<std::vector<Value*>(Value* i, const std::vector<Value*>& states)>;

/// At most `count` steps, or as many as it takes where it is null.
std::vector<Value*> loop(OnnxBuilder& onnx, Value* count, const std::vector<Value*>& starts, const Step& step) {
  std::vector<Value*> inputs{count, onnx.flag(true)};
  inputs.insert(inputs.end(), starts.begin(), starts.end());
  Node* node = onnx.node("Loop", inputs);
  onnx.add_body(*node, "body", [&](Graph& body) {
    Value* i = add_input(body, "i", Type::tensor(DType::Int64, Shape{}));
    add_input(body, "keep_on", Type::tensor(DType::Bool, Shape{}));
    std::vector<Value*> states;
    for (const Value* start : starts) states.push_back(add_input(body, "state", start->type));
    return step(i, states);
  });
  std::vector<Value*> results;
  for (const Value* start : starts) results.push_back(onnx.add_output_to(*node, "last", start->type));
  return results;
}

/// The largest element, and the smallest number that there is where there is none.
Value* largest(OnnxBuilder& onnx, Value* x) {
  return onnx.rank(x) == 0 ? x : onnx.reduce("ReduceMax", onnx.reshape(x, IntArgs{-1}), {0}, false);
}

// Orthogonal polynomials

enum class Family { T, U, V, W, H, He, L, P };

Family family_of(std::string_view name) {
  if (name.ends_with("_t")) return Family::T;
  if (name.ends_with("_u")) return Family::U;
  if (name.ends_with("_v")) return Family::V;
  if (name.ends_with("_w")) return Family::W;
  if (name.ends_with("_he")) return Family::He;
  if (name.ends_with("_h")) return Family::H;
  return name.ends_with("_l") ? Family::L : Family::P;
}

Wide first_order(Family family, const Wide& x) {
  switch (family) {
    case Family::T:
    case Family::P:
    case Family::He: return x;
    case Family::V: return 2 * x - 1;
    case Family::W: return 2 * x + 1;
    case Family::L: return 1 - x;
    default: return 2 * x;
  }
}

/// Order k + 1 from orders k and k - 1.
Wide next_order(Family family, const Wide& x, const Wide& k, const Wide& current, const Wide& before) {
  switch (family) {
    case Family::H: return 2 * (x * current - k * before);
    case Family::He: return x * current - k * before;
    case Family::L: return ((2 * k + 1 - x) * current - k * before) / (k + 1);
    case Family::P: return ((2 * k + 1) * x * current - k * before) / (k + 1);
    default: return 2 * x * current - before;
  }
}

Values raise_orthogonal(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const std::string_view name = n.node().op.view();
  const Family family = family_of(name);
  const Shape& shape = n.output_shape();
  Wide x(onnx, onnx.expand(onnx.cast(n.input_as("x", dtype), DType::Float64), shape));
  if (name.find("shifted") != std::string_view::npos) x = 2 * x - 1;
  Value* order = onnx.expand(n.input_as("n", DType::Int64), shape);
  const auto is_order = [&](int64_t k) { return onnx("Equal", {order, onnx.integer(DType::Int64, k)}); };
  const Wide zeroth(onnx, onnx.expand(onnx.number(DType::Float64, 1), shape)), first = first_order(family, x);
  const Wide start = select(is_order(0), zeroth, select(is_order(1), first, 0.0));
  Value* most = onnx("Max", {largest(onnx, order), onnx.integer(DType::Int64, 1)});
  Value* count = onnx("Sub", {most, onnx.integer(DType::Int64, 1)});
  const auto results = loop(
      onnx, count, {zeroth.value(), first.value(), start.value()}, [&](Value* i, const std::vector<Value*>& states) {
        const Wide k = Wide(onnx, onnx.cast(i, DType::Float64)) + 1;
        const Wide before(onnx, states[0]), current(onnx, states[1]), found(onnx, states[2]);
        const Wide next = next_order(family, x, k, current, before);
        Value* is_it = onnx("Equal", {order, onnx("Add", {i, onnx.integer(DType::Int64, 2)})});
        return std::vector<Value*>{onnx.flag(true), current.value(), next.value(), select(is_it, next, found).value()};
      });
  return onnx.cast(results[2], dtype);
}

// Incomplete gamma functions

/// By its series where x is at most a + 1, by a continued fraction beyond.
Values raise_igamma(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const bool is_upper = n.node().op.view() == "igammac";
  const Shape& shape = n.output_shape();
  const auto wide = [&](const char* name) {
    return Wide(onnx, onnx.expand(onnx.cast(n.input_as(name, dtype), DType::Float64), shape));
  };
  const Wide a_given = wide("self"), x_given = wide("other");
  const auto safe = [&](const Wide& v) { return select(v > 0.0, select(v < 1e6, v, 1e6), 1.0); };
  const Wide a = safe(a_given), x = safe(x_given);
  const Wide one(onnx, onnx.expand(onnx.number(DType::Float64, 1), shape));
  const Wide b = x + 1 - a;
  constexpr double kTiny = 1e-300;
  const auto not_zero = [](const Wide& v) { return select(abs(v) < kTiny, kTiny, v); };
  const Wide d = 1 / not_zero(b), c = one / kTiny;
  const Wide steps = sqrt(Wide(onnx, largest(onnx, a.value()))) * 8 + 80;
  // term and sum of the series; c, d and the value of the fraction, by Lentz
  const auto results =
      loop(onnx, onnx.cast(steps.value(), DType::Int64), {one.value(), one.value(), c.value(), d.value(), d.value()},
           [&](Value* i, const std::vector<Value*>& s) {
             const Wide k = Wide(onnx, onnx.cast(i, DType::Float64)) + 1;
             const Wide term = Wide(onnx, s[0]) * x / (a + k);
             const Wide numerator = k * (a - k), denominator = b + 2 * k;
             const Wide next_d = 1 / not_zero(numerator * Wide(onnx, s[3]) + denominator);
             const Wide next_c = not_zero(denominator + numerator / Wide(onnx, s[2]));
             const Wide fraction = Wide(onnx, s[4]) * next_d * next_c;
             return std::vector<Value*>{onnx.flag(true), term.value(),   (Wide(onnx, s[1]) + term).value(),
                                        next_c.value(),  next_d.value(), fraction.value()};
           });
  const Wide scale = exp(a * log(x) - x - log_gamma(a));
  const Wide lower = scale / a * Wide(onnx, results[1]), upper = scale * Wide(onnx, results[4]);
  Value* is_far = (a + 1) < x;
  Wide value = is_upper ? select(is_far, upper, 1 - lower) : select(is_far, 1 - upper, lower);
  const double none = is_upper ? 1 : 0, all = 1 - none;
  value = select(x_given == kInf, all, select(a_given == kInf, none, value));
  value = select(x_given == 0.0, none, select(a_given == 0.0, all, value));
  const Wide sum = a_given + x_given;
  Value* is_wrong = onnx("Or", {onnx("Or", {a_given < 0.0, x_given < 0.0}), onnx("IsNaN", {sum.value()})});
  Value* is_nothing = onnx("And", {a_given == 0.0, x_given == 0.0});
  return onnx.cast(select(onnx("Or", {is_wrong, is_nothing}), kNaN, value).value(), dtype);
}

// Common divisors

Value* common_divisor(OnnxBuilder& onnx, Value* a, Value* b) {
  Value* zero = onnx.integer(DType::Int64, 0);
  const auto is_zero = [&](Value* x) { return onnx("Equal", {x, zero}); };
  return loop(onnx, nullptr, {a, b}, [&](Value*, const std::vector<Value*>& states) {
    Value* is_done = is_zero(states[1]);
    Value* divisor = onnx.where(is_done, onnx.integer(DType::Int64, 1), states[1]);
    Value* rest = onnx.where(is_done, zero, onnx("Mod", {states[0], divisor}));
    Value* more = largest(onnx, rest);
    return std::vector<Value*>{onnx("Greater", {more, zero}), onnx.where(is_done, states[0], states[1]), rest};
  })[0];
}

Values raise_common(const AtenNode& n, OnnxBuilder& onnx) {
  const Shape& shape = n.output_shape();
  const auto positive = [&](const char* name) {
    return onnx.expand(onnx("Abs", {n.input_as(name, DType::Int64)}), shape);
  };
  for (const Dim& dim : shape) {
    if (!dim.is(0)) continue;
    n.ignore({"other"});
    return onnx.cast(positive("self"), n.output_dtype());
  }
  Value *a = positive("self"), *b = positive("other");
  Value* divisor = common_divisor(onnx, a, b);
  if (n.node().op.view() == "gcd") return onnx.cast(divisor, n.output_dtype());
  divisor = onnx("Max", {divisor, onnx.integer(DType::Int64, 1)});
  return onnx.cast(onnx("Mul", {onnx("Div", {a, divisor}), b}), n.output_dtype());
}

constexpr AtenOp kAtenLoopAten[] = {
    {.sig = "aten::special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_t",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_t",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_t",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_u",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_u",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_u",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_v",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_v",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_v",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_w",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_w",
     .raise = raise_orthogonal},
    {.sig = "aten::special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.chebyshev_polynomial_w",
     .raise = raise_orthogonal},
    {.sig = "aten::special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.hermite_polynomial_h",
     .raise = raise_orthogonal},
    {.sig = "aten::special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.hermite_polynomial_h",
     .raise = raise_orthogonal},
    {.sig = "aten::special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.hermite_polynomial_h",
     .raise = raise_orthogonal},
    {.sig = "aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.hermite_polynomial_he",
     .raise = raise_orthogonal},
    {.sig = "aten::special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.hermite_polynomial_he",
     .raise = raise_orthogonal},
    {.sig = "aten::special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.hermite_polynomial_he",
     .raise = raise_orthogonal},
    {.sig = "aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.laguerre_polynomial_l",
     .raise = raise_orthogonal},
    {.sig = "aten::special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.laguerre_polynomial_l",
     .raise = raise_orthogonal},
    {.sig = "aten::special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.laguerre_polynomial_l",
     .raise = raise_orthogonal},
    {.sig = "aten::special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.legendre_polynomial_p",
     .raise = raise_orthogonal},
    {.sig = "aten::special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.legendre_polynomial_p",
     .raise = raise_orthogonal},
    {.sig = "aten::special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.legendre_polynomial_p",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_t",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_t",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_t",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_u",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_u",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_u",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_v",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_v",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_v",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_w",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_w",
     .raise = raise_orthogonal},
    {.sig = "aten::special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.shifted_chebyshev_polynomial_w",
     .raise = raise_orthogonal},
    {.sig = "aten::gcd(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.gcd",
     .raise = raise_common},
    {.sig = "aten::lcm(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Promoted,
     .python = "torch.lcm",
     .raise = raise_common},
    {.sig = "aten::igamma(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.igamma",
     .raise = raise_igamma},
    {.sig = "aten::igammac(Tensor self, Tensor other) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.igammac",
     .raise = raise_igamma},
};

}  // namespace

extern const OpFamily kAtenLoopOps;
constinit const OpFamily kAtenLoopOps{"aten_loop", {}, kAtenLoopAten};

}  // namespace tonnx
