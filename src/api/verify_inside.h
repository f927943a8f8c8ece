// verify_inside.h - values inside of two models: which of them belong together, and whether they are the same.
#pragma once
#include "api/verify_numbers.h"

namespace tonnx::v1 {

/// One of two models, and the inputs that it gets.
struct RunnerAtInputs {
  Runner& runner;
  std::vector<Tensor> inputs;
};

/// Letters and digits: what a name keeps in every format.
std::string identifier(std::string_view name);

/// All values inside the first that have a counterpart in the second. `graph`: of the model that either of them runs.
std::vector<LayerComparison> compared_inside(const RunnerAtInputs& a, const RunnerAtInputs& b, const core::Graph& graph,
                                             const Rounding& rounding, const VerifyOptions& options);

/// A layer that differs by itself though the outputs of the first model, a ProbedRunner, stay the same with
/// the value of the second in its place. Nothing where there is none, or it cannot be found out.
const LayerComparison* find_hidden(const RunnerAtInputs& a, const RunnerAtInputs& b, const core::Graph& graph,
                                   const Rounding& rounding, const VerifyOptions& options,
                                   const std::vector<LayerComparison>& layers);

}  // namespace tonnx::v1
