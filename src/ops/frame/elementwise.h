// elementwise.h - what the elementwise families share: numbers as literals, types without kernels, known integers.
#pragma once
#include <string_view>

#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

/// PyTorch has next to no kernels for uint16, uint32 and uint64. The signed type to compute in: it holds all values of
/// the first two, and the bits of the third.
DType computed_in(DType dtype);
/// `x.to(to)`; x itself where it is of that type already.
Value* cast(AtenBuilder& aten, Value* x, DType from, DType to);
/// The input in the type to compute in.
Value* wide_input(const OnnxNode& n, AtenBuilder& aten, std::string_view input);
/// Keeps the order of unsigned values in a type that PyTorch can compare.
Value* ordered(AtenBuilder& aten, Value* x, DType dtype);

/// Whether the short text that python_float gives is exactly that number, and not only its nearest float32.
bool has_exact_text(double number);
/// A value as a number in the code, where it is one constant element (or one size), and adds no dimension to `other`.
std::optional<Arg> find_literal(const OnnxNode& n, const Value* value, const Value* other);
std::optional<Arg> find_literal(const OnnxNode& n, std::string_view input, std::string_view other);

/// The aten operator of that name, of the one tensor that the node has.
template <FixedText Name>
Values lower_unary(const OnnxNode& n, AtenBuilder& aten) {
  return aten(Name.value, n.input(n.entry().signature.inputs[0].name));
}

/// An operator of one tensor that gives another of the same type, element by element.
constexpr OnnxOp unary(Signature sig, int since, std::span<const OpsetStep> history, LowerFn lower,
                       InferFn infer = infer_same_as_first, EvalFn eval = nullptr) {
  return {.sig = sig,
          .since = since,
          .traits = kElementwise,
          .history = history,
          .infer = infer,
          .eval = eval,
          .lower = lower};
}

/// Arithmetic on two known integers; nothing where the result is not certain.
using DimFn = std::optional<Dim> (*)(const Dim&, const Dim&);
/// Sets the elements of the output where those of all inputs are known: folds them from left to right.
void propagate(InferNode& n, DimFn fold);
/// Whether a number is one of the type (of uint64 up to 2^53); an expression over sizes is taken to be.
bool fits(const Dim& value, DType dtype);
/// The elements of an integer or a bool tensor, where they are known.
std::optional<Dims> find_ints(const Value& value);
/// Whether a < b, a == b, where the forms show it.
std::optional<bool> is_less(const Dim& a, const Dim& b);
std::optional<bool> is_equal(const Dim& a, const Dim& b);

/// Arithmetic on numbers; an operator of one tensor has nothing on the right.
using NumberFn = double (*)(double left, double right);
/// Makes the output a constant where every input is one number that is not a weight of the file.
void fold_number(InferNode& n, NumberFn fold);
/// Whether the type is one that PyTorch computes in with a Python number beside it.
bool is_plain_float(DType dtype);

/// numpy's broadcasting, with known integers and numbers folded.
template <DimFn Fold, NumberFn Number = nullptr>
void infer_arithmetic(InferNode& n) {
  infer_broadcast(n);
  propagate(n, Fold);
  if (Number != nullptr) fold_number(n, Number);
}

}  // namespace tonnx
