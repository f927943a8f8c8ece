// attention.cpp - ONNX: products around a Softmax that are an attention become it.
#include "passes/frame/onnx_match.h"
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

const std::vector<int64_t> kSwapHeads{0, 2, 1, 3};

bool is_four_dimensional(const Value* value) {
  return value != nullptr && value->type.dtype == DType::Float32 && value->type.rank() == 4;
}

/// What the keys are transposed from: the value, and the order of axes that makes keys of it.
struct Keys {
  Value* of;
  std::vector<int64_t> perm;  // empty: they are there
};
std::optional<Keys> find_keys(const Value* transposed) {
  const Node* node = made_by(transposed, kTranspose);
  auto perm = node ? ints_of(*node, "perm") : std::nullopt;
  if (!perm || perm->size() != 4 || node->input(0) == nullptr) return std::nullopt;
  std::swap((*perm)[2], (*perm)[3]);
  if (*perm == std::vector<int64_t>{0, 1, 2, 3}) return Keys{node->input(0), {}};
  return Keys{node->input(0), *perm};
}

/// A mask that is added to scores: of their two last axes, or all four, and one column for each key.
bool is_mask(const Value* mask, const Value* scores) {
  if (mask == nullptr || mask->type.dtype != DType::Float32 || !mask->type.shape || !scores->type.shape) return false;
  const Shape& shape = *mask->type.shape;
  return (shape.size() == 2 || shape.size() == 4) && shape.back() == scores->type.shape->back();
}

/// Softmax(q @ k^T * scale + mask)
struct Weights {
  Value *q, *mask;
  Keys k;
  double scale;
};
std::optional<Weights> find_weights(const Value* value) {
  const Node* softmax = made_by(value, kSoftmax);
  if (softmax == nullptr || softmax->version < 13) return std::nullopt;
  const int64_t axis = int_of(*softmax, "axis").value_or(-1);
  Value* scores = softmax->input(0);
  if (!is_four_dimensional(scores) || (axis != -1 && axis != 3)) return std::nullopt;
  Value* mask = nullptr;
  if (const Node* sum = made_by(scores, kAdd)) {
    for (const size_t i : {0, 1}) {
      const WithNumber part = as_product(sum->input(i));
      if (made_by(part.of, kMatMul) == nullptr || !have_same_type(part.of, scores)) continue;
      mask = sum->input(1 - i);
      scores = sum->input(i);
      break;
    }
    if (mask == nullptr || !is_mask(mask, scores)) return std::nullopt;
  }
  const WithNumber product = as_product(scores);
  const Node* matmul = made_by(product.of, kMatMul);
  if (matmul == nullptr) return std::nullopt;
  const WithNumber q = as_product(matmul->input(0)), transposed = as_product(matmul->input(1));
  auto k = find_keys(transposed.of);
  if (!k || !is_four_dimensional(q.of) || !is_four_dimensional(k->of)) return std::nullopt;
  double scale = product.number * q.number * transposed.number;
  if (k->perm.empty()) {
    const WithNumber inner = as_product(k->of);
    k->of = inner.of;
    scale *= inner.number;
  }
  if (!(scale > 0) || !std::isfinite(scale)) return std::nullopt;
  return Weights{q.of, mask, *k, scale};
}

/// 1. Softmax(q @ k^T * scale + mask) @ v: Attention
bool find_attention(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kMatMul) || !is_four_dimensional(node.output(0))) return false;
  Value* v = node.input(1);
  const auto found = find_weights(node.input(0));
  if (!found || !is_four_dimensional(v)) return false;
  const Shape &q = *found->q->type.shape, &values = *v->type.shape;
  if (!(q[0] == values[0]) || !(q[1] == values[1]) || !q[1].is_constant()) return false;
  Value* k = found->k.of;
  Shape keys = *k->type.shape;
  for (size_t i = 0; i < found->k.perm.size(); ++i) {
    const auto from = from_front(found->k.perm[i], 4);
    if (!from) return false;
    keys[i] = (*k->type.shape)[static_cast<size_t>(*from)];
  }
  if (!(keys[0] == q[0]) || !(keys[1] == q[1]) || !(keys[2] == values[2])) return false;
  if (!found->k.perm.empty()) {
    Attribute perm{"perm", found->k.perm, AttrType::None, {}, {}};
    k = rewriter.add(node, {.op = "Transpose", .inputs = {k}, .attributes = {perm}});
    if (k == nullptr) return false;
  }
  std::vector<Value*> inputs{found->q, k, v};
  if (found->mask != nullptr) inputs.push_back(found->mask);
  Attribute scale{"scale", found->scale, AttrType::None, {}, {}};
  Value* made =
      rewriter.add(node, {.op = "Attention", .inputs = std::move(inputs), .attributes = {scale}}, node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

bool swaps_heads(const Node* node) { return node != nullptr && ints_of(*node, "perm") == kSwapHeads; }

/// The tensor [batch, length, heads * size] that heads are taken from, as [batch, heads, length, size].
Value* without_heads(const Value* value) {
  const Node* transpose = made_by(value, kTranspose);
  const Node* reshape = swaps_heads(transpose) ? made_by(transpose->input(0), kReshape) : nullptr;
  Value* whole = reshape ? reshape->input(0) : nullptr;
  if (whole == nullptr || whole->type.rank() != 3 || reshape->output(0)->type.rank() != 4) return nullptr;
  const Shape &from = *whole->type.shape, &to = *reshape->output(0)->type.shape;
  return from[0] == to[0] && from[1] == to[1] && from[2] == to[2] * to[3] && to[2].is_constant() ? whole : nullptr;
}

/// 2. Heads that are taken from one axis for the Attention, and put there again: Attention does so itself.
bool find_heads(Node& node, Rewriter& rewriter) {
  if (!is_onnx(node, kReshape)) return false;
  const Node* transpose = made_by(node.input(0), kTranspose);
  const Node* attention = swaps_heads(transpose) ? made_by(transpose->input(0), kAttention) : nullptr;
  if (attention == nullptr || attention->inputs().size() > 4 || attention->find_attribute("q_num_heads")) return false;
  const Shape& heads = *attention->output(0)->type.shape;
  const auto& shape = node.output(0)->type.shape;
  if (!shape || shape->size() != 3 || !((*shape)[0] == heads[0]) || !((*shape)[1] == heads[2]) ||
      !((*shape)[2] == heads[1] * heads[3]))
    return false;
  std::vector<Value*> inputs = attention->inputs();
  for (size_t i = 0; i < 3; ++i) {
    inputs[i] = without_heads(inputs[i]);
    if (inputs[i] == nullptr) return false;
  }
  std::vector<Attribute> attributes = attention->attributes;
  for (const char* name : {"q_num_heads", "kv_num_heads"})
    attributes.push_back({name, *heads[1].constant(), AttrType::None, {}, {}});
  Value* made =
      rewriter.add(node, {.op = "Attention", .inputs = std::move(inputs), .attributes = std::move(attributes)},
                   node.output(0)->name);
  return made != nullptr && rewriter.replace(node.output(0), made);
}

}  // namespace

bool recognise_attention(Node& node, Rewriter& rewriter) {
  if (!rewriter.has_op("Attention")) return false;
  return find_attention(node, rewriter) || find_heads(node, rewriter);
}

}  // namespace tonnx
