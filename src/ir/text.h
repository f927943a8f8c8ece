// text.h - the text form of graphs: what `tonnx print` shows, and what tests are written in.
#pragma once
#include <string>
#include <string_view>

#include "ir/model.h"

namespace tonnx {

struct PrintOptions {
  int64_t max_elements = 16;  // a constant with more is printed with its size alone, and cannot be parsed back
  bool notes = true;          // documentation and metadata of nodes
};

std::string print(const Model& model, const PrintOptions& options = {});
std::string print(const Graph& graph, const PrintOptions& options = {});

/// The model that `print` gives this text for. Throws InvalidModel with line and column.
Model parse_model(std::string_view text);

}  // namespace tonnx
