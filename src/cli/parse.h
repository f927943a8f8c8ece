// parse.h - values that options of several subcommands are given as text.
#pragma once
#include <tonnx/model.h>

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tonnx::cli {

/// `name:1,3,224,224` for each input; -1 or ? leaves a dimension as it is. A name may have colons itself, and may be
/// missing where the model, if there is one, has a single input.
InputShapes parse_shapes(const std::vector<std::string>& texts, const Model* model = nullptr);
/// Those of `more` too, where the first has no shape for the input.
void add_missing(InputShapes& shapes, const InputShapes& more);

/// `name:int64` for each input.
std::vector<std::pair<std::string, DType>> parse_types(const std::vector<std::string>& texts);

/// Adds `--limit NAME=VALUE`, which may be given several times.
void add_limit_option(CLI::App* command, std::vector<std::string>& into);
Limits parse_limits(const std::vector<std::string>& texts);

}  // namespace tonnx::cli
