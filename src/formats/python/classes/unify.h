// unify.h - parts of a model that differ in one step are brought to the same form, so that they share a class.
#pragma once
#include <functional>
#include <vector>

#include "formats/python/classes/drafts.h"

namespace tonnx::python {

/// Drafts that share a class.
using DraftGroup = std::vector<Draft>;

/// Joins groups of which one has a shortcut, or a member, that the other has not, or in which one member is of another
/// class. What they have to be given when they
/// are made is one argument more. `is_small` says whether a group has few enough arguments.
void unify_groups(std::vector<DraftGroup>& groups, const Drafts& drafts,
                  const std::function<bool(const DraftGroup&)>& is_small);

}  // namespace tonnx::python
