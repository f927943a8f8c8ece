// archive.h - the parts of a torch.export archive: the text of its program, and its tensors by name.
#pragma once
#include <map>
#include <string>

#include "base/bytes.h"
#include "ir/tensor.h"

namespace tonnx {

/// Names that are stored as one (file, type, sizes, strides and offset are the same) share the tensor.
struct Pt2Tensor {
  TensorPtr tensor;  // in the mapping where it is stored densely, else gathered once
  bool is_param = false;
  bool requires_grad = false;
};

struct Pt2Archive {
  Bytes program;                             // the JSON text
  std::map<std::string, Pt2Tensor> weights;  // parameters and persistent buffers
  std::map<std::string, Pt2Tensor> constants;
  std::map<std::string, Bytes> extra;
};

/// The layout of today, that with torch.save blobs for tensors, and the older one without a root folder.
/// Throws BadFile, InvalidModel or Unsupported. Nothing of the file is ever executed.
Pt2Archive read_pt2_archive(const std::string& path);
Pt2Archive read_pt2_archive(Bytes bytes);

}  // namespace tonnx
