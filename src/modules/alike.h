// alike.h - what modules and methods that are alike have in common.
#pragma once
#include "modules/outline.h"

namespace tonnx {

/// Files compute what layers take in an order of their own, the first layer's often in another: where modules with the
/// same path but for numbers do the same with their arguments in another order, the order of one of them counts.
void align_arguments(ModulePart& model);

/// Whether both have the same steps, with the same members and constants. Types are not looked at.
bool are_equal(const Method& a, const Method& b);

}  // namespace tonnx
