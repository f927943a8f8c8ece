// parameters.h - what the constructor of a class takes: the numbers that are not the same in all of its parts.
#pragma once
#include <string>
#include <vector>

namespace tonnx::python {

struct Parameter {
  size_t first = 0;                 // of the numbers that it stands for
  std::vector<std::string> column;  // its value in each part
  std::string name;
  std::string text;         // what stands for it in the constructor: its name, or `4 * features`
  std::string standard;     // its value where it is not given; empty where it is given always
  bool is_kept = false;     // forward needs it
  bool is_derived = false;  // it follows from another, and is not given
};

/// What follows from another in all parts need not be given: `kernel_size // 2` is the padding, `4 * features` the
/// hidden layer. The others have their names then: `channels_3` is `channels` if no other is.
void derive_parameters(std::vector<Parameter>& parameters);

}  // namespace tonnx::python
