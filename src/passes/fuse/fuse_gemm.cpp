// fuse_gemm.cpp - products of matrices with what turns their operands and what is added to them are one Gemm.
#include <algorithm>
#include <cmath>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

bool is_matrix(const Value* value) {
  return value != nullptr && value->type.is_tensor() && value->type.rank() == 2 &&
         contains(dtype_set(DType::Float32, DType::Float64, DType::Float16), value->type.dtype);
}

/// Quantised products are found by these nodes next to them.
bool is_dequantized(const Value* value) { return producer_of(value, kDequantize) != nullptr; }

bool is_product(const Node* node) {
  if (!is_onnx(node, kMatMul) && !is_onnx(node, kGemm)) return false;
  const Value *a = node->input(0), *b = node->input(1);
  if (!is_matrix(a) || !is_matrix(b) || is_dequantized(a) || is_dequantized(b)) return false;
  // products of nothing are zeros, which not every runtime knows
  return std::none_of(a->type.shape->begin(), a->type.shape->end(), [](const Dim& dim) { return dim.is(0); });
}

/// Whether Gemm can add a tensor to a matrix: its sizes are the matrix's, or 1.
bool can_be_added(const Value* bias, const Value* matrix) {
  if (bias == nullptr || !bias->type.shape || bias->type.dtype != matrix->type.dtype) return false;
  const Shape &from = *bias->type.shape, &to = *matrix->type.shape;
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i].is(1) && !(from[i] == to[i + to.size() - from.size()])) return false;
  }
  return true;
}

/// The matrix that a Transpose turns, where nobody else needs the turned one; null for other values.
Value* transposed_operand(const Value* value) {
  const Node* node = producer_of(value, kTranspose);
  if (node == nullptr || value->uses.size() != 1 || !is_matrix(node->input(0))) return nullptr;
  const auto perm = ints_of(*node, "perm");
  return !perm || *perm == std::vector<int64_t>{1, 0} ? node->input(0) : nullptr;
}

std::vector<Attribute> attributes_of(const Node& product, bool turns_a, bool turns_b) {
  const bool a = (int_of(product, "transA").value_or(0) != 0) != turns_a;
  const bool b = (int_of(product, "transB").value_or(0) != 0) != turns_b;
  std::vector<Attribute> result;
  for (const char* name : {"alpha", "beta"}) {
    const double number = float_of(product, name).value_or(1);
    if (number != 1) result.push_back({name, number, AttrType::None, {}, {}});
  }
  if (a) result.push_back({"transA", int64_t{1}, AttrType::None, {}, {}});
  if (b) result.push_back({"transB", int64_t{1}, AttrType::None, {}, {}});
  return result;
}

/// 1. Transpose(a) @ b, a @ Transpose(b), and Gemm of them: Gemm that turns the operand itself
bool fuse_transpose(Node& node, Rewriter& rewriter) {
  if (!is_product(&node) || node.version < 7) return false;
  Value *a = transposed_operand(node.input(0)), *b = transposed_operand(node.input(1));
  if (a == nullptr && b == nullptr) return false;
  std::vector<Value*> inputs{a ? a : node.input(0), b ? b : node.input(1)};
  if (Value* c = node.input(2)) inputs.push_back(c);
  Value* made = rewriter.add(
      node, {.op = "Gemm", .inputs = std::move(inputs), .attributes = attributes_of(node, a != nullptr, b != nullptr)},
      node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

/// 2. a @ b + c, Gemm(a, b) + c, Gemm(a, b, 0) + c: Gemm(a, b, c)
bool fuse_sum(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kAdd) || node.version < 7) return false;
  for (const size_t i : {0, 1}) {
    Value *x = node.input(i), *c = node.input(1 - i);
    if (x == nullptr || x->graph != node.graph || only_user(x) != &node || !is_product(x->producer)) continue;
    Node& product = *x->producer;
    if (!is_matrix(x) || !can_be_added(c, x) || is_dequantized(c)) continue;
    if (product.input(2) != nullptr && uniform_value(product.input(2)) != 0.0) continue;
    std::vector<Attribute> attributes = attributes_of(product, false, false);
    std::erase_if(attributes, [](const Attribute& attribute) { return attribute.name == "beta"; });
    Value* made = rewriter.add(
        node, {.op = "Gemm", .inputs = {product.input(0), product.input(1), c}, .attributes = std::move(attributes)},
        node.output(0)->name);
    if (made != nullptr && rewriter.replace(node.output(0), made)) return true;
  }
  return false;
}

}  // namespace

bool fuse_gemm(Node& node, Rewriter& rewriter) { return fuse_transpose(node, rewriter) || fuse_sum(node, rewriter); }

}  // namespace tonnx
