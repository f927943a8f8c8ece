// size_writer.h - sizes as .pt2 files write them: the text that sympy's srepr gives, over symbols of PyTorch's naming.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tonnx::pt2 {

/// What is known of a size: at least `low`, at most `high`.
struct SizeRange {
  int64_t low = 0;
  std::optional<int64_t> high;
};

/// The symbols of a program. Those that sizes of inputs are, are s0, s1 ...; the others, which only the run tells, are
/// u0, u1 ....
class SizeNames {
 public:
  /// A symbol that is a size of an input, under the name that the model has for it.
  void add_input_symbol(const std::string& name);

  /// The text of an expression. A symbol that is not known yet is one that only the run tells.
  std::string text(const Dim& dim);

  struct Symbol {
    std::string name;   // s0
    std::string model;  // batch
  };
  /// In the order in which they were met.
  const std::vector<Symbol>& symbols() const { return symbols_; }

 private:
  const Symbol& symbol_of(const std::string& name, bool is_input);
  std::string text_of_atom(const Dim::Atom& atom);

  std::map<std::string, size_t> by_model_name_;
  std::vector<Symbol> symbols_;
  int inputs_ = 0, unbacked_ = 0;
};

/// A size for each symbol that inputs have, by the model's names.
using SampleSizes = std::map<std::string, int64_t>;

/// Sizes within the ranges, alike for all symbols, and so large that no value of the graph is empty. Nothing where
/// there are none: branches may ask for different ones.
std::optional<SampleSizes> choose_sample_sizes(const Graph& graph, const std::map<std::string, SizeRange>& ranges);
/// What an expression is with these sizes; nothing where only the run tells.
std::optional<int64_t> value_of(const Dim& dim, const SampleSizes& sizes);

/// How a tensor of that shape lies in memory, row by row.
Dims contiguous_strides(const Shape& shape);

}  // namespace tonnx::pt2
