// sample_inputs.cpp - zeros of the right types and shapes, in the form of torch.save.
#include "formats/pt2/sample_inputs.h"

#include <fmt/format.h>

#include "base/pickle_writer.h"
#include "base/zip_writer.h"
#include "formats/pth/pth.h"

namespace tonnx::pt2 {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;

}  // namespace

std::string sample_inputs(const Graph& graph, const SampleSizes& symbols) {
  PickleWriter pickle;
  std::vector<int64_t> sizes;  // of the storages, in bytes
  int64_t total = 0;
  pickle.mark();
  pickle.mark();
  for (const Value* input : graph.inputs()) {
    const DType dtype = widened(input->type.dtype);
    const std::string_view storage = storage_class(dtype);
    if (storage.empty() || !input->type.shape) return "";
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (const Dim& dim : *input->type.shape) {
      const auto size = value_of(dim, symbols);
      if (!size || *size < 0) return "";
      dims.push_back(*size);
      if (dims.back() != 0 && count > kMaxBytes / dims.back()) return "";
      count *= dims.back();
    }
    sizes.push_back(byte_size(dtype, count));
    total += sizes.back();
    if (total > kMaxBytes) return "";
    pickle.tensor(storage, std::to_string(sizes.size() - 1), count, dims);
  }
  pickle.tuple();
  pickle.empty_dict();
  pickle.tuple();

  std::string bytes;
  ZipWriter zip(bytes);
  zip.add("model/data.pkl", std::move(pickle).done());
  zip.add("model/byteorder", "little");
  for (size_t i = 0; i < sizes.size(); ++i)
    zip.add(fmt::format("model/data/{}", i), std::string(static_cast<size_t>(sizes[i]), '\0'));
  zip.add("model/version", "3\n");
  zip.finish();
  return bytes;
}

}  // namespace tonnx::pt2
