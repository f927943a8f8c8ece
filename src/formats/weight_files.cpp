// weight_files.cpp - writes weights from file to file.
#include "formats/weight_files.h"

#include "ir/transposed.h"

namespace tonnx {

size_t WeightFiles::add(const Value& value, bool transposed) {
  const auto [at, fresh] = numbers_.try_emplace(&value, all_.size());
  if (fresh) all_.emplace_back(value.constant, transposed);
  return at->second;
}

void WeightFiles::write(ZipWriter& zip, const std::string& prefix,
                        const std::function<void(uint64_t, uint64_t)>& progress) const {
  uint64_t total = 0, done = 0;
  for (const auto& [tensor, transposed] : all_) total += tensor->data.size();
  for (size_t i = 0; i < all_.size(); ++i) {
    const auto& [tensor, transposed] = all_[i];
    zip.begin(prefix + std::to_string(i));
    Tensor source = *tensor;
    if (transposed) std::swap(source.dims[0], source.dims[1]);
    zip.write(bytes_to_write(source, transposed));
    zip.end();
    done += tensor->data.size();
    if (progress) progress(done, total);
  }
}

}  // namespace tonnx
