// samples.h - two models of which one fixes a size that is open in the other: the open one runs at other sizes too.
#pragma once
#include "verify/plan.h"
#include "verify/report.h"

namespace tonnx::judge {

/// Compares the model with open sizes with the one that fixes them.
class Samples {
 public:
  /// `outputs`: pairs of outputs of the one and the other.
  Samples(Runner& a, Runner& b, const Plan& plan, const Tolerance& tolerance, const Depth& depth,
          std::vector<std::pair<size_t, size_t>> outputs);

  /// What becomes of each size that only one of the models leaves open; nothing where both fix something.
  std::vector<SizeCheck> checks();

 private:
  /// A size that one model fixes and the other leaves open.
  struct Opened {
    std::string name;
    int64_t size = 0;
    std::vector<std::pair<size_t, size_t>> places;  // the number of an input of the first model, and the axis

    /// Whether each element along it may be a sample of its own, of which the fixed model takes one.
    bool is_batch() const;
    std::optional<size_t> axis_of(size_t input) const;
  };
  /// Inputs of samples with which the fixed model runs, and its outputs.
  struct Drawn {
    std::vector<Tensors> feeds, outputs;
  };

  void find();
  void add(std::vector<Opened>& opened, const std::string& name, int64_t size, size_t input, size_t axis);
  Tensors run_fixed(const Tensors& feeds);
  Tensors run_open(const Tensors& feeds);
  Drawn drawn(const Opened& opened, size_t count);
  SizeCheck compare_samples(const Opened& opened);
  bool compare_at(const Opened& opened, const Drawn& drawn, size_t count, SizeCheck& check);
  SizeCheck run_at_others(const Opened& opened);
  const std::string& name_of_output(size_t k) const;

  Runner &a_, &b_;
  const Plan& plan_;
  const Tolerance& tolerance_;
  Depth depth_;
  std::vector<std::pair<size_t, size_t>> outputs_;
  std::vector<Opened> in_a_, in_b_;
  std::vector<std::string> names_;
};

}  // namespace tonnx::judge
