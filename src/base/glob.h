// glob.h - files by a pattern of their names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tonnx {

/// Whether the text has characters that stand for others.
bool is_pattern(std::string_view text);

/// The files that match, sorted: *, ? and [ab] within a part of the path, and ** for any number of folders. Names that
/// begin with a dot are matched by a dot only. A file that is called like the pattern is the only match.
std::vector<std::string> files_matching(const std::string& pattern);

}  // namespace tonnx
