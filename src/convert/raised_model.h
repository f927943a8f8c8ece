// raised_model.h - what is left to do when all nodes of a model have been raised: constants, names, and the model
// around.
#pragma once
#include <string>
#include <vector>

#include "ir/model.h"

namespace tonnx {

/// Makes the values that were found to be constants initializers, drops what nobody uses, gives the model its outputs
/// and its nodes their names, and the places that they come from.
void finish_raised(Model& model, const std::vector<Value*>& outputs, const std::vector<std::string>& output_names,
                   bool has_source_lines);

}  // namespace tonnx
