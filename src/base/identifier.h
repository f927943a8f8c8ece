// identifier.h - which texts out of files may stand as names in generated code.
#pragma once
#include <string_view>

namespace tonnx {

/// A word that Python keeps for itself: `class`, `lambda`, `None`.
bool is_python_keyword(std::string_view text);

/// ASCII letters, digits and underscores; the first one is no digit.
bool is_identifier(std::string_view text);

/// An identifier that is no keyword and has no two underscores in a row: those are Python's own (`__import__`,
/// `__call__`).
bool is_plain_name(std::string_view text);

/// One digit at least, and nothing else.
bool is_digits(std::string_view text);

}  // namespace tonnx
