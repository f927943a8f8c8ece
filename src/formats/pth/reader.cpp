// reader.cpp - reads the dict of tensors that torch.save wrote.
#include "base/error.h"
#include "base/pickle.h"
#include "formats/pth/pth.h"
#include "formats/pth/tensors.h"

namespace tonnx {

std::string pth_root(const ZipFile& zip, std::string_view what) {
  for (const ZipEntry& entry : zip.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash != std::string::npos && std::string_view(entry.name).substr(slash) == "/data.pkl") {
      return entry.name.substr(0, slash + 1);
    }
  }
  fail(ErrorKind::BadFile, "{} is no file of torch.save: it has no data.pkl", what);
}

Bytes read_pth_pickle(ZipFile& zip, const std::string& root, std::string_view name, std::string_view what) {
  if (const ZipEntry* const order = zip.find(root + "byteorder")) {
    if (zip.read(*order).view() != "little") fail_unsupported("{} is not in little-endian byte order", what);
  }
  const ZipEntry* const entry = zip.find(root + std::string(name));
  if (entry == nullptr) fail(ErrorKind::BadFile, "{} has no {}", what, name);
  return zip.read_document(*entry);
}

std::map<std::string, PthTensor> read_pth(ZipFile& zip, StridedTensors& tensors, std::string_view what) {
  const std::string root = pth_root(zip, what);
  const Pickle pickle(read_pth_pickle(zip, root, "data.pkl", what), what);
  const PickleValue& dict = pickle.root();
  if (!dict.is(PickleValue::Kind::Dict) && !dict.is_call_of("collections", "OrderedDict")) {
    fail_unsupported("{} holds no dict of tensors", what);
  }
  PickledTensors reader(zip, tensors, root + "data/");
  std::map<std::string, PthTensor> result;
  for (size_t i = 0; i + 1 < dict.entries.size(); i += 2) {
    const PickleValue& key = *dict.entries[i];
    require(key.is(PickleValue::Kind::String), "{} has a key that is no text", what);
    const PickleValue& value = *dict.entries[i + 1];
    in_context([&] { return error_text("reading tensor '{}' of {}", key.text, what); },
               [&] { result.insert_or_assign(std::string(key.text), reader.tensor_of(value)); });
  }
  return result;
}

}  // namespace tonnx
