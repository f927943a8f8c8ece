// error.h - errors of the command line itself, with texts out of arguments and files shown with care.
#pragma once
#include <fmt/format.h>
#include <tonnx/error.h>
#include <tonnx/tools.h>

#include <string>
#include <type_traits>

namespace tonnx::cli {

/// A text as it may be shown, anything else as it is.
template <class T>
decltype(auto) careful(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return shown(value);
  } else {
    return (value);
  }
}

template <class... Args>
[[noreturn]] void fail(Error::Kind kind, fmt::format_string<Args...> text, const Args&... args) {
  const fmt::string_view format = text;
  const bool has_lines = std::string_view(format.data(), format.size()).find('\n') != std::string_view::npos;
  throw Error(kind, visible_text(fmt::format(fmt::runtime(format), careful(args)...), has_lines));
}

template <class... Args>
[[noreturn]] void fail_invalid(fmt::format_string<Args...> text, const Args&... args) {
  fail<Args...>(Error::Kind::InvalidModel, text, args...);
}

template <class... Args>
[[noreturn]] void fail_unsupported(fmt::format_string<Args...> text, const Args&... args) {
  fail<Args...>(Error::Kind::Unsupported, text, args...);
}

template <class... Args>
void require(bool condition, fmt::format_string<Args...> text, const Args&... args) {
  if (!condition) fail_invalid<Args...>(text, args...);
}

/// Runs `body`; an Error that leaves it says what was being done.
template <class Body>
auto while_doing(const std::string& what, Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    std::vector<std::string> whiles = e.whiles();
    whiles.push_back(shown(what));
    throw Error(e.kind(), e.text(), std::move(whiles));
  }
}

}  // namespace tonnx::cli
