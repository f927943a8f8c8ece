// prove.h - compares a model with open sizes with what it was made of: at its own sizes, and run sample by sample.
#pragma once
#include <string>

#include "convert/judge.h"
#include "convert/opening/request.h"

namespace tonnx {

/// Computes both models, where they are small enough. Empty where they agree, otherwise what differs, or why that is
/// not judged (`kNotJudged`).
std::string compare_opened(const Model& fixed, const Model& opened, const OpeningRequest& request,
                           const FixedTypes& types);

}  // namespace tonnx
