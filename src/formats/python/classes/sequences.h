// sequences.h - calls of nn.Sequential in the text of classes: those that are found again and again, and classes that
// are one.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "formats/python/classes/classes.h"
#include "formats/python/classes/constructors.h"

namespace tonnx::python {

// shared_sequences.cpp
/// Equal calls of nn.Sequential in the constructors of the classes become classes. `new_name` gives each a name that is
/// free; `standards` learns what their constructors need not be given.
void share_sequences(std::vector<ClassText>& classes, const std::function<std::string(const std::string&)>& new_name,
                     Standards& standards);

// inline_chains.cpp
/// A class that is made at one place only becomes nn.Sequential(OrderedDict(fc1=..., act=..., fc2=...)) there, if that
/// is a statement of a few lines. Others are an nn.Sequential without forward, if that is shorter.
void inline_chains(std::vector<ClassText>& classes, const Standards& standards);

}  // namespace tonnx::python
