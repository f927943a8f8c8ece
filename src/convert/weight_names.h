// weight_names.h - which constants of a model the tensors of a file are, by the model's names or by those of the module
// that it becomes.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/python/python.h"
#include "ir/model.h"
#include "ir/origins.h"

namespace tonnx {

/// The weights of the module that a model becomes, and what was noted while it was made.
struct ModuleWeights {
  PythonModule module;
  Origins origins;
};
/// Makes that module; `flat`: as one class.
using MakeModule = std::function<ModuleWeights(bool flat)>;

/// A constant of the model under its name: an initializer, or the attribute of a Constant.
struct OwnWeight {
  Value* value = nullptr;  // null where it is an attribute
  Node* node = nullptr;
  TensorPtr tensor;
};

/// The weights of a model take the values of those of a file. Throws InvalidModel with all names that are missing, that
/// the model does not have, that have another shape or type, or whose values the model has no place for.
void replace_weights(Model& model, const std::vector<StateTensor>& weights, const std::string& path,
                     const MakeModule& make_module);

}  // namespace tonnx
