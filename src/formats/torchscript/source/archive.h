// archive.h - the parts of a TorchScript archive: its objects, its constants and its code.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/pickle.h"
#include "base/zip.h"
#include "formats/pth/tensors.h"
#include "formats/torchscript/source/syntax.h"
#include "ir/strided.h"

namespace tonnx::torchscript {

class ScriptArchive {
 public:
  /// Throws BadFile, InvalidModel, Unsupported. Nothing of the file is ever executed.
  explicit ScriptArchive(const Bytes& bytes);
  ScriptArchive(const ScriptArchive&) = delete;
  ScriptArchive& operator=(const ScriptArchive&) = delete;

  /// The module itself.
  const PickleValue& root() const { return data_->root(); }
  /// What the code calls CONSTANTS.c0 and so on.
  const std::vector<PickleValue::Item>& constants() const { return constants_->root().items; }
  PthTensor tensor(const PickleValue& value, bool is_constant) {
    return (is_constant ? constant_tensors_ : tensors_)->tensor_of(value);
  }
  /// The arguments of forward() that the archive was traced with: a list. Null where it does not tell.
  const PickleValue* traced_inputs();
  int64_t version() const { return version_; }

  /// All code, file by file.
  const std::vector<Unit>& units() const { return units_; }
  /// By the whole name: __torch__.pkg.Net. Null where there is none.
  const Class* find_class(std::string_view name) const;
  const Function* find_function(std::string_view name) const;

 private:
  void read_version(const std::string& root);
  void read_code(const std::string& root);

  ZipFile zip_;
  std::string root_;
  StridedTensors strided_;
  int64_t version_ = 0;
  std::unique_ptr<Pickle> data_, constants_, traced_;
  std::unique_ptr<PickledTensors> tensors_, constant_tensors_;
  std::vector<Unit> units_;
  std::map<std::string, const Class*, std::less<>> classes_;
  std::map<std::string, const Function*, std::less<>> functions_;
};

/// Whether a zip file is one of torch.jit.save.
bool is_script_archive(const ZipFile& zip);

}  // namespace tonnx::torchscript
