// probe.h - runtimes that can be asked more than to run: what would be if values inside were others, and derivatives.
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
struct Gradients {
  std::vector<WeightGradient> weights;  ///< one entry for each weight of floats
  double work = 0;                      ///< what it took, in seconds of one core: past a limit no more inputs are drawn
};

/// A runner that can be asked what would be if values inside, or weights, were others. A program that has one of the
/// two implements that; the other does nothing.
class TONNX_API ProbedRunner : public Runner {
 public:
  /// Values by the places of their steps.
  using ByPlace = std::vector<std::pair<size_t, Tensor>>;
  /// The factors of the elements of a value, by the place of the output or of the step; a Tensor() where the value is
  /// no part of the sum.
  using Factors = Callback<Tensor(size_t, const Tensor&)>;
  ~ProbedRunner() override;
  /// The outputs where the values of these steps are others. Throws where that cannot be done.
  virtual std::vector<Tensor> run_with(const std::vector<Tensor>& inputs, const ByPlace& given);
  /// Values of steps as they are computed where those that use the given ones take these; of a step that is given
  /// itself what it would have been. Throws where that cannot be done.
  virtual std::vector<Tensor> recompute(const std::vector<Tensor>& inputs, const ByPlace& given,
                                        const std::vector<size_t>& wanted);
  /// The derivatives of a sum: of all elements of the outputs, or of values inside, each times its factor. Nothing
  /// where the model cannot be differentiated.
  virtual std::optional<Gradients> gradients(const std::vector<Tensor>& inputs, const Factors& factors, bool is_inside);
};

TONNX_END
