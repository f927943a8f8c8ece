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

void Error::add_frame(std::string frame) {
  frames_.push_back("while " + frame);
  what_ += "\n  " + frames_.back();
}

void ensure(bool condition, const char* what) {
  if (!condition) throw Error(ErrorKind::Internal, what);
}

}  // namespace tonnx
