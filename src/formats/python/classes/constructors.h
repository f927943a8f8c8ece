// constructors.h - the arguments that layers are made with.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/frame/emission.h"

namespace tonnx::python {

/// What an argument is where it is left out: `1` for `stride`, also for `stride_2`; empty where there is no such thing.
std::string_view standard_value(std::string_view argument);

/// What argument number `position` of a layer of PyTorch's is; empty where nobody knows.
std::string_view argument_name(std::string_view layer, size_t position);

/// The end of what the bracket at `open` opens.
size_t matching_bracket(const std::string& text, size_t open);

/// `3, (1, 2), stride=2` one by one.
std::vector<std::string> split_arguments(const std::string& text);

/// The arguments of a layer, those too that could be left out, in one order: so that layers which differ in them are
/// otherwise alike.
std::string full_arguments(const ModuleSpec& spec);

/// For classes of the model: which arguments may be left out, and what they are then.
using Standards = std::map<std::string, std::map<std::string, std::string>, std::less<>>;

/// The text of constructors without the arguments that need not be said.
std::string without_standards(const std::string& text, const Standards& own);

}  // namespace tonnx::python
