// commands.h - the subcommands; each sets itself up and leaves behind what is to be run.
#pragma once
#include <CLI/App.hpp>
#include <functional>

namespace tonnx::cli {

/// The whole command line; returns the exit code.
int run(int argc, const char* const* argv);

using Run = std::function<void()>;

void add_convert(CLI::App& app, Run& run);
void add_check(CLI::App& app, Run& run);
void add_print(CLI::App& app, Run& run);
void add_ops(CLI::App& app, Run& run);

}  // namespace tonnx::cli
