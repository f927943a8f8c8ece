// option_text.h - values that options of several kinds are given as text.
#pragma once
#include <cstdint>
#include <string>

#include "convert/pipeline.h"

namespace tonnx {

/// `x:0=batch:1..64,2=height`: the sizes of axes 0 and 2 of the input x vary, and are called batch and height. The
/// range may be left out, and so may either end of it. `auto`: the first sizes of all inputs, as batch. Throws
/// InvalidModel.
std::vector<DynamicDim> parse_dynamic(const std::string& text);
/// `batch:1..64`, into the name and the range.
void parse_dynamic_size(std::string_view text, DynamicDim& dim);

/// `memory=1G`, into the limit of that name. Throws InvalidModel.
void parse_limit(const std::string& text, Limits& limits);

/// `1MB`, `100KB`, `1.5GB`, `4096`: powers of 1024. Throws InvalidModel.
int64_t parse_bytes(const std::string& text);

}  // namespace tonnx
