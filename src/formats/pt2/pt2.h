// pt2.h - reads torch.export programs, from .pt2 archives or as the Python package hands them over, into aten graphs.
#pragma once
#include <string>

#include "formats/pt2/archive.h"
#include "ir/model.h"

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

}  // namespace tonnx
