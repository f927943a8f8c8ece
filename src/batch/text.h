// text.h - the YAML file of a batch as it is written: patterns not yet expanded, defaults not yet applied.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batch/batch.h"

namespace tonnx {

/// What is wrong with the file; all of it is told at once.
class Mistakes {
 public:
  /// What was added before is not added again.
  void add(int line, std::string text) {
    if (seen_.emplace(line, text).second) all_.emplace_back(line, std::move(text));
  }
  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  /// Throws InvalidModel with all of them, in the order of lines, where there are any.
  void report(const std::string& path);

 private:
  std::vector<std::pair<int, std::string>> all_;
  std::set<std::pair<int, std::string>> seen_;
};

template <class T>
struct Located {
  T value;
  int line = 0;
};

/// By the name of the input.
using InputShapes = std::map<std::string, Located<std::vector<int64_t>>>;

/// A model of the list, or the defaults.
struct BatchEntry {
  int line = 0;
  std::vector<Located<std::string>> sources, targets;
  bool has_targets = false;  // if only wrong ones
  InputShapes input_shapes;
  std::map<std::string, DType> input_types;  // of a TorchScript source
  std::optional<std::vector<Located<DynamicDim>>> dynamic;
  std::optional<int64_t> opset;
  std::optional<bool> external_data;
  std::optional<bool> source_lines;
  std::optional<bool> flat;
  std::optional<Limits> limits;
  std::optional<AllowedOps> allow_ops;
  std::optional<bool> simplifies;
  std::optional<SimplifyOptions> simplify;
  std::optional<Located<bool>> verifies;
  std::optional<VerifyOptions> verify;
};

struct BatchText {
  BatchEntry defaults;
  std::map<std::string, Located<InputShapes>> shapes;  // by the path of a source, from where the command is run
  std::vector<BatchEntry> models;
};

/// Reads as much as can be read; the rest is among the mistakes.
BatchText parse_batch(std::string_view yaml, Mistakes& mistakes);

}  // namespace tonnx
