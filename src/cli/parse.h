// parse.h - values that options of several subcommands are given as text.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tonnx {
struct Model;
}

namespace tonnx::cli {

/// `name:1,3,224,224`; -1 or ? leaves a dimension as it is. A name may have colons itself, and may be missing where the
/// model, if there is one, has a single input.
std::pair<std::string, std::vector<int64_t>> parse_shape(const std::string& text, const Model* model = nullptr);

}  // namespace tonnx::cli
