// aten_check.h - whether an aten node is a call that its schema allows.
#pragma once
#include "ir/graph.h"
#include "ops/frame/signature.h"

namespace tonnx {

/// Throws InvalidModel unless every argument is of the kind that the schema says, none is missing, lists of a fixed
/// length have it, and the results are as many, and of the kinds, that the schema gives. Arguments that the schema does
/// not have are left to others.
void check_call(const Node& node, const ParsedSignature& signature);

/// Throws InvalidModel unless the type of a value of a program is complete: a tensor has an element type, and sizes
/// that can be.
void check_type(const Value& value);

}  // namespace tonnx
