// judge.h - what compares two model files for a conversion.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace tonnx {

/// What a judge's answer begins with where it could not run the models: nothing is known then, and nothing is wrong.
inline constexpr std::string_view kNotJudged = "not judged: ";

/// Compares the outputs of two models, given as files, on inputs of its own. Empty where they agree, otherwise what
/// differs, or why that is not judged.
using Judge = std::function<std::string(const std::string& source, const std::string& result)>;

}  // namespace tonnx
