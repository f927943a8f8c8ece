// error.cpp - errors of the library as those of the interface.
#include "api/internal.h"

namespace tonnx::v1 {

Error::Error(Kind kind, std::string text, std::vector<std::string> whiles)
    : kind_(kind), text_(std::move(text)), whiles_(std::move(whiles)), what_(text_) {
  for (const std::string& each : whiles_) what_ += "\n  while " + each;
}
Error::~Error() = default;
Error::Error(const Error& other) = default;
Error& Error::operator=(const Error& other) = default;

void throw_public(const core::Error& error) {
  constexpr std::string_view kWhile = "while ";
  std::vector<std::string> whiles;
  for (const std::string& frame : error.frames())
    whiles.push_back(frame.starts_with(kWhile) ? frame.substr(kWhile.size()) : frame);
  throw Error(static_cast<Error::Kind>(error.kind()), error.text(), std::move(whiles));
}
static_assert(static_cast<int>(Error::Kind::Internal) == static_cast<int>(core::ErrorKind::Internal));
static_assert(static_cast<int>(Error::Kind::Unsupported) == static_cast<int>(core::ErrorKind::Unsupported));

void throw_internal(const char* what) { throw Error(Error::Kind::Internal, what); }

/// A binding in this tree may throw inner errors.
void throw_callers(const CallersException& exception) {
  try {
    std::rethrow_exception(exception.thrown);
  } catch (const core::Error& e) {
    throw_public(e);
  }
}

void throw_cancelled() { throw Error(Error::Kind::Cancelled, "the caller wants no more"); }

}  // namespace tonnx::v1
