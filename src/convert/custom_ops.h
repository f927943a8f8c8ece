// custom_ops.h - operators of the user's own, which a conversion looks for before it looks into the tables.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

/// One of ONNX, or of another domain, on its way to PyTorch.
struct CustomOnnxOp {
  OnnxOpEntry entry;  // of its row only the signature is used
  std::function<Values(const OnnxNode&, AtenBuilder&)> lower;
  std::string like;  // the input whose type the first output has; empty: the file says it, or nobody
};

/// One of a library of PyTorch, on its way to ONNX.
struct CustomAtenOp {
  AtenOpEntry entry;
  std::function<Values(const AtenNode&, OnnxBuilder&)> raise;
};

class CustomOps {
 public:
  /// Throw InvalidModel where the signature is none, or the operator is there already.
  void add_onnx(const std::string& signature, std::string like,
                std::function<Values(const OnnxNode&, AtenBuilder&)> lower);
  void add_aten(const std::string& signature, std::function<Values(const AtenNode&, OnnxBuilder&)> raise);

  const CustomOnnxOp* find_onnx(const Node& node) const;
  const CustomAtenOp* find_aten(std::string_view full_name) const;

 private:
  std::map<std::pair<std::string, std::string>, CustomOnnxOp> onnx_;  // by domain and name
  std::map<std::string, CustomAtenOp, std::less<>> aten_;             // by full name
};

}  // namespace tonnx
