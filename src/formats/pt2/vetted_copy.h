// vetted_copy.h - a .pt2 archive written anew from what was read of another, for PyTorch to load.
#pragma once
#include <string>

#include "ops/frame/allowed_ops.h"

namespace tonnx {

/// PyTorch runs what it loads: it unpickles objects and sample inputs, evaluates expressions, and makes code of names.
/// The copy has the same program and weights, but nothing that could run: names are names, expressions and guards are
/// parsed and printed anew, and sample inputs, custom objects and metadata are left out. Operators are PyTorch's own,
/// or known to the tables, or allowed. Throws BadFile, InvalidModel, Unsupported.
void write_vetted_copy(const std::string& source, const std::string& target, const AllowedOps& allowed = {});

}  // namespace tonnx
