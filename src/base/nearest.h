// nearest.h - what somebody may have meant by a name that nobody has.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tonnx {

using Names = std::vector<std::string_view>;

/// The names, the most similar first, those that are equally similar in their own order.
Names nearest_first(std::string_view name, Names known);

/// The first of them as a list for a person: `input, mask and 12 more`; `none` where there are none.
std::string nearest_list(std::string_view name, const Names& known);

/// The end of an error about a name that nobody has: `; did you mean 'convert'?`, or what there is.
std::string did_you_mean(std::string_view name, const Names& known);

/// Whether a person may well have meant `known` and written `name`.
bool is_near(std::string_view name, std::string_view known);

}  // namespace tonnx
