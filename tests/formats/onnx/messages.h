// messages.h - ONNX messages made by hand, for what no writer would write.
#pragma once
#include "checks.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/rope.h"

namespace tonnx::onnx {

/// A message as a chain: `Fields().integer(1, 5).text(2, "a")`.
class Fields {
 public:
  Fields& integer(uint32_t field, int64_t value) {
    rope_.add_integer(field, value);
    return *this;
  }
  Fields& real(uint32_t field, float value) {
    rope_.add_float(field, value);
    return *this;
  }
  Fields& text(uint32_t field, std::string_view value) {
    rope_.add_text(field, value);
    return *this;
  }
  Fields& message(uint32_t field, const Fields& value) { return text(field, value.bytes()); }
  Fields& packed(uint32_t field, const std::vector<int64_t>& values) {
    rope_.add_packed(field, values);
    return *this;
  }
  std::string bytes() const {
    std::string all;
    rope_.append_to(all);
    return all;
  }

 private:
  Rope rope_;
};

inline Fields value_of(std::string_view name, int64_t dtype = 1, const std::vector<int64_t>& dims = {2}) {
  Fields sizes;
  for (const int64_t dim : dims) sizes.message(shape::dim, Fields().integer(dimension::dim_value, dim));
  const Fields tensor = Fields().integer(tensor_type::elem_type, dtype).message(tensor_type::shape, sizes);
  return Fields().text(value_info::name, name).message(value_info::type, Fields().message(type::tensor, tensor));
}

inline Fields node_of(std::string_view op, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
  Fields result;
  for (const std::string& input : inputs) result.text(node::input, input);
  for (const std::string& output : outputs) result.text(node::output, output);
  return result.text(node::op_type, op);
}

inline Fields model_of(const Fields& main_graph, int64_t opset_version = 17) {
  return Fields()
      .integer(model::ir_version, 8)
      .message(model::graph, main_graph)
      .message(model::opset_import, Fields().text(opset::domain, "").integer(opset::version, opset_version));
}

inline Model read(const Fields& model) { return read_onnx(Bytes::own(model.bytes())); }

/// y = Relu(x), with more fields in the graph.
inline Fields relu_graph() {
  return Fields()
      .message(graph::node, node_of("Relu", {"x"}, {"y"}))
      .text(graph::name, "g")
      .message(graph::input, value_of("x"))
      .message(graph::output, value_of("y"));
}

}  // namespace tonnx::onnx
