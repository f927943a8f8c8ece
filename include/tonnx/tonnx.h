// tonnx.h - the public C++ interface: read a model, look at it, convert it.
#pragma once
#include <tonnx/export.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonnx {

TONNX_API const char* version();

/// What went wrong, with the "while ..." lines behind it in what().
class TONNX_API ConversionError : public std::runtime_error {
 public:
  enum class Kind { BadFile, InvalidModel, Unsupported, Internal };
  ConversionError(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

struct Options {
  std::optional<int64_t> opset;                              // of the ONNX that is written; nothing: that of the source
  std::map<std::string, std::vector<int64_t>> input_shapes;  // by input; -1 leaves a dimension as it is
  std::vector<std::string> allow_ops;  // library::name of operators of a .pt2 that are not known, and may be called
  std::optional<bool> external_data;   // weights of the ONNX that is written in a file of their own
  std::string weights;                 // a .pth or .safetensors file, whose values take the place of the model's own
  std::optional<std::string> part;     // which dict of a checkpoint has the weights; `.` is all that the file has
  bool flat = false;                   // code is one class, without modules inside modules
  std::optional<bool> source_lines;    // false: nodes of ONNX do not say which line of a .pt2's model they come from
};

/// An ONNX model whose weights stay in the mapped file.
class TONNX_API OnnxModel {
 public:
  static OnnxModel read(const std::string& path);

  OnnxModel(OnnxModel&&) noexcept;
  OnnxModel& operator=(OnnxModel&&) noexcept;
  ~OnnxModel();

  size_t node_count() const;
  int64_t opset() const;
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  /// The graph as text, one line a node.
  std::string text() const;

 private:
  struct Content;
  explicit OnnxModel(std::unique_ptr<Content> content);
  std::unique_ptr<Content> content_;
};

/// Converts by the endings of the names, as `tonnx convert` does. Throws ConversionError, and leaves no half file.
TONNX_API void convert(const std::string& source, const std::string& target, const Options& options = {});

}  // namespace tonnx
