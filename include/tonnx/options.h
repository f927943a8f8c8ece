// options.h - formats, and what can be asked of reading, writing and simplifying.
#pragma once
#include <tonnx/callback.h>
#include <tonnx/tensor.h>

#include <string>
#include <utility>
#include <vector>

TONNX_BEGIN

class Registry;

enum class Format : uint8_t {
  Onnx,         ///< .onnx
  TorchExport,  ///< .pt2, a program of torch.export
  TorchScript,  ///< .pt
  Python,       ///< .py, with its weights in .safetensors beside it
  SafeTensors,  ///< weights alone, under the names that the .py has
  Pth,          ///< the same, as torch.save writes them
};

/// Sizes of inputs, by their names; -1 leaves one as it is.
using InputShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;
/// What a call may use, by name, in place of what follows from the size of its input: {"memory", 1 << 30}.
using Limits = std::vector<std::pair<std::string, int64_t>>;

struct ReadOptions {
  InputShapes input_shapes = {};  ///< of .onnx and .pt
  /// Of a .pt, which does not say them; float32 otherwise.
  std::vector<std::pair<std::string, DType>> input_types = {};
  std::string weights = {};  ///< a .pth or .safetensors file, whose values take the place of the model's own
  std::optional<std::string> part = {};  ///< which dict of a checkpoint has these; `.` is all of the file
  std::string folder = {};               ///< where external data of an .onnx in memory lies; without it, there is none
  Limits limits = {};                    ///< of all that is done with the model
};

/// A size of an input that may vary from call to call.
struct DynamicDim {
  std::string input = {};  ///< empty: all inputs whose first size is as large as the first one's
  int64_t axis = 0;
  std::string name = {};  ///< sizes of one name are equal
  int64_t low = 0;
  std::optional<int64_t> high = {};
};

/// What else can be asked of ONNX that is made of a program of PyTorch.
struct ExportOptions {
  bool has_weights = true;          ///< false: weights are inputs, and their values are left out
  bool weights_are_inputs = false;  ///< whose values are defaults
  bool is_training = false;         ///< Dropout and BatchNormalization in their training forms
  bool folds = true;                ///< false: what is computed of weights is left to the runtime
  std::vector<std::pair<std::string, int64_t>> custom_opsets = {};  ///< versions of other domains than ONNX's own
};

/// Compares two files of models; empty where they agree, otherwise what differs, or "not judged: " and why.
using CompareFiles = Callback<std::string(const std::string& source, const std::string& result)>;

struct WriteOptions {
  std::optional<Format> format = {};  ///< of a model of ONNX that is written as such: whatever the ending says
  std::optional<int64_t> opset = {};  ///< of ONNX; nothing: that of the model, or 20 for a program of PyTorch
  /// Of ONNX: weights in a file of their own; nothing: as they were, or must be.
  std::optional<bool> external_data = {};
  std::optional<bool> source_lines = {};  ///< of ONNX made of a .pt2: whether nodes say which line they come from
  std::vector<DynamicDim> dynamic = {};   ///< of ONNX to .onnx, .pt2 or .pt
  /// Runs a model whose sizes were opened beside the original; without it small models are computed by tonnx itself.
  CompareFiles compare = {};
  /// library::name of operators of a program that are not known, and may be called.
  std::vector<std::string> allow_ops = {};
  ExportOptions exporting = {};        ///< of ONNX made of a .pt2 or a .pt
  bool flat = false;                   ///< code is one class, without modules inside modules
  const Registry* registry = nullptr;  ///< operators of one's own
  /// Told how much is done, 0 to 1; with false for an answer nothing is written, but for the last time, when all is.
  Callback<bool(double)> on_progress = {};
  /// The same in bytes of weights, those written and all of them; nothing is asked.
  Callback<void(uint64_t, uint64_t)> on_bytes = {};
  /// Told in a sentence what does no harm and should be known all the same.
  Callback<void(const std::string&)> on_warning = {};
};

struct ConvertOptions {
  ReadOptions read = {};
  WriteOptions write = {};
};

struct SimplifyOptions {
  InputShapes input_shapes = {};
  std::vector<std::string> skip = {};            ///< passes that are left out
  std::vector<std::string> only = {};            ///< where it is not empty: the only passes
  std::vector<std::string> enable = {};          ///< passes that run on request
  std::vector<std::string> unused_outputs = {};  ///< outputs that are dropped, with all that only they need
  int64_t fold_limit = int64_t{1} << 20;         ///< bytes by which a constant may exceed what it is made of
  std::optional<int64_t> opset = {};             ///< that the result follows
  bool infers_shapes = true;     ///< the file that is written says the types of values, where there is room
  CompareFiles compare = {};     ///< compares the result with the source
  bool verifies_passes = false;  ///< compares after each pass too, and leaves out one that changes the outputs
};

TONNX_END
