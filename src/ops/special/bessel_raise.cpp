// bessel_raise.cpp - PyTorch's Bessel and Airy functions as ONNX, by polynomials near 0 and amplitudes further out.
#include <cmath>
#include <limits>

#include "ops/frame/wide_number.h"
#include "ops/special/constants.h"
#include "ops/special/tables.h"

namespace tonnx {
namespace {

Wide scaled_i0(const Wide& x) {
  const Wide a = abs(x);
  const Wide near = polynomial(a * 0.25 - 1, kI0Near), far = polynomial(16 / a - 1, kI0Far) / sqrt(a);
  return select(a <= 8.0, near, far);
}

Wide scaled_i1(const Wide& x) {
  const Wide a = abs(x);
  const Wide near = x * polynomial(a * 0.25 - 1, kI1Near);
  const Wide far = sign(x) * polynomial(16 / a - 1, kI1Far) / sqrt(a);
  return select(a <= 8.0, near, far);
}

/// exp(x) grows faster than the scaled function falls.
Wide i0(const Wide& x) { return select(abs(x) == kInf, kInf, exp(abs(x)) * scaled_i0(x)); }
Wide i1(const Wide& x) { return select(abs(x) == kInf, x, exp(abs(x)) * scaled_i1(x)); }

/// K0 or K1, times exp(x) where `is_scaled`.
template <bool IsFirst, bool IsScaled>
Wide modified_k(const Wide& x) {
  const Wide t = square(x) * 0.5 - 1;
  const Wide half = log(x * 0.5);
  Wide near = IsFirst ? half * x * polynomial(t, kI1Small) + polynomial(t, kK1Small) / x
                      : polynomial(t, kK0Small) - half * polynomial(t, kI0Small);
  Wide far = (IsFirst ? polynomial(4 / x - 1, kK1Far) : polynomial(4 / x - 1, kK0Far)) / sqrt(x);
  if (IsScaled) {
    near = near * exp(x);
  } else {
    far = far * exp(-x);
  }
  const Wide value = select(x == kInf, 0.0, select(x <= 2.0, near, far));
  return select(x == 0.0, kInf, select(x < 0.0, kNaN, value));
}

/// Amplitude and phase of J and Y beyond 8.
template <int Order>
struct Far {
  explicit Far(const Wide& a)
      : t(128 / square(a) - 1),
        even(polynomial(t, Order == 0 ? std::span<const double>(kJ0Even) : std::span<const double>(kJ1Even))),
        odd(polynomial(t, Order == 0 ? std::span<const double>(kJ0Odd) : std::span<const double>(kJ1Odd)) * 8 / a),
        phase(a - (2 * Order + 1) * kPi / 4),
        size(sqrt(2 / (a * kPi))) {}
  Wide j() const { return size * (even * cos(phase) - odd * sin(phase)); }
  Wide y() const { return size * (even * sin(phase) + odd * cos(phase)); }
  Wide t, even, odd, phase, size;
};

Wide near_variable(const Wide& x) { return square(x) / 32 - 1; }
Wide near_j0(const Wide& x) { return polynomial(near_variable(x), kJ0Near); }
Wide near_j1(const Wide& x) { return x * polynomial(near_variable(x), kJ1Near); }

Wide bessel_j0(const Wide& x) {
  const Wide a = abs(x);
  return select(a <= 8.0, near_j0(x), Far<0>(a).j());
}

Wide bessel_j1(const Wide& x) {
  const Wide a = abs(x);
  return select(a <= 8.0, near_j1(x), sign(x) * Far<1>(a).j());
}

/// Y has a pole at 0, and no values below.
Wide with_pole(const Wide& x, const Wide& value) { return select(x == 0.0, -kInf, select(x < 0.0, kNaN, value)); }

Wide bessel_y0(const Wide& x) {
  const Wide near = polynomial(near_variable(x), kY0Near) + (2 / kPi) * log(x * 0.5) * near_j0(x);
  return with_pole(x, select(x <= 8.0, near, Far<0>(x).y()));
}

Wide bessel_y1(const Wide& x) {
  const Wide near = polynomial(near_variable(x), kY1Near) / x + (2 / kPi) * log(x * 0.5) * near_j1(x);
  return with_pole(x, select(x <= 8.0, near, Far<1>(x).y()));
}

/// sin(x) / x
Wide spherical_j0(const Wide& x) {
  constexpr double kSeries[] = {1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880};
  const Wide value = select(abs(x) < 0.5, polynomial(square(x), kSeries), sin(x) / x);
  return select(abs(x) == kInf, 0.0, value);
}

Wide airy(const Wide& x) {
  const Wide a = abs(x), root = sqrt(sqrt(a));
  const Wide z = a * sqrt(a) * (2.0 / 3);
  const double right = 2.0 / 3 * std::pow(2.0, 1.5), left = 2.0 / 3 * std::pow(4.0, 1.5);
  const Wide middle = polynomial((x + 1) / 3, kAiryMiddle);
  const Wide falling = polynomial(2 * right / z - 1, kAiryRight) * exp(-z) / (2 * std::sqrt(kPi) * root);
  const Wide t = 2 * left * left / square(z) - 1, phase = z - kPi / 4;
  const Wide odd = polynomial(t, kAiryOdd) * left / z;
  const Wide waving = (polynomial(t, kAiryEven) * cos(phase) + odd * sin(phase)) / (std::sqrt(kPi) * root);
  const Wide value = select(x > 2.0, falling, select(x < -4.0, waving, middle));
  return select(x == kInf, 0.0, value);
}

constexpr AtenOp kAtenBesselAten[] = {
    {.sig = "aten::i0(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.i0",
     .raise = raise_wide<i0>},
    {.sig = "aten::special_airy_ai(Tensor x) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.airy_ai",
     .raise = raise_wide<airy>},
    {.sig = "aten::special_bessel_j0(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.bessel_j0",
     .raise = raise_wide<bessel_j0>},
    {.sig = "aten::special_bessel_j1(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.bessel_j1",
     .raise = raise_wide<bessel_j1>},
    {.sig = "aten::special_bessel_y0(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.bessel_y0",
     .raise = raise_wide<bessel_y0>},
    {.sig = "aten::special_bessel_y1(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.bessel_y1",
     .raise = raise_wide<bessel_y1>},
    {.sig = "aten::special_i0e(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.i0e",
     .raise = raise_wide<scaled_i0>},
    {.sig = "aten::special_i1(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.i1",
     .raise = raise_wide<i1>},
    {.sig = "aten::special_i1e(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.i1e",
     .raise = raise_wide<scaled_i1>},
    {.sig = "aten::special_modified_bessel_i0(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.modified_bessel_i0",
     .raise = raise_wide<i0>},
    {.sig = "aten::special_modified_bessel_i1(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.modified_bessel_i1",
     .raise = raise_wide<i1>},
    {.sig = "aten::special_modified_bessel_k0(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.modified_bessel_k0",
     .raise = raise_wide<(modified_k<false, false>)>},
    {.sig = "aten::special_modified_bessel_k1(Tensor self) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.modified_bessel_k1",
     .raise = raise_wide<(modified_k<true, false>)>},
    {.sig = "aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.scaled_modified_bessel_k0",
     .raise = raise_wide<(modified_k<false, true>)>},
    {.sig = "aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.scaled_modified_bessel_k1",
     .raise = raise_wide<(modified_k<true, true>)>},
    {.sig = "aten::special_spherical_bessel_j0(Tensor x) -> Tensor",
     .elementwise = Elementwise::Floats,
     .python = "torch.special.spherical_bessel_j0",
     .raise = raise_wide<spherical_j0>},
};

}  // namespace

extern const OpFamily kAtenBesselOps;
constinit const OpFamily kAtenBesselOps{"aten_bessel", {}, kAtenBesselAten};

}  // namespace tonnx
