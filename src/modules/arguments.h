// arguments.h - modules that are alike take their arguments in the same order.
#pragma once
#include "modules/outline.h"

namespace tonnx {

/// Files compute what layers take in an order of their own, the first layer's often in another: where modules with the
/// same path but for numbers do the same with their arguments in another order, the order of one of them counts.
void align_arguments(ModulePart& model);

}  // namespace tonnx
