// tensor_reader.h - TensorProto to tensors, their bytes left where they are, in the model file or beside it.
#pragma once
#include <map>
#include <string>

#include "ir/attribute.h"
#include "ir/tensor.h"

namespace tonnx::onnx {

class TensorReader {
 public:
  /// `folder` is where external data lies; empty where there is none, as for a model in memory.
  explicit TensorReader(std::string folder) : folder_(std::move(folder)) {}

  /// The name goes to Tensor::source_name.
  TensorPtr read(const Bytes& message);
  SparseTensorPtr read_sparse(const Bytes& message);

 private:
  Bytes external(const std::vector<std::pair<std::string, std::string>>& entries, int64_t size);
  const Bytes& mapped(const std::string& location);

  std::string folder_;
  std::map<std::string, Bytes> files_;
};

}  // namespace tonnx::onnx
