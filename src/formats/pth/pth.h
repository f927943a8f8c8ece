// pth.h - what torch.save wrote: a zip file with one pickle, whose tensors lie beside it.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/zip.h"
#include "ir/strided.h"

namespace tonnx {

struct PthTensor {
  TensorPtr tensor;
  bool is_param = false;
  bool requires_grad = false;
};

/// A saved dict of tensors by name. `what` names it in errors. Nothing of it is ever executed: a value that is no plain
/// tensor is refused by its name.
std::map<std::string, PthTensor> read_pth(ZipFile& zip, StridedTensors& tensors, std::string_view what);

}  // namespace tonnx
