// pt2.h - torch.export programs as aten graphs: read from .pt2 archives, or as the Python package hands them over, and
// written.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/pt2/archive.h"
#include "ir/model.h"
#include "modules/module_tree.h"

namespace tonnx {

/// A model whose graph is of aten's vocabulary, as torch.export gives it: operators that write to their arguments are
/// still there.
struct Program {
  Model model;
  std::vector<std::string> output_names;  // what the outputs are called; the values have names of their own
};

/// Throws BadFile, InvalidModel, Unsupported.
Program read_pt2(const std::string& path);
Program read_program(const Pt2Archive& archive);
/// The program of a model in memory: its JSON has the tables of the tensors as well, under `weights` and `constants`,
/// whose files are the storages.
Program read_live_program(const Bytes& json, const std::map<std::string, Bytes>& storages);

struct Pt2Options {
  std::vector<std::string> output_names;
  std::map<std::string, std::pair<int64_t, std::optional<int64_t>>> ranges;  // of sizes, by their names
  std::function<void(uint64_t, uint64_t)> progress;  // bytes of weights written, and all of them
  std::vector<std::byte>* memory = nullptr;          // takes the bytes in place of the file
};

/// The graph is of PyTorch's own operators only, and every value of a known type. `state` has the names of the state
/// dict; what has the value of an earlier entry is another name of that. Of entries that are transposed the type of the
/// value has its two dimensions swapped already, its bytes have not. Throws BadFile, Unsupported.
void write_pt2(const Graph& graph, const std::vector<StateEntry>& state, const std::string& path,
               const Pt2Options& options);

}  // namespace tonnx
