// sample_inputs.cpp - zeros of the right types and shapes, in the form of torch.save.
#include "formats/pt2/sample_inputs.h"

#include <fmt/format.h>

#include "base/pickle_writer.h"
#include "base/zip_writer.h"

namespace tonnx::pt2 {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;

/// Empty where only newer forms of pickles have the type.
std::string_view storage_of(DType dtype) {
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

}  // namespace

std::string sample_inputs(const Graph& graph, const SampleSizes& symbols) {
  PickleWriter pickle;
  std::vector<int64_t> sizes;  // of the storages, in bytes
  int64_t total = 0;
  pickle.mark();
  pickle.mark();
  for (const Value* input : graph.inputs()) {
    const DType dtype = widened(input->type.dtype);
    const std::string_view storage = storage_of(dtype);
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
