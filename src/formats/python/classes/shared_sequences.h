// shared_sequences.h - a run of layers that is found again and again, such as a convolution with its norm, is a class.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "formats/python/classes/classes.h"
#include "formats/python/classes/constructors.h"

namespace tonnx::python {

/// Equal calls of nn.Sequential in the constructors of the classes become classes. `new_name` gives each a name that is
/// free; `standards` learns what their constructors need not be given.
void share_sequences(std::vector<ClassText>& classes, const std::function<std::string(const std::string&)>& new_name,
                     Standards& standards);

}  // namespace tonnx::python
