// file_kind.h - what a file is by its content, whatever its name says, and what to do with one that is not read here.
#pragma once
#include <string>
#include <string_view>

#include "convert/route.h"

namespace tonnx {

/// Throws where the file is of another kind than its name says: an error that says what it is, and gives the next
/// command. Files that are not there, and contents that nobody knows, are left to those who read them.
void require_content(const std::string& path, Format format);

/// What a file is that is not read, or cannot become the target, and the next command; empty where nobody knows.
std::string advice_on(const std::string& path, const std::string& target);

}  // namespace tonnx
