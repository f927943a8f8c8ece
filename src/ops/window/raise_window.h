// raise_window.h - arguments of sliding windows as PyTorch gives them, which convolutions and pools share.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

/// PyTorch takes an input without a batch; ONNX does not.
struct Batched {
  Value* x;
  bool is_added;

  Value* undo(OnnxBuilder& onnx, Value* y) const { return is_added && y ? onnx.squeeze(y, {0}) : y; }
};

inline Batched batched(OnnxBuilder& onnx, Value* x, int64_t spatial) {
  const bool is_added = onnx.rank(x) == spatial + 1;
  return {is_added ? onnx.unsqueeze(x, {0}) : x, is_added};
}

/// A number stands for as many as there are dimensions.
inline Ints each(Ints values, int64_t spatial) {
  require(spatial >= 1, "a window of {} dimensions", spatial);
  if (values.size() == 1) values.resize(static_cast<size_t>(spatial), values[0]);
  require(values.empty() || static_cast<int64_t>(values.size()) == spatial,
          "{} numbers are given for {} spatial dimensions", values.size(), spatial);
  return values;
}

/// The same pads in front and behind.
inline Ints twice(const Ints& padding) {
  Ints pads = padding;
  pads.append(padding);
  return pads;
}

inline Attribute attr(const char* name, AttrValue value) { return {name, std::move(value), AttrType::None, {}, {}}; }

inline void add_unless(std::vector<Attribute>& attributes, const char* name, const std::vector<int64_t>& values,
                       int64_t otherwise) {
  if (std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != otherwise; }))
    attributes.push_back(attr(name, values));
}

/// The 2 of `max_pool2d`.
inline int64_t spatial_of(const AtenNode& n) {
  const std::string& name = n.node().op.str();
  const size_t at = name.find_first_of("123");
  return at == std::string::npos ? 0 : name[at] - '0';
}

// overlap_raise.cpp
/// Windows, whose elements are the last dimension and which lie `step` apart in the one before, added up in one
/// dimension. Behind the last of them there are zeros, up to a whole step.
Value* added_windows(OnnxBuilder& onnx, Value* x, int64_t size, int64_t step);

}  // namespace tonnx
