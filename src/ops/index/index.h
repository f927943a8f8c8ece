// index.h - index tensors of ONNX, which may count from the end, as aten takes them.
#pragma once
#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

/// Whether no index of the input counts from the end, as far as can be seen.
bool counts_from_front(const NodeView& n, std::string_view indices);

/// The index tensor counted from the front, for a dimension of that size: torch.gather and torch.scatter know no other.
Value* index_from_front(const OnnxNode& n, AtenBuilder& aten, std::string_view indices, const IntArg& size);

/// The indices of each dimension: what lies along the last dimension of the input, taken apart.
std::vector<Value*> index_columns(const OnnxNode& n, AtenBuilder& aten, std::string_view indices);
/// How many there are, where that is known; or throws Unsupported where it is not.
std::optional<int64_t> find_index_depth(const NodeView& n, std::string_view indices);
int64_t index_depth(const NodeView& n, std::string_view indices);

/// ScatterND as it was written, by slices, where its indices are constants; null where they are others.
Value* put_slices(const OnnxNode& n, AtenBuilder& aten);

}  // namespace tonnx
