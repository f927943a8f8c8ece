// weight_files.h - the bytes of weights as entries of a zip archive, each stored once.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/zip_writer.h"
#include "ir/graph.h"

namespace tonnx {

/// Names of one value share an entry, and nothing else does: PyTorch takes what lies in one storage for one weight.
class WeightFiles {
 public:
  /// The number of the entry that holds the bytes of a constant. `transposed`: they are to be stored with its two
  /// dimensions, which are swapped already, swapped.
  size_t add(const Value& value, bool transposed);

  /// Writes all entries: `prefix0`, `prefix1` and so on, straight from where the bytes are. `progress` is told how many
  /// bytes are written, and how many there are.
  void write(ZipWriter& zip, const std::string& prefix, const std::function<void(uint64_t, uint64_t)>& progress) const;

 private:
  std::map<const Value*, size_t> numbers_;
  std::vector<std::pair<TensorPtr, bool>> all_;
};

}  // namespace tonnx
