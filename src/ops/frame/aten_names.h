// aten_names.h - one name for each aten operator: aliases, and the functional forms of those that write.
#pragma once
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

struct AtenOpEntry;

/// Gives a node whose operator is another name of one that the tables describe, such as absolute, that one's name and
/// its names of the arguments. expand_copy and its like become expand: whoever asks what shares memory asks before.
void use_canonical_name(Node& node);

/// The row of the operator, which the node may know by another name; null where the tables do not have it.
const AtenOpEntry* find_canonical_op(const Node& node);

/// Whether the operator copies what another one of nearly the same name only looks at: view_copy, expand_copy ...
bool copies_view(const Node& node);

/// Whether the operator changes the tensor `self`, by its name: add_, __ior__.
bool writes_self(const Node& node);

/// The arguments that the operator writes its results to, in the order of the results; empty for all but out= variants.
std::vector<std::string_view> out_arguments(const Node& node);

/// Turns the name of an operator that writes to `self`, or to out arguments, into that of the one that gives a new
/// tensor, and the names of the arguments with it. The out arguments themselves stay: the caller takes them away.
void use_functional_name(Node& node);

}  // namespace tonnx
