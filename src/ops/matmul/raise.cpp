// raise.cpp - PyTorch's matrix products as ONNX.
#include <map>
#include <set>

#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/matmul/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// Runtimes multiply matrices of floats and of wide integers. In between integers may be wider: what is cut off at the
/// end is the same.
DType product_type(DType dtype) {
  return (is_integer(dtype) || dtype == DType::Bool) && info(dtype).bits < 32 ? DType::Int32 : dtype;
}

Value* product(OnnxBuilder& onnx, Value* a, Value* b) {
  const DType dtype = onnx.dtype(a), kernel = product_type(dtype);
  return onnx.cast(onnx("MatMul", {onnx.cast(a, kernel), onnx.cast(b, kernel)}), dtype);
}

/// A weight that was turned on the way here, as it was before: Gemm turns it by itself.
Value* transposed_operand(const Value* weight) {
  const Node* maker = weight->producer;
  const bool turns = maker && maker->domain.empty() && maker->op == "Transpose" && weight->type.rank() == 2;
  return turns ? maker->input(0) : nullptr;
}

Value* scaled_by(const AtenNode& n, OnnxBuilder& onnx, Value* x, const char* factor) {
  return n.has(factor) && n.find_f(factor) == 1.0 ? x : onnx("Mul", {n.input_as(factor, onnx.dtype(x)), x});
}

/// beta * self + alpha * product. What is multiplied by a beta of zero does not count, even where it is NaN.
Value* added(const AtenNode& n, OnnxBuilder& onnx, Value* product) {
  product = scaled_by(n, onnx, product, "alpha");
  if (n.find_f("beta") == 0.0) {
    n.input("self");
    return product;
  }
  Value* self = n.input_as("self", onnx.dtype(product));
  return onnx("Add", {scaled_by(n, onnx, self, "beta"), product});
}

}  // namespace

Values raise_linear(const AtenNode& n, OnnxBuilder& onnx) {
  Value *x = n.input("input"), *weight = n.input("weight");
  Value* bias = n.has("bias") ? n.input_as("bias", n.output_dtype()) : nullptr;
  const bool is_gemm = n.rank("input") == 2 && n.rank("weight") == 2 && is_float(n.dtype("input"));
  if (is_gemm) return onnx("Gemm", {x, weight, bias}, {{"transB", int64_t{1}}});
  if (n.rank("weight") == 2) weight = onnx.transpose(weight, {1, 0});
  Value* y = product(onnx, x, weight);
  return bias ? onnx("Add", {y, bias}) : y;
}

Values raise_matmul(const AtenNode& n, OnnxBuilder& onnx) {
  const bool has_other = n.node().op == "matmul" || n.node().op == "vdot";
  return product(onnx, n.input("self"), n.input(has_other ? "other" : "mat2"));
}

namespace {

Values raise_mv(const AtenNode& n, OnnxBuilder& onnx) { return product(onnx, n.input("self"), n.input("vec")); }
Values raise_dot(const AtenNode& n, OnnxBuilder& onnx) { return product(onnx, n.input("self"), n.input("tensor")); }

Values raise_wider_product(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.find_dtype("out_dtype").value_or(n.output_dtype());
  return onnx("MatMul", {n.input_as("self", dtype), n.input_as("mat2", dtype)});
}

/// Over the last dimensions of both.
Values raise_inner(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value *a = n.input_as("self", dtype), *b = n.input_as("other", dtype);
  const int64_t rank_a = onnx.rank(a), rank_b = onnx.rank(b);
  if (rank_a == 0 || rank_b == 0) return onnx(dtype == DType::Bool ? "And" : "Mul", {a, b});
  if (rank_b == 2) b = onnx.transpose(b, {1, 0});
  if (rank_b <= 2) return product(onnx, a, b);
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  const std::string left = letters.substr(0, static_cast<size_t>(rank_a - 1));
  const std::string right = letters.substr(left.size(), static_cast<size_t>(rank_b - 1));
  return onnx("Einsum", {a, b}, {attr("equation", fmt::format("{0}z,{1}z->{0}{1}", left, right))});
}

Values raise_outer(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  if (dtype == DType::Bool) return onnx("And", {onnx.unsqueeze(n.input("self"), {1}), n.input("vec2")});
  return onnx("Mul", {onnx.unsqueeze(n.input_as("self", dtype), {1}), n.input_as("vec2", dtype)});
}

/// Sum of the products of complex-free vectors along a dimension.
Values raise_vecdot(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype(), kernel = product_type(dtype);
  Value* products = onnx("Mul", {n.input_as("x", kernel), n.input_as("y", kernel)});
  const int64_t dim = AtenNode::normalized(n.i("dim"), onnx.rank(products));
  return onnx.cast(onnx.reduce("ReduceSum", products, {dim}, false), dtype);
}

Values raise_addmm(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value *a = n.input("mat1"), *b = n.input("mat2");
  // over nothing, runtimes forget the factor of what is added
  const bool is_empty = onnx.shape(a).back().is(0);
  if (!is_float(dtype) || !n.is_tensor("self") || is_empty) return added(n, onnx, product(onnx, a, b));
  std::vector<Attribute> attributes;
  const double alpha = n.f("alpha"), beta = n.f("beta");
  if (alpha != 1) attributes.push_back(attr("alpha", alpha));
  if (beta != 1 && beta != 0) attributes.push_back(attr("beta", beta));
  Value* transposed = transposed_operand(b);
  if (transposed) attributes.push_back(attr("transB", int64_t{1}));
  Value* c = n.input("self");
  return onnx("Gemm", {a, transposed ? transposed : b, beta == 0 ? nullptr : c}, std::move(attributes));
}

Values raise_addmv(const AtenNode& n, OnnxBuilder& onnx) {
  return added(n, onnx, product(onnx, n.input("mat"), n.input("vec")));
}

Values raise_addr(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value* column = onnx.unsqueeze(n.input_as("vec1", dtype), {1});
  if (dtype != DType::Bool) return added(n, onnx, onnx("Mul", {column, n.input_as("vec2", dtype)}));
  Value* both = onnx("And", {column, n.input("vec2")});
  if (n.f("alpha") == 0) both = onnx("And", {both, onnx.flag(false)});
  Value* self = n.input("self");
  return n.f("beta") == 0 ? both : onnx("Or", {self, both});
}

Values raise_baddbmm(const AtenNode& n, OnnxBuilder& onnx) {
  return added(n, onnx, product(onnx, n.input("batch1"), n.input("batch2")));
}

Values raise_addbmm(const AtenNode& n, OnnxBuilder& onnx) {
  Value* products = product(onnx, n.input("batch1"), n.input("batch2"));
  const DType dtype = onnx.dtype(products), kernel = product_type(dtype);
  Value* sum = onnx.reduce("ReduceSum", onnx.cast(products, kernel), {0}, false);
  return added(n, onnx, onnx.cast(sum, dtype));
}

Values raise_bilinear(const AtenNode& n, OnnxBuilder& onnx) {
  Value *a = n.input("input1"), *b = n.input("input2"), *bias = n.find_input("bias");
  const std::string batch = std::string("abcdefghijklmnopqrst").substr(0, static_cast<size_t>(onnx.rank(a) - 1));
  Value* y = onnx("Einsum", {a, n.input("weight"), b}, {attr("equation", fmt::format("{0}x,zxy,{0}y->{0}z", batch))});
  return bias ? onnx("Add", {y, bias}) : y;
}

/// Letters for the dimensions of each side: those that are summed have the same.
Values raise_tensordot(const AtenNode& n, OnnxBuilder& onnx) {
  Value *a = n.input("self"), *b = n.input("other");
  const std::vector<int64_t> left = n.dims("dims_self", "self"), right = n.dims("dims_other", "other");
  const int64_t rank_a = onnx.rank(a), rank_b = onnx.rank(b);
  if (rank_a + rank_b > 52) n.cannot("so many dimensions");
  const auto letter = [](int64_t i) { return static_cast<char>(i < 26 ? 'a' + i : 'A' + (i - 26)); };
  std::string of_a, of_b;
  for (int64_t i = 0; i < rank_a; ++i) of_a += letter(i);
  for (int64_t i = 0; i < rank_b; ++i) of_b += letter(rank_a + i);
  for (size_t i = 0; i < left.size(); ++i) of_b[static_cast<size_t>(right.at(i))] = of_a[static_cast<size_t>(left[i])];
  std::string result;
  for (const char c : of_a) {
    if (of_b.find(c) == std::string::npos) result += c;
  }
  for (const char c : of_b) {
    if (of_a.find(c) == std::string::npos) result += c;
  }
  const DType dtype = n.output_dtype(), kernel = is_float(dtype) ? dtype : DType::Int64;
  Value* y = onnx("Einsum", {onnx.cast(a, kernel), onnx.cast(b, kernel)},
                  {attr("equation", fmt::format("{},{}->{}", of_a, of_b, result))});
  return onnx.cast(y, dtype);
}

/// Every dimension as two: one of the left side, then one of the right.
Values raise_kron(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value *a = n.input_as("self", dtype), *b = n.input_as("other", dtype);
  const int64_t rank = std::max(onnx.rank(a), onnx.rank(b));
  std::vector<int64_t> behind, before;
  for (int64_t i = 0; i < rank; ++i) {
    if (i < rank - onnx.rank(a)) behind.push_back(2 * i);
    behind.push_back(2 * i + 1);
    before.push_back(2 * i);
    if (i < rank - onnx.rank(b)) before.push_back(2 * i + 1);
  }
  Value* y = onnx(dtype == DType::Bool ? "And" : "Mul", {onnx.unsqueeze(a, behind), onnx.unsqueeze(b, before)});
  return onnx.reshape(y, n.output_shape());
}

Values raise_multi_dot(const AtenNode& n, OnnxBuilder& onnx) {
  const CheckedList<Value*> factors = n.inputs("tensors");
  Value* y = factors.at(0);
  for (size_t i = 1; i < factors.size(); ++i) y = product(onnx, y, factors[i]);
  return y;
}

constexpr AtenOp kAtenMatMulAten[] = {
    {.sig = "aten::mm(Tensor self, Tensor mat2) -> Tensor",
     .types = types_mm,
     .low_precision = true,
     .python = "torch.mm",
     .raise = raise_matmul,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
     .types = types_mm,
     .low_precision = true,
     .python = "torch.mm",
     .raise = raise_wider_product},
    {.sig = "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
     .types = types_mm,
     .low_precision = true,
     .python = "torch.bmm",
     .raise = raise_matmul,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
     .types = types_mm,
     .low_precision = true,
     .python = "torch.bmm",
     .raise = raise_wider_product},
    {.sig = "aten::mv(Tensor self, Tensor vec) -> Tensor",
     .types = types_mv,
     .low_precision = true,
     .python = "torch.mv",
     .raise = raise_mv,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::dot(Tensor self, Tensor tensor) -> Tensor",
     .types = types_dot,
     .python = "torch.dot",
     .raise = raise_dot,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::vdot(Tensor self, Tensor other) -> Tensor",
     .types = types_dot,
     .python = "torch.vdot",
     .raise = raise_matmul,
     .raise_complex = raise_no_complex},
    {.sig = "aten::inner(Tensor self, Tensor other) -> Tensor",
     .types = types_inner,
     .python = "torch.inner",
     .raise = raise_inner,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::outer(Tensor self, Tensor vec2) -> Tensor",
     .types = types_outer,
     .python = "torch.outer",
     .raise = raise_outer,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
     .types = types_vecdot,
     .low_precision = true,
     .python = "torch.linalg.vecdot",
     .raise = raise_vecdot},
    {.sig = "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .types = types_addmm,
     .low_precision = true,
     .python = "torch.addmm",
     .raise = raise_addmm},
    {.sig = "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .types = types_addmv,
     .low_precision = true,
     .python = "torch.addmv",
     .raise = raise_addmv},
    {.sig = "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .types = types_addr,
     .low_precision = true,
     .python = "torch.addr",
     .raise = raise_addr},
    {.sig = "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .types = types_addbmm,
     .low_precision = true,
     .python = "torch.addbmm",
     .raise = raise_addbmm},
    {.sig = "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .types = types_baddbmm,
     .low_precision = true,
     .python = "torch.baddbmm",
     .raise = raise_baddbmm},
    {.sig = "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
     .types = types_bilinear,
     .layout = Layout::Own,
     .python = "F.bilinear",
     .raise = raise_bilinear},
    {.sig = "aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
     .types = types_tensordot,
     .layout = Layout::Own,
     .python = "torch.ops.aten.tensordot",
     .raise = raise_tensordot,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::kron(Tensor self, Tensor other) -> Tensor",
     .types = types_kron,
     .layout = Layout::Inputs,
     .python = "torch.kron",
     .raise = raise_kron,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::linalg_multi_dot(Tensor[] tensors) -> Tensor",
     .layout = Layout::Own,
     .low_precision = true,
     .python = "torch.linalg.multi_dot",
     .raise = raise_multi_dot,
     .raise_complex = raise_products_of_parts},
};

}  // namespace

extern const OpFamily kAtenMatMulOps;
constinit const OpFamily kAtenMatMulOps{"aten_matmul", {}, kAtenMatMulAten};

}  // namespace tonnx
