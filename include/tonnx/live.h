// live.h - programs of PyTorch that come from a process that has PyTorch: what torch.export made in memory, and a
// TorchScript archive for one call. Not part of tonnx.h.
#pragma once
#include <tonnx/model.h>

TONNX_BEGIN

/// A program that torch.export made, without a file of it: its JSON as torch.export serializes it, which has the tables
/// of the tensors as well, under `weights` and `constants`, and the storages that these name, each a tensor of uint8.
/// The model keeps them. With `rolls_loops` what a trace wrote out turn by turn is a loop again.
TONNX_API Model read_live_program(const Tensor& json, const std::vector<std::pair<std::string, Tensor>>& storages,
                                  bool rolls_loops = false);

/// An argument of forward(): known before the model runs, an input, or made of such.
struct ScriptArgument {
  enum class Kind : uint8_t { None, Int, Float, Bool, Text, Input, List, Tuple, Dict };
  Kind kind = Kind::None;
  int64_t integer = 0;                ///< Int, Bool; Input: its place among the inputs
  double real = 0;                    ///< Float
  std::string text;                   ///< Text
  std::vector<ScriptArgument> items;  ///< List, Tuple; Dict: a key, its value, and so on
};

/// A call of forward() that a program is read for: the tensors in it are the inputs.
struct ScriptCall {
  std::vector<std::pair<std::string, Type>> inputs;               ///< what they are called, and their types
  std::vector<std::pair<std::string, ScriptArgument>> arguments;  ///< by the names of the parameters
};

/// The program that the forward() of a TorchScript archive is for such a call; elements of what it returns are named
/// `output.0`. Numbers, texts and truth values of the call are part of the program.
TONNX_API Model read_script(const std::string& path, const ScriptCall& call);

TONNX_END
