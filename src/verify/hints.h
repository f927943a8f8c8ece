// hints.h - what a model tells of its inputs: the rows of tables that they choose, numbers that they are
// compared with, and how large they have to be for anything to happen inside.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/model.h"

namespace tonnx::judge {

struct InputHint {
  std::string name;
  std::optional<Shape> shape;    // with names for all sizes that are open
  std::optional<int64_t> limit;  // integers below it
  bool is_mask = false;
  bool is_length = false;
  std::vector<double> choices;  // on either side of numbers that it is compared with
};

/// A size inside the model that is to be at least so large.
struct SizeNeed {
  Dim size;
  int64_t least = 1;
};

/// Two sizes that have to be equal for the model to run.
struct SizeEquation {
  Dim left, right;
};

struct ModelHints {
  std::vector<InputHint> inputs;  // in the order of the model
  std::vector<SizeNeed> needs;
  std::vector<SizeEquation> equations;  // those that surely hold first
};

/// A model that inference cannot make sense of tells less.
ModelHints hints_of(const Model& model);
/// Indices that are to lie in the tables of two models, which have the same inputs.
void take_limits(ModelHints& hints, const ModelHints& others);

}  // namespace tonnx::judge
