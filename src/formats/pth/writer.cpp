// writer.cpp - a state dict as torch.save writes it.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/pickle_writer.h"
#include "base/zip_writer.h"
#include "formats/pth/pth.h"
#include "ir/transposed.h"

namespace tonnx {

std::string_view storage_class(DType dtype) {
  switch (dtype) {
    case DType::Float32: return "FloatStorage";
    case DType::Float64: return "DoubleStorage";
    case DType::Float16: return "HalfStorage";
    case DType::BFloat16: return "BFloat16Storage";
    case DType::Int64: return "LongStorage";
    case DType::Int32: return "IntStorage";
    case DType::Int16: return "ShortStorage";
    case DType::Int8: return "CharStorage";
    case DType::UInt8: return "ByteStorage";
    case DType::Bool: return "BoolStorage";
    case DType::Complex64: return "ComplexFloatStorage";
    case DType::Complex128: return "ComplexDoubleStorage";
    default: return "";
  }
}

namespace {

/// Data that is stored once.
struct Storage {
  const Tensor* tensor;
  bool transposed;  // no tensor over it wants the data as it is
  std::string key;
};

class Storages {
 public:
  explicit Storages(const std::vector<StateTensor>& state) {
    for (const StateTensor& entry : state) {
      const auto [at, fresh] = index_.try_emplace(key_of(entry), all_.size());
      if (fresh) {
        all_.push_back({entry.tensor.get(), entry.transposed, std::to_string(all_.size())});
      } else if (!entry.transposed) {
        all_[at->second].transposed = false;
      }
    }
  }

  const Storage& of(const StateTensor& entry) const { return all_[index_.at(key_of(entry))]; }
  const std::vector<Storage>& all() const { return all_; }

 private:
  /// The shape belongs to it, because the storage may be transposed as a whole.
  using Key = std::tuple<const uint8_t*, size_t, DType, std::vector<int64_t>>;
  static Key key_of(const StateTensor& entry) {
    const Tensor& tensor = *entry.tensor;
    if (tensor.data.empty()) return {nullptr, 0, tensor.dtype, {}};
    return {tensor.data.data(), tensor.data.size(), tensor.dtype, tensor.dims};
  }

  std::vector<Storage> all_;
  std::map<Key, size_t> index_;
};

std::string pickle_of(const std::vector<StateTensor>& state, const Storages& storages) {
  PickleWriter pickle;
  pickle.global("collections", "OrderedDict");
  pickle.empty_tuple();
  pickle.reduce();
  pickle.mark();
  for (const StateTensor& entry : state) {
    const DTypeInfo& type = info(entry.tensor->dtype);
    if (type.torch.empty()) fail_unsupported("PyTorch has no tensors of {} ('{}')", type.name, entry.name);
    const Storage& storage = storages.of(entry);
    PickledTensor tensor{.storage = storage_class(type.dtype), .key = storage.key, .dims = entry.tensor->dims};
    tensor.count = entry.tensor->count();
    if (tensor.storage.empty()) {
      tensor.storage = "UntypedStorage";
      tensor.dtype = type.torch;
      tensor.count = static_cast<int64_t>(entry.tensor->data.size());
    }
    if (entry.transposed) std::swap(tensor.dims[0], tensor.dims[1]);
    if (entry.transposed && !storage.transposed) tensor.strides = {1, std::max<int64_t>(tensor.dims[0], 1)};
    pickle.text(entry.name);
    pickle.tensor(tensor);
  }
  pickle.set_items();
  return std::move(pickle).done();
}

}  // namespace

void write_pth(OutputFile& file, const std::vector<StateTensor>& state,
               const std::function<void(uint64_t, uint64_t)>& progress) {
  const Storages storages(state);
  ZipWriter zip(file);
  zip.add("archive/data.pkl", pickle_of(state, storages));
  zip.add("archive/byteorder", "little");
  uint64_t total = 0, done = 0;
  for (const Storage& storage : storages.all()) total += storage.tensor->data.size();
  for (const Storage& storage : storages.all()) {
    zip.begin("archive/data/" + storage.key);
    zip.write(bytes_to_write(*storage.tensor, storage.transposed));
    zip.end();
    done += storage.tensor->data.size();
    if (progress) progress(done, total);
  }
  zip.add("archive/version", "3\n");
  zip.finish();
}

}  // namespace tonnx
