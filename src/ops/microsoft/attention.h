// attention.h - what the attentions of com.microsoft share.
#pragma once
#include "ops/frame/expansion.h"

namespace tonnx {

/// (batch, length, heads * size) as (batch, heads, length, size), and back.
Value* split_heads(Expansion& make, Value* x, int64_t heads, int64_t size = -1);
Value* merge_heads(Expansion& make, Value* x);

/// 0 where the mask, of ones and zeros or of lengths, says that a key counts, and `filter` elsewhere. It broadcasts to
/// (batch, heads, queries, keys). `keys` is their number, as a list of one.
Value* bias_of_mask(OnnxEdit& edit, Value* mask, Value* batch_of, Value* keys, DType dtype, double filter);

bool expand_group_query_attention(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
