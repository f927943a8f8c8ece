// pth.h - the files of torch.save, read and written: a zip file with one pickle, whose tensors lie beside it.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "base/zip.h"
#include "formats/state_tensor.h"
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

/// The one folder that all lies in, with its slash. Throws BadFile where the zip file has no data.pkl.
std::string pth_root(const ZipFile& zip, std::string_view what);
/// The pickle `name` of a file in little-endian byte order, which is the only one that is read.
Bytes read_pth_pickle(ZipFile& zip, const std::string& root, std::string_view name, std::string_view what);

/// `FloatStorage`; empty for types that only newer pickles have.
std::string_view storage_class(DType dtype);

/// Writes a state dict, in its order, for torch.load with weights_only and mmap. Tensors of the same data share it.
/// `progress`, where given, is told the bytes written and their total.
void write_pth(OutputFile& file, const std::vector<StateTensor>& state,
               const std::function<void(uint64_t, uint64_t)>& progress = nullptr);

}  // namespace tonnx
