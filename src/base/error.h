// error.h - the one exception of the project: who must act, what is wrong, and where it happened.
#pragma once
#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tonnx {

/// Who must act: the one who has the file, the one who made the model, nobody yet, or us.
enum class ErrorKind { BadFile, InvalidModel, Unsupported, Internal };

const char* name_of(ErrorKind kind);

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string text) : kind_(kind), text_(std::move(text)), what_(text_) {}

  ErrorKind kind() const { return kind_; }
  const std::string& text() const { return text_; }
  const std::vector<std::string>& frames() const { return frames_; }
  const char* what() const noexcept override { return what_.c_str(); }

  /// Adds one "while ..." line; the innermost comes first.
  void add_frame(std::string frame);

 private:
  ErrorKind kind_;
  std::string text_;
  std::vector<std::string> frames_;
  std::string what_;
};

/// A name out of a file, fit to be shown: whatever would act on a terminal escaped, and no longer than a line or two.
std::string shown(std::string_view text);

/// Formats the text of an error; texts among the arguments come from files, and are shown with care.
std::string format_error(fmt::string_view text, fmt::format_args args);
[[noreturn]] void throw_error(ErrorKind kind, fmt::string_view text, fmt::format_args args);

template <class... Args>
std::string error_text(fmt::format_string<Args...> text, Args&&... args) {
  return format_error(text, fmt::make_format_args(args...));
}

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw_error(kind, text, fmt::make_format_args(args...));
}

template <class... Args>
[[noreturn]] void fail_invalid(fmt::format_string<Args...> text, Args&&... args) {
  throw_error(ErrorKind::InvalidModel, text, fmt::make_format_args(args...));
}

template <class... Args>
[[noreturn]] void fail_unsupported(fmt::format_string<Args...> text, Args&&... args) {
  throw_error(ErrorKind::Unsupported, text, fmt::make_format_args(args...));
}

/// Throws InvalidModel unless the condition holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) [[unlikely]]
    throw_error(ErrorKind::InvalidModel, text, fmt::make_format_args(args...));
}

/// Throws Internal unless the condition holds: a file must never be able to make it false.
void ensure(bool condition, const char* what);

/// Runs `body`; an Error that leaves it gains the line "while " + frame().
template <class Frame, class Body>
decltype(auto) in_context(Frame&& frame, Body&& body) {
  try {
    return body();
  } catch (Error& e) {
    e.add_frame(frame());
    throw;
  }
}

}  // namespace tonnx
