// pipeline.h - what is asked of a conversion, and whole conversions from a file to a file.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/budget.h"
#include "convert/input_sizes.h"
#include "convert/judge.h"
#include "convert/lowering.h"
#include "convert/raising.h"
#include "convert/route.h"
#include "convert/support.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/pt2.h"
#include "formats/python/python.h"
#include "ops/frame/allowed_ops.h"
#include "passes/dialects/dialect.h"

namespace tonnx {

/// How a program of PyTorch becomes ONNX.
struct ExportOptions {
  RaiseOptions raising;
  bool export_params = true;                     // false: the weights are inputs, and their values are left out
  bool keep_initializers_as_inputs = false;      // the weights are inputs whose values are defaults
  std::map<std::string, int64_t> custom_opsets;  // versions of the domains that the nodes of symbolics are of
  std::shared_ptr<const CustomOps> custom;       // operators of the user's own
};

struct ConvertOptions {
  std::optional<int64_t> opset;                              // of the ONNX that is written
  std::map<std::string, std::vector<int64_t>> input_shapes;  // by input; -1 leaves a dimension as it is
  std::map<std::string, DType> input_types;                  // by input, of a .pt
  std::vector<DynamicDim> dynamic;
  Judge compare;                                 // runs a model with open sizes and the original; null: neither is run
  std::function<void(const std::string&)> warn;  // told what the user should know of the result
  std::optional<bool> external_data;
  bool flat = false;                 // code is one class, without modules inside modules
  std::optional<bool> source_lines;  // whether the nodes of ONNX say which line of a .pt2's model they come from
  AllowedOps allow_ops;              // of a .pt2: operators that are not known, and that the code may call all the same
  std::string weights;               // a .pth or .safetensors file, whose values take the place of the model's own
  std::optional<std::string> part;   // which dict of a checkpoint has the weights
  Limits limits;                     // of what the conversion may use
  std::function<void(uint64_t, uint64_t)> progress;  // bytes of weights written, and all of them
  std::shared_ptr<const CustomOps> custom;           // operators of the user's own
  ExportOptions exporting;                           // what else is asked of ONNX that is made of a program
  bool rolls_loops = false;                          // of a trace: those that it wrote out are loops again
  std::vector<std::byte>* memory = nullptr;  // takes the bytes of the target, whose name is only its format then
};

/// Converts by the endings of the names: .onnx to .onnx, .py, .pt2, .pt, .safetensors or .pth, and .pt2 to the same but
/// .pt2. The last two are the weights alone, under the names that the .py has; they become one another.
void convert_file(const std::string& source, const std::string& target, const ConvertOptions& options = {});

OnnxWriteOptions onnx_options(const ConvertOptions& options);
ExportOptions export_options(const ConvertOptions& options);
LoweringOptions lowering_options(const ConvertOptions& options);

/// The weights of a model take the values of those of a file, by its own names or by those of the module that it
/// becomes. Throws InvalidModel with all that does not fit.
void replace_weights(Model& model, Dialect dialect, const std::vector<StateTensor>& weights, const std::string& path,
                     const ConvertOptions& options);

/// What keeps a model from becoming PyTorch code; its functions are inlined on the way.
std::vector<UnsupportedOp> find_unsupported(Model& model, const LoweringOptions& options = {});

/// How code calls itself and its weights in a file of that path.
PythonOptions file_options(const std::string& target, bool flat);
/// By the ending of the path: NAME.py and, where there are weights, NAME.safetensors; or the weights alone, in
/// NAME.safetensors or NAME.pth. `memory` takes the bytes of the latter in place of the file.
void write_python_files(const PythonModule& module, const std::string& path,
                        const std::function<void(uint64_t, uint64_t)>& progress = nullptr,
                        std::vector<std::byte>* memory = nullptr);

}  // namespace tonnx
