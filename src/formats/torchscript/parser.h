// parser.h - the code of an archive, as torch.jit prints it, to trees.
#pragma once
#include <string>
#include <string_view>

#include "formats/torchscript/syntax.h"

namespace tonnx::torchscript {

/// `scope` is what the names of its classes and functions begin with: __torch__.torch.nn. Throws BadFile with the line.
Unit parse_unit(std::string_view source, const std::string& scope, const std::string& file);

}  // namespace tonnx::torchscript
