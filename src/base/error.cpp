// error.cpp - the text of an Error with its context.
#include "base/error.h"

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
  std::string result;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return text.size() > kLongest ? result + "..." : result;
}

void Error::add_frame(std::string frame) {
  frames_.push_back("while " + shown(frame));
  what_ += "\n  " + frames_.back();
}

void ensure(bool condition, const char* what) {
  if (!condition) throw Error(ErrorKind::Internal, what);
}

}  // namespace tonnx
