// tensors.h - tensors of pickles: a call that rebuilds one, over a storage that lies beside the pickle.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/pickle.h"
#include "base/zip.h"
#include "formats/pth/pth.h"
#include "ir/strided.h"

namespace tonnx {

/// `module.name`.
std::string global_name(const PickleValue& value);

class PickledTensors {
 public:
  /// `folder`: where the storages lie, with the slash at its end.
  PickledTensors(ZipFile& zip, StridedTensors& tensors, std::string folder)
      : zip_(zip), tensors_(tensors), folder_(std::move(folder)) {}

  /// Whether the value is a call of what PyTorch rebuilds tensors with.
  static bool is_tensor(const PickleValue& value);
  /// Throws InvalidModel, or Unsupported where it is no plain tensor, and says what it is.
  PthTensor tensor_of(const PickleValue& value);
  /// Its element type and sizes, whether its storage is there or not.
  static std::pair<DType, std::vector<int64_t>> type_of(const PickleValue& value);

 private:
  PthTensor rebuilt(const PickleValue& callee, const PickleValue& arguments);
  PthTensor plain(const std::vector<PickleValue::Item>& args, const PickleValue* dtype, const PickleValue* bits);
  Bytes storage_of(const PickleValue& value, std::optional<DType>& dtype);

  ZipFile& zip_;
  StridedTensors& tensors_;
  std::string folder_;
  std::map<const ZipEntry*, Bytes> storages_;
};

}  // namespace tonnx
