// variants.h - parts of a model that have something more than others: a shortcut around all of it, or one member.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "modules/outline.h"

namespace tonnx {

/// Takes back a change of a part's graph.
using Undo = std::function<void()>;

/// `y + x` where there is a shortcut, else `y`.
bool is_optional_add(const Node& node);
/// Which of its two inputs is the shortcut.
size_t shortcut_input(const Node& node);

/// What a part adds to its result at the end.
struct Shortcut {
  size_t argument = 0;     // of the part
  size_t input_index = 0;  // of the sum
};
std::optional<Shortcut> find_shortcut(const ModulePart& part);

/// The sum at the end becomes one that may be left out.
Undo make_shortcut_optional(ModulePart& part, const Shortcut& shortcut);
/// The same sum behind a part that has none.
Undo add_optional_shortcut(ModulePart& part, const Shortcut& shortcut);

/// Whether nothing that the part does has to do with the member: those around it call it.
bool is_left_alone(const ModulePart& part, const std::string& member);

/// The argument of the part that is all a member takes, where it is called once and gives one value.
std::optional<size_t> argument_of_member(const ModulePart& part, const std::string& member);

/// A call of a member that is not there, on the way from an argument to its use number `use`; nothing where that is no
/// place for one.
std::optional<Undo> add_optional_call(ModulePart& part, const std::string& member, size_t argument, size_t use);

}  // namespace tonnx
