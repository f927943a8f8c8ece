// probe.h - runtimes that can be asked more than to run, and what a comparison of models says then.
// Not part of tonnx.h.
#pragma once
#include <tonnx/verify.h>

TONNX_BEGIN

/// A weight, and the derivative of a sum with respect to each of its elements.
struct WeightGradient {
  std::string name;
  Tensor weight;
  std::optional<Tensor> gradient;  ///< nothing where it had no part in the sum
};

/// A runner that can be asked what would be if values inside, or weights, were others. A program that has one of the
/// two implements that; the other does nothing.
class TONNX_API ProbedRunner : public Runner {
 public:
  using Named = std::vector<std::pair<std::string, Tensor>>;
  ~ProbedRunner() override;
  /// What the outputs and the values inside of these names are where values inside are replaced by those that are
  /// given. None where that cannot be done.
  virtual std::vector<Tensor> run_with(const std::vector<Tensor>& inputs, const Named& values,
                                       const std::vector<std::string>& names);
  /// The derivatives of a sum: of all elements of these outputs and values inside, each times the factor at its place.
  /// One entry for each weight of floats. None where the model cannot be differentiated.
  virtual std::vector<WeightGradient> gradients(const std::vector<Tensor>& inputs, const Named& factors);
};

/// Which weights a comparison has seen: those of which a change by one hundredth would move what was compared by more
/// than it may differ. Weights that are all zeros, and statistics of normalisations, are not counted.
struct Coverage {
  size_t weights = 0;  ///< 0 where neither runner can be differentiated, or has weights
  size_t outputs = 0;  ///< that the outputs depend on
  size_t inside = 0;   ///< that only values inside depend on
  std::vector<std::pair<std::string, std::string>> hidden = {};  ///< the others, and why

  bool is_complete() const { return hidden.empty(); }
  /// In a sentence.
  TONNX_API std::string text() const;
};
/// What verify() without it does, and which weights that says something about, as far as one of the two is a
/// ProbedRunner that can be differentiated. As long as weights are left, other inputs are drawn, six times in all, or
/// as often as the options say; then values inside are compared, as if `layers` were set.
TONNX_API VerifyResult verify(Runner& reference, Runner& other, const Model& model, Coverage& coverage,
                              const VerifyOptions& options = {});

TONNX_END
