// matmul.cpp - matrix products: MatMul, Gemm, Einsum; and determinants: Det.
#include "ops/matmul/matmul.h"

#include "base/error.h"
#include "ops/frame/complex_parts.h"
#include "ops/frame/emission.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/size_node.h"
#include "ops/linalg/rows.h"
#include "ops/matmul/eval.h"
#include "ops/matmul/rows.h"

namespace tonnx {
namespace {

void check_inner(const Dim& left, const Dim& right) {
  require(!left.is_constant() || !right.is_constant() || left == right,
          "the inner sizes {} and {} of a matrix product differ", left.text(), right.text());
}

}  // namespace

std::optional<Shape> matmul_shape(const Shape* a, const Shape* b) {
  if (a == nullptr || b == nullptr) return std::nullopt;
  require(!a->empty() && !b->empty(), "a matrix product of a scalar");
  const bool a_is_vector = a->size() == 1, b_is_vector = b->size() == 1;
  check_inner(a->back(), b_is_vector ? b->back() : (*b)[b->size() - 2]);
  const Shape a_batch(a->begin(), a->end() - (a_is_vector ? 1 : 2)),
      b_batch(b->begin(), b->end() - (b_is_vector ? 1 : 2));
  Shape shape = *broadcast(a_batch, b_batch);
  if (!a_is_vector) shape.push_back((*a)[a->size() - 2]);
  if (!b_is_vector) shape.push_back(b->back());
  return shape;
}

namespace {

void infer_mat_mul(InferNode& n) {
  const Shape *a = n.find_shape("A"), *b = n.find_shape("B");
  n.set(0, n.dtype("A"), matmul_shape(a, b));
  if (a && b) n.same(a->back(), (*b)[b->size() - std::min<size_t>(b->size(), 2)]);
}

Values lower_mat_mul(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("A"), kernel = kernel_type(dtype);
  Value* y = aten("matmul", cast(aten, n.input("A"), dtype, kernel), cast(aten, n.input("B"), dtype, kernel));
  return cast(aten, y, kernel, dtype);
}

const Shape* matrix_shape(const NodeView& n, const char* name) {
  const Shape* shape = n.find_shape(name);
  require(shape == nullptr || shape->size() == 2, "input '{}' has {} dimensions where two are needed", name,
          shape ? shape->size() : 0);
  return shape;
}

void infer_gemm(InferNode& n) {
  for (const char* name : {"A", "B"}) n.learn_rank(name, 2);
  const Shape* a = matrix_shape(n, "A");
  const Shape* b = matrix_shape(n, "B");
  Shape shape;
  shape.push_back(a ? (*a)[n.flag("transA") ? 1 : 0] : n.fresh());
  shape.push_back(b ? (*b)[n.flag("transB") ? 0 : 1] : n.fresh());
  if (a != nullptr && b != nullptr) {
    const Dim &left = (*a)[n.flag("transA") ? 0 : 1], &right = (*b)[n.flag("transB") ? 1 : 0];
    check_inner(left, right);
    n.same(left, right);
  }
  if (n.has("C")) {
    const Shape* c = n.find_shape("C");
    require(c == nullptr || c->size() <= 2, "input 'C' has {} dimensions where at most two fit", c ? c->size() : 0);
  }
  n.set(0, n.dtype("A"), std::move(shape));
}

/// The vector that C is, where it has one element for each column: itself, or a constant row without its first
/// dimension.
Value* find_bias(const OnnxNode& n, AtenBuilder& aten) {
  const Shape* b = n.find_shape("B");
  const Shape* c = n.find_shape("C");
  if (b == nullptr || c == nullptr) return nullptr;
  const Dim& columns = (*b)[n.flag("transB") ? 0 : 1];
  if (c->size() == 1) return (*c)[0] == columns ? n.input("C") : nullptr;
  const TensorPtr row = n.find_constant("C");
  if (!row || c->size() != 2 || !(*c)[0].is(1) || !((*c)[1] == columns)) return nullptr;
  auto vector = std::make_shared<Tensor>(*row);
  vector->dims.erase(vector->dims.begin());
  vector->source = {};
  Value* bias = aten.constant(vector, n.value("C")->name);
  bias->trainable = n.value("C")->producer == nullptr;
  return bias;
}

Value* scaled(AtenBuilder& aten, Value* x, double by, DType dtype) {
  if (by == 1.0) return x;
  if (!is_integer(dtype)) return aten("mul.Scalar", x, by);
  if (std::floor(by) != by || std::abs(by) > 1e15) fail_unsupported("integers are multiplied by {}", by);
  return aten("mul.Scalar", x, static_cast<int64_t>(by));
}

Values lower_gemm(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("A"), kernel = kernel_type(dtype);
  const double alpha = n.f("alpha"), beta = n.f("beta");
  const bool has_c = n.find_input("C") != nullptr && beta != 0.0;
  const bool turn_b = n.flag("transB");
  Value* a = cast(aten, n.input("A"), dtype, kernel);
  Value* b = cast(aten, n.input("B"), dtype, kernel);
  if (n.flag("transA")) a = aten("t", a);
  // a linear layer has its weight transposed
  const bool is_linear = !is_integer(dtype) && (turn_b || n.find_constant("B"));
  if (is_linear) {
    Value* weight = turn_b ? b : aten("t", b);
    if (alpha == 1.0 && beta == 1.0 && has_c) {
      if (Value* bias = find_bias(n, aten)) return aten("linear", a, weight, bias);
    }
    a = aten("linear", a, weight);
  } else {
    a = aten("matmul", a, turn_b ? aten("t", b) : b);
  }
  Value* y = scaled(aten, a, alpha, dtype);
  if (has_c) y = aten("add.Tensor", y, scaled(aten, cast(aten, n.input("C"), dtype, kernel), beta, dtype));
  return cast(aten, y, kernel, dtype);
}

/// Opset 6 stretches C only where it is asked to, and has no dimension of size 1 to stretch.
void down_gemm_broadcast(OnnxEdit& edit) {
  const Value* c = edit.node().input(2);
  const Value* y = edit.node().output(0);
  if (c == nullptr || !c->type.shape) edit.cannot("the shape of C is not known");
  const Shape& shape = *c->type.shape;
  if (shape.size() == 2 && y && y->type.shape && *y->type.shape == shape) return;
  if (shape.size() == 2) edit.cannot("opset 6 cannot broadcast C of shape {}", text_of(shape));
  edit.node().set_attribute("broadcast", int64_t{1});
}

void down_gemm_needs_c(OnnxEdit& edit) {
  if (edit.node().input(2) != nullptr) return;
  const Value* a = edit.node().input(0);
  if (a == nullptr || a->type.dtype == DType::Undefined)
    edit.cannot("opset 10 needs C, and its element type is not known");
  edit.node().set_input(2, edit.constant(make_scalar(a->type.dtype, 0), "C"));
}

std::string parse_term(std::string_view text) {
  std::string term;
  for (size_t i = 0; i < text.size(); ++i) {
    require(static_cast<int64_t>(term.size()) <= kMaxRank, "a term of the equation has more than {} letters", kMaxRank);
    if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      term += text[i];
    } else if (text.substr(i, 3) == "..." && term.find('.') == std::string::npos) {
      term += '.';
      i += 2;
    } else {
      fail_invalid("the equation has '{}' in it", text.substr(i, 1));
    }
  }
  return term;
}

}  // namespace

Equation parse_equation(std::string text) {
  std::erase(text, ' ');
  Equation equation;
  const size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  while (true) {
    const size_t comma = left.find(',');
    equation.terms.push_back(parse_term(left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (arrow != std::string::npos) {
    equation.result = parse_term(std::string_view(text).substr(arrow + 2));
    return equation;
  }
  // without an arrow: the ellipsis, and then the letters that occur once, in order
  std::string all;
  for (const std::string& term : equation.terms) all += term;
  std::sort(all.begin(), all.end());
  if (all.find('.') != std::string::npos) equation.result = ".";
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_first = i == 0 || all[i - 1] != all[i], is_last = i + 1 == all.size() || all[i + 1] != all[i];
    if (all[i] != '.' && is_first && is_last) equation.result += all[i];
  }
  return equation;
}

namespace {

void infer_einsum(InferNode& n) {
  const Equation equation = parse_equation(n.s("equation"));
  const std::vector<const Value*> inputs = n.values("Inputs");
  require(inputs.size() == equation.terms.size(), "the equation has {} terms for {} inputs", equation.terms.size(),
          inputs.size());
  const DType dtype = inputs[0] ? inputs[0]->type.dtype : DType::Undefined;
  std::map<char, Shape> sizes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i] != nullptr, "an input is missing");
    if (!inputs[i]->type.shape) return n.set(0, dtype, std::nullopt);
    const Shape& shape = *inputs[i]->type.shape;
    const std::string& term = equation.terms[i];
    const bool has_rest = term.find('.') != std::string::npos;
    const size_t letters = term.size() - (has_rest ? 1 : 0);
    require(has_rest ? shape.size() >= letters : shape.size() == letters,
            "an input has {} dimensions where the equation names {}", shape.size(), letters);
    size_t at = 0;
    for (const char c : term) {
      const size_t count = c == '.' ? shape.size() - letters : 1;
      const Shape part(shape.begin() + static_cast<int64_t>(at), shape.begin() + static_cast<int64_t>(at + count));
      const auto [known, fresh] = sizes.emplace(c, part);
      if (!fresh) known->second = *broadcast(known->second, part);
      at += count;
    }
  }
  Shape result;
  for (const char c : equation.result) {
    const auto at = sizes.find(c);
    require(at != sizes.end() || c == '.', "the equation has '{}' on its right side only", c);
    if (at != sizes.end()) result.insert(result.end(), at->second.begin(), at->second.end());
  }
  n.set(0, dtype, std::move(result));
}

/// PyTorch sums integers in 64 bits, and then finds that the types differ.
Values lower_einsum(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.values("Inputs").at(0)->type.dtype;
  const DType kernel = is_integer(dtype) ? DType::Int64 : dtype;
  std::vector<Value*> inputs;
  for (Value* input : n.inputs("Inputs")) inputs.push_back(cast(aten, input, dtype, kernel));
  return cast(aten, aten("einsum", n.s("equation"), inputs), kernel, dtype);
}

std::string emit_einsum(const Emission& e) {
  return fmt::format("torch.einsum({}, {})", e.text("equation"), joined(e.items("tensors")));
}

/// The constant behind a weight, and whether it is transposed on the way.
std::pair<Value*, bool> constant_behind(Value* value) {
  if (value == nullptr || value->constant) return {value, false};
  const Node* maker = value->producer;
  const bool turns = maker != nullptr && maker->domain == "aten" && maker->op == "t" && maker->input(0)->constant;
  return turns ? std::pair(maker->input(0), true) : std::pair<Value*, bool>(nullptr, false);
}

std::optional<ModuleSpec> module_linear(const Emission& e) {
  const auto [weight, transposed] = constant_behind(e.value("weight"));
  Value* bias = e.value("bias");
  if (weight == nullptr || weight->constant->dims.size() != 2 || (bias && !bias->constant)) return std::nullopt;
  std::vector<int64_t> dims = weight->constant->dims;
  if (transposed) std::swap(dims[0], dims[1]);
  if (bias && bias->constant->dims != std::vector{dims[0]}) return std::nullopt;
  ModuleSpec spec{.type = "nn.Linear", .inputs = {"input"}, .short_name = "fc"};
  spec.arguments = fmt::format("{}, {}{}", dims[1], dims[0], bias ? "" : ", bias=False");
  spec.weights.push_back({"weight", weight, transposed});
  if (bias) spec.weights.push_back({"bias", bias});
  return spec;
}

void infer_det(InferNode& n) {
  const Shape* shape = n.find_shape("X");
  if (shape == nullptr) return n.set(0, n.dtype("X"), std::nullopt);
  require(shape->size() >= 2, "a matrix has {} dimensions", shape->size());
  const Dim &rows = (*shape)[shape->size() - 2], &columns = shape->back();
  require(!rows.is_constant() || !columns.is_constant() || rows == columns, "a matrix of {} by {} is not square",
          rows.text(), columns.text());
  n.set(0, n.dtype("X"), Shape(shape->begin(), shape->end() - 2));
}

/// PyTorch has no determinants of sixteen bits.
Values lower_det(const OnnxNode& n, AtenBuilder& aten) {
  const DType dtype = n.dtype("X");
  const bool is_short = dtype == DType::Float16 || dtype == DType::BFloat16;
  if (!is_short) return aten("linalg_det", n.input("X"));
  return aten("to.dtype", aten("linalg_det", aten("to.dtype", n.input("X"), DType::Float32)), dtype);
}

constexpr DTypeSet kWideInts = dtype_set(DType::Int32, DType::Int64, DType::UInt32, DType::UInt64);
constexpr OpsetStep kMatMulHistory[] = {{.to = 9, .adds = kWideInts}, {.to = 13, .adds = kBFloat16}};
constexpr OpsetStep kGemmHistory[] = {
    {.to = 6},
    {.to = 7, .up = up_drop<"broadcast">, .down = down_gemm_broadcast},
    {.to = 9, .adds = kWideInts},
    {.to = 11, .down = down_gemm_needs_c},
    {.to = 13, .adds = kBFloat16},
};
constexpr OpsetStep kDetHistory[] = {{.to = 22, .adds = kBFloat16}};
constexpr OpsetStep kEinsumHistory[] = {{.to = 28, .adds = kBFloat16}};

/// What is added has one row, or one for each row of the product.
void open_gemm(OpenNode& n) {
  const Shape* added = n.shape(2);
  if (added == nullptr || added->size() != 2 || (*added)[0].is(1)) return;
  const bool is_transposed = int_of(n.node(), "transA").value_or(0) != 0;
  align(n, {{0, is_transposed ? size_t{1} : size_t{0}}, {2, 0}});
}

constexpr OnnxOp kMatMulOnnx[] = {
    {.sig = "MatMul(T A, T B) -> T Y",
     .since = 1,
     .traits = kSumsProducts | kForwardsWeight,
     .runtime = {kWideInts},
     .history = kMatMulHistory,
     .infer = infer_mat_mul,
     .sizes = sizes_of_product<1>,
     .open = open_matrices,
     .eval = eval_matmul,
     .lower = lower_mat_mul},
    {.sig = "Gemm(T A, T B, T? C, *, float alpha=1.0, float beta=1.0, int transA=0, int transB=0) -> T Y",
     .since = 1,
     .traits = kSumsProducts | kForwardsWeight,
     .zeros = {1 << 2, 11},
     .history = kGemmHistory,
     .infer = infer_gemm,
     .sizes = sizes_of_gemm<1>,
     .open = open_gemm,
     .eval = eval_gemm,
     .lower = lower_gemm},
    {.sig = "Einsum(T... Inputs, *, str equation) -> T Output",
     .since = 12,
     .traits = kSumsProducts,
     .runtime = {kWideInts},
     .history = kEinsumHistory,
     .infer = infer_einsum,
     .eval = eval_einsum,
     .lower = lower_einsum},
    {.sig = "Det(T X) -> T Y",
     .since = 11,
     .history = kDetHistory,
     .infer = infer_det,
     .eval = eval_det,
     .lower = lower_det},
};

constexpr AtenOp kMatMulAten[] = {
    {.sig = "aten::matmul(Tensor self, Tensor other) -> Tensor",
     .types = types_matmul,
     .low_precision = true,
     .python = "@",
     .raise = raise_matmul,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
     .types = types_linear,
     .low_precision = true,
     .python = "F.linear",
     .module = module_linear,
     .raise = raise_linear,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
     .types = types_einsum,
     .layout = Layout::Own,
     .low_precision = true,
     .emit = emit_einsum,
     .raise = raise_einsum,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::linalg_det(Tensor A) -> Tensor",
     .types = types_det,
     .python = "torch.linalg.det",
     .raise = raise_det,
     .raise_complex = raise_no_complex},
};

}  // namespace

extern const OpFamily kMatMulOps;
constinit const OpFamily kMatMulOps{"matmul", kMatMulOnnx, kMatMulAten};

}  // namespace tonnx
