// source_line.h - the line of a person's code that a node comes from, without the folders of that person's machine.
#pragma once
#include <string>
#include <string_view>

namespace tonnx {

/// `torchvision/models/resnet.py:146` of a stack trace as Python prints it: the innermost line that is not PyTorch's
/// own. The path is that behind `site-packages`, or behind the current folder, or a file's name alone: never an
/// absolute one. Empty where there is no line.
std::string source_line(std::string_view trace);

}  // namespace tonnx
