// error.h - the one exception of the project: who must act, what is wrong, and where it happened.
#pragma once
#include <fmt/format.h>

#include <exception>
#include <string>
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

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(kind, fmt::format(text, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_invalid(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::InvalidModel, fmt::format(text, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_unsupported(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::Unsupported, fmt::format(text, std::forward<Args>(args)...));
}

/// Throws InvalidModel unless the condition holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Error(ErrorKind::InvalidModel, fmt::format(text, std::forward<Args>(args)...));
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
