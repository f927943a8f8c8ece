// aten_pool.cpp - PyTorch's pooling as ONNX.
#include <algorithm>

#include "ops/raises.h"

namespace tonnx {

Values raise_max_pool(const AtenNode& n, OnnxBuilder& onnx) {
  const std::string& name = n.node().op.str();
  const int64_t spatial = name[name.find("pool") + 4] - '0';
  const auto each = [&](std::vector<int64_t> values) {
    if (values.size() == 1) values.resize(static_cast<size_t>(spatial), values[0]);
    return values;
  };
  const std::vector<int64_t> kernel = each(n.ints("kernel_size"));
  std::vector<int64_t> strides = each(n.ints("stride")), pads = each(n.ints("padding"));
  if (strides.empty()) strides = kernel;
  pads.insert(pads.end(), pads.begin(), pads.begin() + spatial);
  std::vector<Attribute> attributes{{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
  if (const auto dilations = each(n.ints("dilation"));
      std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; }))
    attributes.push_back({"dilations", dilations, AttrType::None, {}, {}});
  if (n.flag("ceil_mode")) attributes.push_back({"ceil_mode", int64_t{1}, AttrType::None, {}, {}});
  const bool is_added = n.rank("self") == spatial + 1;
  Value* x = is_added ? onnx.unsqueeze(n.input("self"), {0}) : n.input("self");
  Value* y = onnx("MaxPool", {x}, std::move(attributes));
  return is_added ? onnx.squeeze(y, {0}) : y;
}

Values raise_adaptive_avg_pool(const AtenNode& n, OnnxBuilder& onnx) {
  const std::vector<int64_t> sizes = n.ints("output_size");
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size != 1; }))
    n.cannot("an adaptive pool to another size than 1");
  return onnx("GlobalAveragePool", {n.input("self")});
}

}  // namespace tonnx
