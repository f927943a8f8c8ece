// saved.h - whatever torch.save wrote: the tensors in it by the way that leads to them, and what else there is.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "formats/state_tensor.h"

namespace tonnx {

/// A state dict is one of these, and so is the checkpoint of a trainer, with optimisers and numbers around the weights,
/// or a whole pickled module. Names are the keys on the way to a value, with dots between them.
struct SavedContent {
  struct Named {
    std::string name;
    std::string text;
  };
  std::vector<StateTensor> tensors;
  std::vector<Named> values;       // numbers and texts, as they read; `[12 values]` for a long list
  std::vector<Named> foreign;      // what would have to be executed: where it is, and the name that it asks for
  std::vector<std::string> parts;  // dicts of tensors by name, and modules, the outermost first; "" is the whole file
};

/// Nothing of the file is ever executed. Throws BadFile, InvalidModel, Unsupported; the forms of torch.save from before
/// PyTorch 1.6 are refused by their names.
SavedContent read_saved(const Bytes& bytes, std::string_view what);

/// The weights of a part, under their names in it; `.` is all of the file. Without a part: the only one at the top, of
/// a file that asks for nothing that would have to be executed. Throws InvalidModel, Unsupported.
std::vector<StateTensor> weights_of(const SavedContent& content, const std::optional<std::string>& part,
                                    std::string_view what);

}  // namespace tonnx
