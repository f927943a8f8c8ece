// raise.cpp - PyTorch's scaled dot-product attention as ONNX.
#include "ops/attention/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// Broadcast to the sizes in front of the last two that the result has.
Value* with_batch(OnnxBuilder& onnx, Value* x, const Shape& result, bool keeps_heads) {
  Shape shape = result.without_last(2);
  const Shape own = onnx.shape(x);
  if (keeps_heads) shape.back() = own[own.size() - 3];
  shape.append(own.last(2));
  return onnx.expand(x, shape);
}

/// A mask that has all keys: a last size of 1 would be taken for a mask that is too short.
Value* mask_of(const AtenNode& n, OnnxBuilder& onnx, DType dtype) {
  Value* mask = n.find_input("attn_mask");
  if (mask == nullptr) return nullptr;
  if (onnx.dtype(mask) != DType::Bool) mask = onnx.cast(mask, dtype);
  const Dim keys = n.shape("key").at(n.shape("key").size() - 2);
  if (onnx.rank(mask) == 0) mask = onnx.unsqueeze(mask, {0, 1});
  if (onnx.rank(mask) == 1) mask = onnx.unsqueeze(mask, {0});
  if (onnx.shape(mask).back() == keys || !onnx.shape(mask).back().is(1)) return mask;
  Shape shape = onnx.shape(mask);
  shape.back() = keys;
  return onnx.expand(mask, shape);
}

}  // namespace

Values raise_attention(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.f("dropout_p") != 0) n.cannot("attention with dropout");
  const bool shares_keys = n.flag("enable_gqa");
  Value *q = n.input("query"), *k = n.input("key"), *v = n.input("value");
  const DType dtype = onnx.dtype(q);
  Value* mask = mask_of(n, onnx, dtype);
  std::vector<Attribute> attributes;
  if (n.flag("is_causal")) attributes.push_back(attr("is_causal", int64_t{1}));
  if (const auto scale = n.find_f("scale")) attributes.push_back(attr("scale", *scale));
  const Shape& result = n.output_shape();
  const auto rank = static_cast<int64_t>(result.size());
  if (rank > 2) {
    q = with_batch(onnx, q, result, false);
    k = with_batch(onnx, k, result, shares_keys);
    v = with_batch(onnx, v, result, shares_keys);
  }
  const int64_t mask_rank = mask ? onnx.rank(mask) : 0;
  if (rank == 4) return onnx("Attention", {q, k, v, mask}, std::move(attributes));
  if (rank == 3 && mask_rank <= 2 && !shares_keys) {  // one head, which needs no dimension
    attributes.push_back(attr("q_num_heads", int64_t{1}));
    attributes.push_back(attr("kv_num_heads", int64_t{1}));
    return onnx("Attention", {q, k, v, mask}, std::move(attributes));
  }
  if (rank < 4) {
    const std::vector<int64_t> axes = rank == 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
    Value* y = onnx("Attention", {onnx.unsqueeze(q, axes), onnx.unsqueeze(k, axes), onnx.unsqueeze(v, axes), mask},
                    std::move(attributes));
    return onnx.squeeze(y, axes);
  }
  if (mask_rank > 2) n.cannot("a mask of {} dimensions for tensors of {}", mask_rank, rank);
  const auto merged = [&](Value* x) {
    const Shape& shape = onnx.shape(x);
    Shape four{count_of(shape.without_last(3))};
    four.append(shape.last(3));
    return onnx.reshape(x, four);
  };
  return onnx.reshape(onnx("Attention", {merged(q), merged(k), merged(v), mask}, std::move(attributes)), result);
}

}  // namespace tonnx
