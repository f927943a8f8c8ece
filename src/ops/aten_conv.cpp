// aten_conv.cpp - PyTorch's convolutions as ONNX.
#include <algorithm>

#include "ops/raises.h"

namespace tonnx {
namespace {

/// PyTorch takes an input without a batch; ONNX does not.
struct Batched {
  Value* x;
  bool is_added;
};

Batched batched(OnnxBuilder& onnx, Value* x, int64_t spatial) {
  const bool is_added = onnx.rank(x) == spatial + 1;
  return {is_added ? onnx.unsqueeze(x, {0}) : x, is_added};
}

/// A number stands for as many as there are dimensions.
std::vector<int64_t> each(std::vector<int64_t> values, int64_t spatial) {
  if (values.size() == 1) values.resize(static_cast<size_t>(spatial), values[0]);
  return values;
}

std::vector<int64_t> twice(const std::vector<int64_t>& padding) {
  std::vector<int64_t> pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

void add_unless(std::vector<Attribute>& attributes, const char* name, const std::vector<int64_t>& values,
                int64_t otherwise) {
  if (std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != otherwise; }))
    attributes.push_back({name, values, AttrType::None, {}, {}});
}

std::vector<Attribute> conv_attributes(const AtenNode& n, int64_t spatial) {
  std::vector<Attribute> attributes;
  add_unless(attributes, "strides", each(n.ints("stride"), spatial), 1);
  add_unless(attributes, "dilations", each(n.ints("dilation"), spatial), 1);
  if (const int64_t groups = n.i("groups"); groups != 1)
    attributes.push_back({"group", groups, AttrType::None, {}, {}});
  return attributes;
}

}  // namespace

Values raise_conv(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = n.rank("weight") - 2;
  const auto [x, is_added] = batched(onnx, n.input("input"), spatial);
  std::vector<Attribute> attributes = conv_attributes(n, spatial);
  add_unless(attributes, "pads", twice(each(n.ints("padding"), spatial)), 0);
  Value* y = onnx("Conv", {x, n.input("weight"), n.find_input("bias")}, std::move(attributes));
  return is_added ? onnx.squeeze(y, {0}) : y;
}

Values raise_conv_transpose(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = n.rank("weight") - 2;
  const auto [x, is_added] = batched(onnx, n.input("input"), spatial);
  std::vector<Attribute> attributes = conv_attributes(n, spatial);
  add_unless(attributes, "pads", twice(each(n.ints("padding"), spatial)), 0);
  add_unless(attributes, "output_padding", each(n.ints("output_padding"), spatial), 0);
  Value* y = onnx("ConvTranspose", {x, n.input("weight"), n.find_input("bias")}, std::move(attributes));
  return is_added ? onnx.squeeze(y, {0}) : y;
}

}  // namespace tonnx
