// verify_coverage.h - which weights a comparison of two models has seen.
#pragma once
#include "api/verify_inside.h"

namespace tonnx::v1 {

/// Values that were compared and found the same, and by how much they may differ.
struct Compared {
  std::string name;
  Tensor value;
  double rtol, atol;
};

/// Notes the weights that these values, outputs or those inside, depend on. False where the runner cannot say it.
bool note_influence(const RunnerAtInputs& model, const std::vector<Compared>& values, bool is_inside,
                    Coverage& coverage);
/// The same of all layers that are the same; `is_second`: the model is the second of the two.
bool note_layers(const RunnerAtInputs& model, const std::vector<LayerComparison>& layers, bool is_second,
                 Coverage& coverage);

}  // namespace tonnx::v1
