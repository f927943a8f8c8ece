// parameters.h - what the constructor of a class takes: the numbers that are not the same in all of its parts.
#pragma once
#include <set>
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

/// Names it; where some of the parts have what the argument is without being said, it need not be given.
void give_name(Parameter& parameter, std::string name);

/// Those that are given, in their order: the ones that always are stand before those that need not be.
std::vector<const Parameter*> given_parameters(const std::vector<Parameter>& parameters);
/// `stride=1`, or `channels`.
std::string signature_text(const Parameter& parameter);
/// What the constructor of a part is given for it: `stride=2`, or `64`.
std::string argument_text(const Parameter& parameter, size_t part);

/// What follows from another in all parts need not be given: `kernel_size // 2` is the padding, `4 * features` the
/// hidden layer. The others have their names then: `channels_3` is `channels` if no other is, and no attribute of the
/// class.
void derive_parameters(std::vector<Parameter>& parameters, std::set<std::string> attributes);

}  // namespace tonnx::python
