// torchscript.h - TorchScript archives: read as programs of aten, and written for torch.jit.load and libtorch.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/pt2/pt2.h"
#include "modules/module_tree.h"

namespace tonnx {

/// What an archive does not say of its inputs; by their names, or their places where no input has that name.
struct ScriptInputs {
  std::map<std::string, std::vector<int64_t>> shapes;  // -1: open
  std::map<std::string, DType> types;                  // float32 where nothing is said
};

/// An argument of forward(): known before the model runs, an input, or made of such.
struct ScriptArgument {
  enum class Kind : uint8_t { None, Int, Float, Bool, Text, Input, List, Tuple, Dict };
  Kind kind = Kind::None;
  int64_t integer = 0;  // Int, Bool; Input: its place among the inputs
  double real = 0;
  std::string text;
  std::vector<ScriptArgument> items;  // Dict: a key, its value, and so on
};

/// A call of forward() that the program is read for: the tensors in it are the inputs.
struct ScriptCall {
  std::vector<std::pair<std::string, Type>> inputs;               // what they are called, and their types
  std::vector<std::pair<std::string, ScriptArgument>> arguments;  // by the names of the parameters
};

/// What forward() calls its arguments. Throws BadFile, InvalidModel, Unsupported.
std::vector<std::string> read_torchscript_inputs(const std::string& path);

/// The program that forward() is for such inputs. Branches and loops that only the run decides are `tonnx::cond` and
/// `tonnx::loop`; operators that write are still there. Throws BadFile, InvalidModel, Unsupported.
Program read_torchscript(const std::string& path, const ScriptInputs& inputs);
Program read_torchscript(const Bytes& bytes, const ScriptInputs& inputs);
/// The same for one call; elements of a result are named `output.0`, as tonnx.export names them.
Program read_torchscript(const std::string& path, const ScriptCall& call);

/// The graph is functional. Branches and loops are `tonnx::cond` and `tonnx::loop`. Of entries that are transposed the
/// type of the value has its two dimensions swapped already, its bytes have not; generators are left out of the tree.
/// Throws BadFile, Unsupported. `progress` is told how many bytes of weights are written, and how many there are.
/// `memory` takes the bytes in place of the file.
void write_torchscript(const Graph& graph, const ModuleTree& tree, const std::vector<std::string>& output_names,
                       const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress = nullptr,
                       std::vector<std::byte>* memory = nullptr);

}  // namespace tonnx
