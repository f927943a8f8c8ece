// aten_check.h - whether an aten node is a call that its schema allows.
#pragma once
#include "ir/graph.h"
#include "ops/frame/signature.h"

namespace tonnx {

/// Values of a program have complete types. Those of code may have none, and types and lists are values there too.
enum class CallsOf : uint8_t { Program, Code };

/// Throws InvalidModel unless every argument is of the kind that the schema says, none is missing, lists of a fixed
/// length have it, and the results are as many, and of the kinds, that the schema gives. Arguments that the schema does
/// not have are left to others.
void check_call(const Node& node, const ParsedSignature& signature, CallsOf calls = CallsOf::Program);

/// Throws InvalidModel unless the type of a value of a program is complete: a tensor has an element type, and sizes
/// that can be.
void check_type(const Value& value);

}  // namespace tonnx
