// onnx.h - reads and writes ONNX files; nodes stay at the opset they are written for.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/model.h"

namespace tonnx {

/// Maps the file and reads it; weights stay where they are. Throws BadFile and InvalidModel.
Model read_onnx(const std::string& path);
/// The same from memory; external data is looked for in `folder`.
Model read_onnx(Bytes bytes, const std::string& folder = "");

struct OnnxWriteOptions {
  /// Weights go to a file of their own: always, never, or (nothing said) where they were so in the source, or the
  /// message would pass the 2 GB that protobuf can hold.
  std::optional<bool> external_data;
  /// Tensors below this many bytes stay in the model file in any case.
  int64_t external_threshold = 1024;
  bool declares_values = true;                       // whether the file says the types of values between the nodes
  std::function<void(uint64_t, uint64_t)> progress;  // bytes written, and all of them
  std::vector<std::byte>* memory = nullptr;          // takes the bytes in place of the file; weights are in the message
};

/// Writes the model, and `path` + ".data" where weights are external. Nothing is left behind on failure.
void write_onnx(const Model& model, const std::string& path, const OnnxWriteOptions& options = {});
/// The whole model as one message. Throws Unsupported where it would pass 2 GB.
std::string write_onnx_bytes(const Model& model);

}  // namespace tonnx
