// fft_raise.cpp - PyTorch's Fourier transforms as ONNX; complex numbers are pairs of floats in a last dimension.
#include <cmath>
#include <utility>

#include "ops/linalg/rows.h"
#include "ops/move/rows.h"
#include "ops/signal/fourier.h"
#include "ops/signal/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// A tensor on its way through several transforms. Real numbers have a last dimension of 1.
class Spectrum {
 public:
  Spectrum(const AtenNode& n, OnnxBuilder& onnx, const char* name) : onnx_(onnx), rank_(n.rank(name)) {
    const DType out = n.output_dtype();
    dtype_ = out == DType::Complex128 || out == DType::Float64 ? DType::Float64 : DType::Float32;
    is_complex_ = is_complex(n.dtype(name));
    x_ = n.input(name);
    x_ = is_complex_ ? onnx.cast(x_, dtype_) : onnx.unsqueeze(n.input_as(name, dtype_), {rank_});
  }

  int64_t rank() const { return rank_; }
  IntArg size(int64_t dim) { return onnx_.size(x_, dim); }
  Value* pairs() const { return x_; }
  Value* real() { return onnx_.gather(x_, onnx_.integer(DType::Int64, 0), rank_); }

  /// In one dimension, of that length: zeros are added, or the rest is cut off. Backwards it is divided by the length.
  void transform(int64_t dim, const IntArg& length, bool forward, bool onesided) {
    fit(dim, length);
    const bool was_complex = std::exchange(is_complex_, true);
    if (onnx_.target_opset() < kOpsetOfTransforms) {
      x_ = transformed_by_product(onnx_, x_, dim, length, {was_complex, forward, onesided});
      return;
    }
    std::vector<Attribute> attributes;
    if (onesided) attributes.push_back(attr("onesided", int64_t{1}));
    if (!forward) attributes.push_back(attr("inverse", int64_t{1}));
    x_ = onnx_.cast(x_, transform_dtype(dtype_, length));
    x_ = onnx_("DFT", {x_, nullptr, onnx_.integer(DType::Int64, dim)}, std::move(attributes));
    x_ = onnx_.cast(x_, dtype_);
  }

  /// The other half of a spectrum whose transform is real.
  void complete(int64_t dim, const IntArg& length) {
    const IntArg half = onnx_.add(onnx_.floor_div(length, 2), 1);
    fit(dim, half);
    // the elements from 1 to (length - 1) / 2, backwards
    const IntArg last = onnx_.floor_div(onnx_.sub(length, 1), 2);
    if (last.is(0)) return;
    Value* rest = onnx_.slice(x_, dim, last, 0, -1);
    if (is_complex_) rest = onnx_("Mul", {rest, onnx_.numbers(dtype_, {2}, {1, -1})});
    x_ = onnx_.concat({x_, rest}, dim);
  }

  /// In a dimension that only the run tells, of a length that DFT itself brings it to.
  void transform_open(const IntArg& dim, const std::optional<IntArg>& length, bool forward, bool onesided) {
    std::vector<Attribute> attributes;
    if (onesided) attributes.push_back(attr("onesided", int64_t{1}));
    if (!forward) attributes.push_back(attr("inverse", int64_t{1}));
    is_complex_ = true;
    Value* count = length ? onnx_.scalar(*length) : nullptr;
    x_ = onnx_("DFT", {x_, count, onnx_.scalar(dim)}, std::move(attributes));
  }

  void conjugate() { x_ = onnx_("Mul", {x_, onnx_.numbers(dtype_, {2}, {1, -1})}); }

  /// A length that was transformed over, and whether the result was divided by it.
  struct Done {
    IntArg length;
    bool is_divided;
  };
  /// Scales by the lengths to the power that the norm asks for.
  void scale(const std::vector<Done>& lengths, double power) {
    double factor = 1;
    Value* open = nullptr;
    const auto add = [&](const IntArg& length, double exponent) {
      if (exponent == 0) return;
      if (length.value == nullptr) {
        factor *= std::pow(static_cast<double>(length.number), exponent);
        return;
      }
      Value* part = onnx_("Pow", {onnx_.cast(length.value, dtype_), onnx_.number(dtype_, exponent)});
      open = open ? onnx_("Mul", {open, part}) : part;
    };
    for (const Done& done : lengths) add(done.length, power + (done.is_divided ? 1 : 0));
    if (open) x_ = onnx_("Mul", {x_, open});
    if (factor != 1) x_ = onnx_("Mul", {x_, onnx_.number(dtype_, factor)});
  }

 private:
  void fit(int64_t dim, const IntArg& length) {
    const IntArg now = size(dim);
    if (now.value == nullptr && length.value == nullptr) {
      if (now.number > length.number) x_ = onnx_.slice(x_, dim, 0, length);
      if (now.number < length.number) pad(dim, length.number - now.number);
      return;
    }
    if (now.value == length.value && now.value != nullptr) return;
    x_ = onnx_.slice(x_, dim, 0, length);
    pad(dim, onnx_.max(onnx_.sub(length, now), 0));
  }
  void pad(int64_t dim, const IntArg& count) {
    IntArgs pads(static_cast<size_t>(2 * onnx_.rank(x_)), 0);
    pads[static_cast<size_t>(onnx_.rank(x_) + dim)] = count;
    x_ = onnx_("Pad", {x_, onnx_.list(pads)});
  }

  OnnxBuilder& onnx_;
  int64_t rank_;
  DType dtype_;
  bool is_complex_;
  Value* x_;
};

/// `norm` says which direction is divided by the length; the default is the way back.
double power_of(const std::optional<std::string>& norm, bool forward) {
  const std::string text = norm.value_or("backward");
  if (text == "ortho") return -0.5;
  return (text == "forward") == forward ? -1 : 0;
}

/// What an operator does: the letters of its name.
struct Transform {
  bool forward = true;
  bool gives_half = false, takes_half = false;  // rfft and ihfft; irfft and hfft
};

Transform transform_of(std::string_view name) {  // fft_ihfft2
  name.remove_prefix(name.find('_') + 1);
  const bool inverse = name.starts_with('i');
  if (inverse) name.remove_prefix(1);
  if (name.starts_with('r')) return {!inverse, !inverse, inverse};
  if (name.starts_with('h')) return {!inverse, inverse, !inverse};
  return {!inverse, false, false};
}

struct Plan {
  std::vector<int64_t> dims;
  std::vector<std::optional<IntArg>> lengths;
};

/// fft_fft2, fft_rfftn: those of several dimensions.
bool is_of_many(std::string_view name) { return name.ends_with("2") || name.ends_with("n"); }

Plan plan_of(const AtenNode& n, int64_t rank) {
  Plan plan;
  if (is_of_many(n.node().op.view())) {
    const auto dims = n.find_ints("dim");
    IntArgs sizes;
    const bool has_sizes = n.has("s");
    if (has_sizes) sizes = n.int_args("s");
    const int64_t count = dims        ? static_cast<int64_t>(dims->size())
                          : has_sizes ? static_cast<int64_t>(sizes.size())
                                      : rank;
    for (int64_t i = 0; i < count; ++i) {
      plan.dims.push_back(dims ? AtenNode::normalized((*dims)[static_cast<size_t>(i)], rank) : rank - count + i);
      const bool is_given = has_sizes && !sizes[static_cast<size_t>(i)].is(-1);
      plan.lengths.push_back(is_given ? std::optional(sizes[static_cast<size_t>(i)]) : std::nullopt);
    }
    return plan;
  }
  plan.dims.push_back(AtenNode::normalized(n.i("dim"), rank));
  plan.lengths.push_back(n.find_int_arg("n"));
  return plan;
}

/// The dimensions of `plan` one after the other. That of the half spectrum is the last; it comes first where it is
/// made.
Value* raised_transform(Spectrum& x, OnnxBuilder& onnx, const Plan& plan, const Transform& what, double power) {
  if (plan.dims.empty()) return what.takes_half ? x.real() : x.pairs();
  const size_t last = plan.dims.size() - 1;
  std::vector<Spectrum::Done> lengths;
  const auto length_of = [&](size_t i) -> IntArg {
    if (plan.lengths[i]) return *plan.lengths[i];
    const IntArg size = x.size(plan.dims[i]);
    return i == last && what.takes_half ? onnx.mul(onnx.sub(size, 1), 2) : size;
  };
  const auto one = [&](size_t i) {
    const IntArg length = length_of(i);
    if (i == last && what.takes_half) x.complete(plan.dims[i], length);
    // a half spectrum of the way back is the conjugate of that of the way there
    const bool half = i == last && what.gives_half;
    x.transform(plan.dims[i], length, half || what.forward, half);
    lengths.push_back({length, !half && !what.forward});
    if (half && !what.forward) x.conjugate();
  };
  if (what.gives_half) one(last);
  for (size_t i = 0; i < last; ++i) one(i);
  if (!what.gives_half) one(last);
  x.scale(lengths, power);
  return what.takes_half ? x.real() : x.pairs();
}

}  // namespace

Values raise_fft(const AtenNode& n, OnnxBuilder& onnx) {
  Spectrum x(n, onnx, "self");
  const Transform what = transform_of(n.node().op.str());
  if (!is_of_many(n.node().op.view()) && n.int_arg("dim").value != nullptr) {
    if (n.has("norm") || what.takes_half || (what.gives_half && !what.forward))
      n.cannot("this transform in a dimension that follows from data");
    require_opset(n, onnx, 20, "a transform in a dimension that follows from data");
    x.transform_open(n.int_arg("dim"), n.find_int_arg("n"), what.forward, what.gives_half);
    return x.pairs();
  }
  return raised_transform(x, onnx, plan_of(n, x.rank()), what, power_of(n.find_s("norm"), what.forward));
}

Value* inverse_of_halves(const AtenNode& n, OnnxBuilder& onnx, const char* name, int64_t dim, int64_t length,
                         bool is_orthogonal) {
  Spectrum x(n, onnx, name);
  return raised_transform(x, onnx, {{dim}, {IntArg(length)}}, {false, false, true}, is_orthogonal ? -0.5 : -1);
}

Value* inverse_of_wholes(const AtenNode& n, OnnxBuilder& onnx, const char* name, int64_t dim, int64_t length,
                         bool is_orthogonal) {
  Spectrum x(n, onnx, name);
  return raised_transform(x, onnx, {{dim}, {IntArg(length)}}, {.forward = false}, is_orthogonal ? -0.5 : -1);
}

namespace {

/// PyTorch's number of a norm: none, by the square root of the length, by the length.
double power_of(int64_t normalization) { return normalization == 0 ? 0 : normalization == 1 ? -0.5 : -1; }

Plan plain_plan(const AtenNode& n, int64_t rank) {
  Plan plan;
  for (const int64_t dim : n.ints("dim")) {
    plan.dims.push_back(AtenNode::normalized(dim, rank));
    plan.lengths.emplace_back();
  }
  return plan;
}

Values raise_fft_r2c(const AtenNode& n, OnnxBuilder& onnx) {
  Spectrum x(n, onnx, "self");
  return raised_transform(x, onnx, plain_plan(n, x.rank()), {true, n.flag("onesided"), false},
                          power_of(n.i("normalization")));
}
Values raise_fft_c2c(const AtenNode& n, OnnxBuilder& onnx) {
  Spectrum x(n, onnx, "self");
  return raised_transform(x, onnx, plain_plan(n, x.rank()), {n.flag("forward"), false, false},
                          power_of(n.i("normalization")));
}
Values raise_fft_c2r(const AtenNode& n, OnnxBuilder& onnx) {
  Spectrum x(n, onnx, "self");
  Plan plan = plain_plan(n, x.rank());
  if (!plan.lengths.empty()) plan.lengths.back() = n.int_arg("last_dim_size");
  return raised_transform(x, onnx, plan, {false, false, true}, power_of(n.i("normalization")));
}

#define ONE(name, rule)                                                                                            \
  {                                                                                                                \
    .sig = "aten::fft_" name "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", .types = rule, \
    .python = "torch.fft." name, .raise = raise_fft                                                                \
  }
#define TWO(name)                                                                                               \
  {                                                                                                             \
    .sig = "aten::fft_" name "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", \
    .types = types_fft_of_many, .python = "torch.fft." name, .raise = raise_fft                                 \
  }
#define MANY(name)                                                                                           \
  {                                                                                                          \
    .sig = "aten::fft_" name "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", \
    .types = types_fft_of_many, .python = "torch.fft." name, .raise = raise_fft                              \
  }

constexpr AtenOp kAtenFftAten[] = {
    ONE("hfft", types_irfft),
    ONE("ihfft", types_rfft),
    TWO("fft2"),
    TWO("ifft2"),
    TWO("rfft2"),
    TWO("irfft2"),
    TWO("hfft2"),
    TWO("ihfft2"),
    MANY("fftn"),
    MANY("ifftn"),
    MANY("rfftn"),
    MANY("irfftn"),
    MANY("hfftn"),
    MANY("ihfftn"),
    {.sig = "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
     .python = "torch.ops.aten._fft_r2c",
     .raise = raise_fft_r2c},
    {.sig = "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
     .python = "torch.ops.aten._fft_c2c",
     .raise = raise_fft_c2c},
    {.sig = "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
     .python = "torch.ops.aten._fft_c2r",
     .raise = raise_fft_c2r},
};

#undef MANY
#undef TWO
#undef ONE

}  // namespace

extern const OpFamily kAtenFftOps;
constinit const OpFamily kAtenFftOps{"aten_fft", {}, kAtenFftAten};

}  // namespace tonnx
