// inline_chains.h - classes that only call their members one behind the other, written where they are made.
#pragma once
#include <vector>

#include "formats/python/classes/classes.h"
#include "formats/python/classes/constructors.h"

namespace tonnx::python {

/// A class that is made at one place only becomes nn.Sequential(OrderedDict(fc1=..., act=..., fc2=...)) there, if that
/// is a statement of a few lines. Others are an nn.Sequential without forward, if that is shorter.
void inline_chains(std::vector<ClassText>& classes, const Standards& standards);

}  // namespace tonnx::python
