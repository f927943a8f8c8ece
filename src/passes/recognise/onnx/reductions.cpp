// reductions.cpp - ONNX: reductions of squares, magnitudes and exponentials that have a name of their own.
#include "passes/frame/onnx_match.h"
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

bool become(Node& last, Rewriter& rewriter, std::string_view op, Value* x, const Reduced& reduced) {
  if (!rewriter.has_op(op) || x->type.dtype != DType::Float32) return false;
  NewNode made{.op = op, .inputs = {x, rewriter.ints(*last.graph, reduced.axes, "axes")}};
  if (!reduced.keeps_dims) made.attributes.push_back({"keepdims", int64_t{0}, AttrType::None, {}, {}});
  Value* value = rewriter.add(last, std::move(made), last.output(0)->name);
  return value != nullptr && rewriter.replace(last.output(0), value);
}

/// The reduction that makes a value for one user.
std::optional<Reduced> as_reduction(const Value* value, Symbol op) { return as_reduced(made_by(value, op), op); }

/// exp(x - max(x)) / sum(exp(x - max(x))), each along the same axis
bool find_softmax(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kDiv)) return false;
  const Value* powers = node.input(0);
  const auto sum = as_reduction(node.input(1), kReduceSum);
  if (!sum || sum->of != powers || sum->axes.size() != 1 || !sum->keeps_dims || powers->uses.size() != 2) return false;
  const Node* exp = producer_of(powers, kExp);
  const Node* centred = exp ? made_by(exp->input(0), kSub) : nullptr;
  Value* x = centred ? centred->input(0) : nullptr;
  const auto most = centred ? as_reduction(centred->input(1), kReduceMax) : std::nullopt;
  if (!most || most->of != x || most->axes != sum->axes || !most->keeps_dims) return false;
  if (x->type.dtype != DType::Float32 || !have_same_type(x, node.output(0))) return false;
  Attribute axis{"axis", sum->axes[0], AttrType::None, {}, {}};
  Value* made = rewriter.add(node, {.op = "Softmax", .inputs = {x}, .attributes = {axis}}, node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

}  // namespace

bool recognise_reductions(Node& node, Rewriter& rewriter) {
  if (const auto sum = as_reduced(&node, kReduceSum)) {
    // 1. sum(x * x): ReduceSumSquare
    if (Value* x = as_square(sum->of)) return become(node, rewriter, "ReduceSumSquare", x, *sum);
    // 2. sum(|x|): ReduceL1
    if (Value* x = operand_of(sum->of, kAbs)) return become(node, rewriter, "ReduceL1", x, *sum);
    return false;
  }
  // 3. sqrt(sum(x * x)): ReduceL2
  if (is_onnx(node, kSqrt)) {
    const auto sum = as_reduction(node.input(0), kReduceSumSquare);
    return sum && become(node, rewriter, "ReduceL2", sum->of, *sum);
  }
  // 4. log(sum(x)): ReduceLogSum
  if (is_onnx(node, kLog)) {
    const auto sum = as_reduction(node.input(0), kReduceSum);
    return sum && made_by(sum->of, kExp) == nullptr && become(node, rewriter, "ReduceLogSum", sum->of, *sum);
  }
  // 5. exp(x - max(x)) / sum(exp(x - max(x))): Softmax
  return find_softmax(node, rewriter);
}

bool recognise_log_sum_exp(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kLog)) return false;
  // 1. log(sum(exp(x))): ReduceLogSumExp
  if (const auto sum = as_reduction(node.input(0), kReduceSum)) {
    Value* x = operand_of(sum->of, kExp);
    return x != nullptr && become(node, rewriter, "ReduceLogSumExp", x, *sum);
  }
  // 2. log(Softmax(x)): LogSoftmax. Before opset 13 both flatten in the same way.
  const Node* softmax = made_by(node.input(0), kSoftmax);
  if (softmax == nullptr || softmax->version < 13) return false;
  Attribute axis{"axis", int_of(*softmax, "axis").value_or(-1), AttrType::None, {}, {}};
  Value* made = rewriter.add(node, {.op = "LogSoftmax", .inputs = {softmax->input(0)}, .attributes = {axis}},
                             node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

}  // namespace tonnx
