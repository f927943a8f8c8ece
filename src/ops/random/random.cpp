// random.cpp - random draws: RandomNormal, RandomUniform, their forms like another tensor, Bernoulli, Multinomial.
#include <cmath>

#include "base/error.h"
#include "ops/create/rows.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/elementwise.h"
#include "ops/frame/emission.h"
#include "ops/random/rows.h"
#include "ops/search/rows.h"

namespace tonnx {
namespace {

/// A generator of the module itself, where the node has a seed: a new module draws the same numbers again, and the draw
/// goes on from one run to the next. Null where there is none.
Value* find_generator(const OnnxNode& n, AtenBuilder& aten) {
  const auto seed = n.find_f("seed");
  if (!seed) return nullptr;
  require(std::isfinite(*seed) && std::fabs(*seed) < 9e18, "the seed is {}", *seed);
  Value* generator = aten.constant(make_ints({static_cast<int64_t>(*seed)}), "generator");
  generator->type = Type::number(Type::Kind::Opaque);
  return generator;
}

bool is_drawn(DType dtype) { return is_plain_float(dtype); }

/// The output's sizes as arguments; nothing where the rank is not known.
std::optional<IntArgs> find_sizes(const OnnxNode& n) {
  if (!n.output_type().shape) return std::nullopt;
  IntArgs sizes;
  for (const Dim& dim : *n.output_type().shape) sizes.push_back(n.int_arg(dim));
  return sizes;
}

/// Numbers from one of PyTorch's two plain distributions, of the output's sizes. Without a rank, and without a seed,
/// they are like the input.
Value* drawn(const OnnxNode& n, AtenBuilder& aten, const std::string& name, DType dtype, const char* like) {
  Value* generator = find_generator(n, aten);
  const Kw kind{"dtype", dtype == DType::Float32 ? Arg(nullptr) : Arg(dtype)};
  const auto sizes = generator || !like ? find_sizes(n) : std::nullopt;
  if (!sizes)
    return aten(name + "_like", n.input(like), Kw{"dtype", n.dtype(like) == dtype ? Arg(nullptr) : Arg(dtype)});
  if (like) n.value(like);
  if (generator) return aten(name + ".generator", *sizes, Kw{"generator", generator}, kind);
  return aten(name, *sizes, kind);
}

Value* scaled(AtenBuilder& aten, Value* x, double factor, double offset) {
  if (factor != 1.0) x = aten("mul.Scalar", x, factor);
  return offset != 0.0 ? aten("add.Scalar", x, offset) : x;
}

DType drawn_dtype(const NodeView& n) {
  const auto given = n.find_dtype("dtype");
  const DType dtype = given ? *given : n.dtype("input");
  require(dtype == DType::Undefined || is_drawn(dtype), "random numbers of type {}", name_of(dtype));
  return dtype;
}

void infer_random(InferNode& n) {
  Shape shape;
  for (const int64_t size : n.ints("shape")) {
    require(size >= 0, "the size {} is negative", size);
    shape.emplace_back(size);
  }
  n.set(0, drawn_dtype(n), std::move(shape));
}

void infer_random_like(InferNode& n) {
  const Shape* shape = n.find_shape("input");
  n.set(0, drawn_dtype(n), shape ? std::optional(*shape) : std::nullopt);
}

Values lower_random_normal(const OnnxNode& n, AtenBuilder& aten) {
  n.find_ints("shape");
  return scaled(aten, drawn(n, aten, "randn", drawn_dtype(n), nullptr), n.f("scale"), n.f("mean"));
}
Values lower_random_normal_like(const OnnxNode& n, AtenBuilder& aten) {
  return scaled(aten, drawn(n, aten, "randn", drawn_dtype(n), "input"), n.f("scale"), n.f("mean"));
}
Values lower_random_uniform(const OnnxNode& n, AtenBuilder& aten) {
  n.find_ints("shape");
  return scaled(aten, drawn(n, aten, "rand", drawn_dtype(n), nullptr), n.f("high") - n.f("low"), n.f("low"));
}
Values lower_random_uniform_like(const OnnxNode& n, AtenBuilder& aten) {
  return scaled(aten, drawn(n, aten, "rand", drawn_dtype(n), "input"), n.f("high") - n.f("low"), n.f("low"));
}

// Bernoulli

void infer_bernoulli(InferNode& n) {
  const Shape* shape = n.find_shape("input");
  n.set(0, n.find_dtype("dtype").value_or(n.dtype("input")), shape ? std::optional(*shape) : std::nullopt);
}

Values lower_bernoulli(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("input"), result = n.find_dtype("dtype").value_or(dtype);
  Value* p = n.input("input");
  if (!n.has("seed") || !n.output_type().shape) {
    n.find_f("seed");
    return cast(aten, aten("bernoulli", p), dtype, result);
  }
  Value* random = drawn(n, aten, "rand", dtype, "input");
  return cast(aten, aten("lt.Tensor", random, p), DType::Bool, result);
}

// Multinomial

DType multinomial_dtype(const NodeView& n) {
  const DType dtype = *n.find_dtype("dtype");
  require(dtype == DType::Int32 || dtype == DType::Int64, "samples of type {}", name_of(dtype));
  return dtype;
}

void infer_multinomial(InferNode& n) {
  const Shape* shape = n.find_shape("input");
  require(!shape || shape->size() == 2, "the input has {} dimensions where it needs two", shape ? shape->size() : 0);
  require(n.i("sample_size") >= 1, "sample_size is {}", n.i("sample_size"));
  n.set(0, multinomial_dtype(n), Shape{shape ? (*shape)[0] : n.fresh(), n.i("sample_size")});
}

/// The input holds logarithms, which need not add up to anything.
Values lower_multinomial(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("input"), wide = dtype == DType::Float64 ? dtype : DType::Float32;
  const int64_t count = n.i("sample_size");
  Value* p = aten("softmax.int", cast(aten, n.input("input"), dtype, wide), 1);
  if (!n.has("seed")) {
    Value* samples = aten("multinomial", p, count, true);
    return cast(aten, samples, DType::Int64, multinomial_dtype(n));
  }
  Value* random = drawn(n, aten, "rand", wide, nullptr);
  Value* samples = aten("searchsorted.Tensor", aten("cumsum", p, 1), random);
  samples = aten("clamp", samples, Kw{"max", aten.sub(n.size("input", 1), 1)});  // the sum may be a little less than 1
  return cast(aten, samples, DType::Int64, multinomial_dtype(n));
}

/// `torch.randn([2, 3], generator=self.generator).to(x.device)`: drawn on the CPU, so that every device has the same
/// numbers.
std::string emit_with_generator(const Emission& e) {
  std::string text = fmt::format("torch.{}({}, generator={}", e.signature().name, e.text("size"), e.text("generator"));
  if (e.has("dtype")) text += ", dtype=" + e.text("dtype");
  return text + (e.device().empty() ? ")" : fmt::format(").to({})", e.device()));
}

constexpr OpsetStep kTypes22[] = {{.to = 22, .adds = kBFloat16}};

constexpr OnnxOp kRandomOnnx[] = {
    {.sig = "RandomNormal(*, ints shape, int dtype=1, float? seed, float scale=1.0, float mean=0.0) -> T output",
     .since = 1,
     .traits = kRandom,
     .history = kTypes22,
     .infer = infer_random,
     .lower = lower_random_normal,
     .note =
         "the numbers of PyTorch; a seed becomes a torch.Generator of the module, which torch.compile cannot follow"},
    {.sig = "RandomNormalLike(T1 input, *, int? dtype, float? seed, float scale=1.0, float mean=0.0) -> T2 output",
     .since = 1,
     .traits = kRandom,
     .history = kTypes22,
     .infer = infer_random_like,
     .lower = lower_random_normal_like,
     .note = "as RandomNormal"},
    {.sig = "RandomUniform(*, ints shape, int dtype=1, float? seed, float high=1.0, float low=0.0) -> T output",
     .since = 1,
     .traits = kRandom,
     .history = kTypes22,
     .infer = infer_random,
     .lower = lower_random_uniform,
     .note = "as RandomNormal"},
    {.sig = "RandomUniformLike(T1 input, *, int? dtype, float? seed, float high=1.0, float low=0.0) -> T2 output",
     .since = 1,
     .traits = kRandom,
     .history = kTypes22,
     .infer = infer_random_like,
     .lower = lower_random_uniform_like,
     .note = "as RandomNormal"},
    {.sig = "Bernoulli(T1 input, *, int? dtype, float? seed) -> T2 output",
     .since = 15,
     .traits = kRandom,
     .history = kTypes22,
     .infer = infer_bernoulli,
     .lower = lower_bernoulli,
     .note = "as RandomNormal"},
    {.sig = "Multinomial(T1 input, *, int dtype=6, float? seed, int sample_size=1) -> T2 output",
     .since = 7,
     .traits = kRandom,
     .history = kTypes22,
     .infer = infer_multinomial,
     .lower = lower_multinomial,
     .note = "as RandomNormal"},
};

#define FACTORY "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
constexpr AtenOp kRandomAten[] = {
    {.sig = "aten::randn(SymInt[] size, *, " FACTORY ") -> Tensor",
     .types = types_of_size,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_random},
    {.sig = "aten::rand(SymInt[] size, *, " FACTORY ") -> Tensor",
     .types = types_of_size,
     .out_dtype = true,
     .emit = emit_factory,
     .raise = raise_random},
    {.sig = "aten::randn.generator(SymInt[] size, *, Generator? generator, " FACTORY ") -> Tensor",
     .types = types_of_size,
     .out_dtype = true,
     .emit = emit_with_generator,
     .raise = raise_random},
    {.sig = "aten::rand.generator(SymInt[] size, *, Generator? generator, " FACTORY ") -> Tensor",
     .types = types_of_size,
     .out_dtype = true,
     .emit = emit_with_generator,
     .raise = raise_random},
    {.sig = "aten::randn_like(Tensor self, *, " FACTORY ", MemoryFormat? memory_format=None) -> Tensor",
     .elementwise = Elementwise::Kept,
     .out_dtype = true,
     .python = "torch.randn_like",
     .raise = raise_random},
    {.sig = "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
     .types = types_as_first,
     .layout = Layout::Inputs,
     .python = "torch.bernoulli",
     .raise = raise_bernoulli},
    {.sig =
         "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> "
         "Tensor",
     .types = types_multinomial,
     .python = "torch.multinomial",
     .raise = raise_multinomial},
    {.sig = "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
            "str? side=None, Tensor? sorter=None) -> Tensor",
     .types = types_bucketize,
     .python = "torch.searchsorted",
     .raise = raise_searchsorted},
};
#undef FACTORY

}  // namespace

extern const OpFamily kRandomOps;
constinit const OpFamily kRandomOps{"random", kRandomOnnx, kRandomAten};

}  // namespace tonnx
