// one_pass.h - one pass of the table at a time, by its name, as `tonnx opt` and the tests of the passes run it.
#pragma once
#include <string_view>

#include "ir/model.h"
#include "passes/pass_table.h"

namespace tonnx {

/// Throws InvalidModel, with the most similar names, where there is none.
const Pass& find_pass(std::string_view name);

/// Runs a pass of aten once, and says whether it changed anything.
bool run_aten_pass(Graph& graph, const Pass& pass);

/// Whether a graph that somebody wrote as text is one of aten.
bool is_aten(const Graph& graph);
/// Throws InvalidModel where such a graph is not what the passes of aten may rely on.
void check_written_code(const Graph& graph);

}  // namespace tonnx
