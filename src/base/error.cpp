// error.cpp - the text of an Error with its context.
#include "base/error.h"

#include <list>
#include <type_traits>

#include "base/checked_int.h"
#include "base/checked_list.h"
#include "base/utf8.h"

namespace tonnx {

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::BadFile: return "bad_file";
    case ErrorKind::InvalidModel: return "invalid_model";
    case ErrorKind::Unsupported: return "unsupported";
    case ErrorKind::Internal: return "internal";
  }
  return "internal";
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 300;
  const std::string_view front = cut_at_character(text, kLongest);
  return front.size() < text.size() ? visible_text(front) + "..." : visible_text(front);
}

std::string format_error(fmt::string_view text, fmt::format_args args) {
  using Arg = fmt::basic_format_arg<fmt::format_context>;
  std::list<std::string> texts;  // the arguments point into them
  std::vector<Arg> careful;
  for (int i = 0; const Arg arg = args.get(i); ++i) {
    careful.push_back(fmt::visit_format_arg(
        [&]<class T>(const T& value) {
          if constexpr (std::is_convertible_v<const T&, fmt::string_view>) {
            const fmt::string_view view(value);
            texts.push_back(shown({view.data(), view.size()}));
            return fmt::detail::make_arg<fmt::format_context>(texts.back());
          } else {
            return arg;
          }
        },
        arg));
  }
  const bool has_lines = std::string_view(text.data(), text.size()).find('\n') != std::string_view::npos;
  // what is joined out of many texts comes as one argument that is no text
  return visible_text(fmt::vformat(text, fmt::format_args(careful.data(), static_cast<int>(careful.size()))),
                      has_lines);
}

void throw_error(ErrorKind kind, fmt::string_view text, fmt::format_args args) {
  throw Error(kind, format_error(text, args));
}

void Error::add_frame(std::string frame) {
  frames_.push_back("while " + shown(frame));
  what_ += "\n  " + frames_.back();
}

void fail_index(size_t index, size_t size) {
  if (size == 0) fail_invalid("a list is empty that needs an element");
  fail_invalid("index {} is out of range for a list of {}", static_cast<int64_t>(index), size);
}

void fail_overflow() { fail_invalid("a size does not fit into 64 bits"); }

void ensure(bool condition, const char* what) {
  if (!condition) throw Error(ErrorKind::Internal, what);
}

}  // namespace tonnx
