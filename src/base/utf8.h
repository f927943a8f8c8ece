// utf8.h - characters of UTF-8: how long they are, and whether they may stand on a terminal or in source code.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tonnx {

/// How many bytes the UTF-8 character at the front takes; 0 where the bytes are none. The text is not empty.
size_t utf8_length(std::string_view text);

/// As utf8_length, and 0 too for characters that would act instead of being seen: controls, and marks that turn the
/// direction of writing, with which a name can make a line of code look like another.
size_t visible_length(std::string_view text);

bool is_utf8(std::string_view text);

/// The text as valid UTF-8: each byte that belongs to no character becomes U+FFFD.
std::string as_utf8(std::string_view text);

/// The text with whatever would act on a terminal escaped as \xNN; line breaks too, unless they are the format's own.
std::string visible_text(std::string_view text, bool keep_lines = false);

/// At most `most` bytes from the front, and no character cut in two.
std::string_view cut_at_character(std::string_view text, size_t most);

}  // namespace tonnx
