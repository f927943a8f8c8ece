// class_names.h - what classes are called, and where in the model their modules are.
#pragma once
#include <string>
#include <vector>

namespace tonnx::python {

/// `encoder.layer.3` gives `Layer`, `inception3a` gives `Inception`; what says nothing gives `Block`.
std::string class_word(const std::string& path);

/// `encoder.layer.0 to 5`: where the parts of a class are.
std::string places_text(std::vector<std::string> paths);

}  // namespace tonnx::python
