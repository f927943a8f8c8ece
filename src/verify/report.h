// report.h - what a comparison found: how far outputs and values inside of two models are apart.
#pragma once
#include "verify/match.h"
#include "verify/numbers.h"

namespace tonnx::judge {

/// One output of the two models, at the inputs where it comes closest to what is not allowed.
struct OutputComparison : Measured {
  std::string name, counterpart;
  /// Off by more than is allowed, though every layer does the same where it gets the same.
  bool is_rounding = false;
};

/// A value inside the models: what computes it on either side, and how the counterpart was found.
struct LayerComparison : OutputComparison {
  size_t index = 0, counterpart_index = 0;  // in order of execution
  std::string layer, op, module, counterpart_layer, counterpart_op;
  std::vector<std::string> weights;
  std::vector<std::string> covers;  // nodes before it that have no counterpart: they may be fused in the other model
  How how = How::Name;
  double depth = 1;
};

/// A size that one model fixes and the other leaves open: what the open model does at other sizes.
struct SizeCheck {
  std::string name;
  bool is_compared = true;     // with the fixed model, run once for each sample; otherwise it only has to run
  std::vector<int64_t> sizes;  // at which it ran
  bool is_same = true;
  std::string why, note;

  void fail(int64_t size, const std::string& reason);
};

/// Weights are seen where a change of one hundredth would move what was compared by more than it may differ.
struct Coverage {
  size_t weights = 0;                                       // tensors of floats
  size_t outputs = 0;                                       // that the outputs depend on
  size_t inside = 0;                                        // that only values inside depend on
  std::vector<std::pair<std::string, std::string>> hidden;  // the others, and why

  bool is_complete() const { return hidden.empty(); }
};

struct Report {
  std::vector<std::pair<std::string, std::string>> inputs;  // names, and types with the sizes that were chosen
  std::vector<OutputComparison> outputs;
  std::vector<std::string> missing;  // outputs that only one model has
  std::vector<LayerComparison> layers;
  std::optional<LayerComparison> first_difference;
  std::optional<std::pair<size_t, size_t>> steps;  // values that were looked at in a and in b
  std::vector<std::string> draws;                  // what the random floats were like, each time that both ran
  size_t inside = 0;                               // values inside that were compared
  std::optional<Coverage> coverage;                // nothing where no model can be differentiated
  bool is_hidden_difference = false;               // the first difference is one that no output shows
  std::vector<SizeCheck> sizes;                    // those that only one of the models fixes
  std::vector<std::string> left_out;               // what would have been too much work, in words
  bool is_random = false;

  bool is_same_outside() const;
  bool is_same_at_other_sizes() const;
  bool is_same() const { return is_same_outside() && is_same_at_other_sizes() && !is_hidden_difference; }
};

/// An output in one line.
std::string line_of(const OutputComparison& output);
/// The layer in the words of both models.
std::string title_of(const LayerComparison& layer);
std::string text_of(const SizeCheck& check);
std::string text_of(const Coverage& coverage);
/// The last line of a report.
std::string verdict_of(const Report& report);
/// What differs, in one line; empty where nothing does.
std::string difference_in(const Report& report);
/// All of it, without the names of the models; `seed` of the random inputs.
std::string text_of(const Report& report, uint64_t seed);

}  // namespace tonnx::judge
