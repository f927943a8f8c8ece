// levels.h - in which order the classes of a model are written.
#pragma once
#include <vector>

#include "modules/outline.h"

namespace tonnx::python {

/// The parts of the model that need classes, from the innermost on: those of one level have none of the same level
/// inside. Parts that look alike from outside are on one level, as far as that goes, so that they may share a class.
std::vector<std::vector<ModulePart*>> levels_of(ModulePart& model);

}  // namespace tonnx::python
