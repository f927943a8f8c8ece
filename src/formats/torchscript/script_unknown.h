// script_unknown.h - lists the operators of an archive's code that cannot be read.
#pragma once
#include <string>

#include "formats/torchscript/script_archive.h"

namespace tonnx::torchscript {

/// One line for each such operator, with its places in the code: `\n  aten::geqrf, 1 time: code/__torch__.py, line 9`.
/// Empty where `error`, the first that was found, is about none of them: the code may have others where it never goes.
std::string list_unknown_operators(const ScriptArchive& archive, const std::string& error);

}  // namespace tonnx::torchscript
