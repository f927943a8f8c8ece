// col2im_raise.cpp - windows as columns put back to where they were taken from, as ONNX.
#include "ops/window/raise_window.h"
#include "ops/window/rows.h"

namespace tonnx {

Values raise_col2im(const AtenNode& n, OnnxBuilder& onnx) {
  const auto two = [&](const char* name) { return each(n.positives(name), 2); };
  const bool is_added = n.rank("self") == 2;
  Value* x = is_added ? onnx.unsqueeze(n.input("self"), {0}) : n.input("self");
  std::vector<Attribute> attributes;
  add_unless(attributes, "dilations", two("dilation"), 1);
  add_unless(attributes, "pads", twice(each(n.ints("padding"), 2)), 0);
  add_unless(attributes, "strides", two("stride"), 1);
  Value* y =
      onnx("Col2Im", {x, onnx.list(n.int_args("output_size")), onnx.ints(two("kernel_size"))}, std::move(attributes));
  return is_added ? onnx.squeeze(y, {0}) : y;
}

}  // namespace tonnx
