// limit_error.h - the error of a limit: whoever goes on behind other errors ends at this one.
#pragma once
#include "base/error.h"

namespace tonnx {

class LimitError : public Error {
 public:
  using Error::Error;
};

}  // namespace tonnx
