// methods.h - modules that do the same in several places do it in one method.
#pragma once
#include "modules/outline.h"

namespace tonnx {

/// Whether both have the same steps, with the same members and constants. Types are not looked at.
bool are_equal(const Method& a, const Method& b);

}  // namespace tonnx
