// channel_norm.cpp - ONNX: means and quotients that normalise channels, or groups of them, become one node.
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"
#include "passes/recognise/onnx/norms.h"

namespace tonnx {
namespace {

constexpr int64_t kMostChannels = 1 << 20;

Value* filled(Node& node, DType dtype, int64_t count, double number, Rewriter& rewriter) {
  const std::vector<double> numbers(static_cast<size_t>(count), number);
  return rewriter.constant(*node.graph, make_floats(dtype, {count}, numbers), number == 1 ? "scale" : "bias");
}

std::optional<int64_t> channels_of(const Value* x) {
  const auto& shape = x->type.shape;
  const auto count = shape && shape->size() > 1 ? (*shape)[1].constant() : std::nullopt;
  return count && *count > 0 && *count <= kMostChannels ? count : std::nullopt;
}

/// A normalisation of all channels with nothing behind it yet.
bool become(Node& node, Rewriter& rewriter, const char* op, Value* x, std::vector<Attribute> attributes) {
  const auto channels = channels_of(x);
  if (!channels || !rewriter.has_op(op) || !have_same_type(x, node.output(0))) return false;
  const DType dtype = x->type.dtype;
  Value *scale = filled(node, dtype, *channels, 1, rewriter), *bias = filled(node, dtype, *channels, 0, rewriter);
  Value* made = rewriter.add(node, {.op = op, .inputs = {x, scale, bias}, .attributes = std::move(attributes)},
                             node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

bool find_instance_norm(Node& node, Rewriter& rewriter) {
  const auto found = find_normalised(node);
  if (!found || found->axis != 2 || *found->x->type.rank() < 4 || found->x->type.dtype != DType::Float32) return false;
  Attribute epsilon{"epsilon", found->epsilon, AttrType::None, {}, {}};
  return become(node, rewriter, "InstanceNormalization", found->x, {epsilon});
}

bool find_group_norm(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kReshape) || rewriter.opset() < 21) return false;
  const Node* norm = made_by(node.input(0), kInstance);
  if (norm == nullptr || uniform_value(norm->input(1)) != 1.0 || uniform_value(norm->input(2)) != 0.0) return false;
  const Node* split = made_by(norm->input(0), kReshape);
  Value* x = split ? split->input(0) : nullptr;
  const auto channels = x ? channels_of(x) : std::nullopt;
  const auto groups = channels_of(norm->input(0));
  if (!channels || !groups || *channels % *groups != 0 || norm->input(0)->type.rank() != 3) return false;
  if (x->type.dtype != DType::Float32 || !((*x->type.shape)[0] == (*norm->input(0)->type.shape)[0])) return false;
  Attribute epsilon{"epsilon", float_of(*norm, "epsilon").value_or(1e-5), AttrType::None, {}, {}};
  Attribute count{"num_groups", *groups, AttrType::None, {}, {}};
  return become(node, rewriter, "GroupNormalization", x, {epsilon, count});
}

/// The constant with one number for each channel as a vector; null where it is no such constant.
Value* as_vector(const Value* constant, const Value* x, Node& node, Rewriter& rewriter) {
  if (constant == nullptr || !constant->constant || constant->producer || constant->sparse) return nullptr;
  std::vector<int64_t> dims = constant->constant->dims;
  const auto rank = static_cast<size_t>(*x->type.rank());
  if (dims.size() > rank || constant->constant->dtype != x->type.dtype) return nullptr;
  dims.insert(dims.begin(), rank - dims.size(), 1);
  const int64_t count = constant->constant->count();
  if (count != channels_of(x) || dims[1] != count) return nullptr;
  const auto numbers = floats_of(*constant->constant, kMostChannels);
  return numbers ? rewriter.constant(*node.graph, make_floats(x->type.dtype, {count}, *numbers), constant->name)
                 : nullptr;
}

bool take_affine(Node& node, Symbol norm_op, Rewriter& rewriter) {
  const bool is_sum = is_onnx(node, kAdd);
  const auto found = find_affine(node, is_sum ? kAdd : kMul, norm_op);
  if (!found || uniform_value(found->norm->input(2)) != 0.0) return false;
  if (!is_sum && uniform_value(found->norm->input(1)) != 1.0) return false;
  Value* x = found->norm->input(0);
  if (x == nullptr || !x->type.shape || !channels_of(x)) return false;
  Value* vector = as_vector(found->constant, x, node, rewriter);
  if (vector == nullptr) return false;
  std::vector<Value*> inputs = found->norm->inputs();
  inputs[is_sum ? 2 : 1] = vector;
  Value* made =
      rewriter.add(node, {.op = norm_op.view(), .inputs = std::move(inputs), .attributes = found->norm->attributes},
                   node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

}  // namespace

bool recognise_channel_norm(Node& node, Rewriter& rewriter) {
  if (!node.domain.empty() || node.outputs().size() != 1) return false;
  // 1. (x - mean(x)) / sqrt(mean((x - mean(x)) ^ 2) + epsilon) over all but batch and channels: InstanceNormalization
  if (find_instance_norm(node, rewriter)) return true;
  // 2. Reshape(InstanceNormalization(Reshape(x, [N, groups, -1]), 1, 0)) to the sizes of x: GroupNormalization
  if (find_group_norm(node, rewriter)) return true;
  // 3. times, and plus, a number for each channel
  return take_affine(node, kInstance, rewriter) || (rewriter.opset() >= 21 && take_affine(node, kGroup, rewriter));
}

}  // namespace tonnx
