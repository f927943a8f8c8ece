// item_facts.h - what can be said of items and arguments without a graph.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "formats/torchscript/run/calls.h"

namespace tonnx::torchscript {

/// A number that is known.
double real_of(const Item& number);

/// Whether two things that are known are equal; nothing where only the run tells.
std::optional<bool> equal_items(const Item& a, const Item& b);

/// As str() writes it; a question mark for what only the run tells.
std::string text_of(const Item& item);

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names);

/// By its place, or by its name; null where it is not given.
const Item* find_argument(const Arguments& arguments, size_t position, std::string_view name);

/// Refuses a list where only the run tells how many items it has.
void require_known_count(const Item& list);

}  // namespace tonnx::torchscript
