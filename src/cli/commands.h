// commands.h - the subcommands; each sets itself up and leaves behind what is to be run.
#pragma once
#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonnx::cli {

/// How two models are compared.
struct JudgeOptions {
  int64_t times = 0;                // random inputs
  std::vector<std::string> shapes;  // of inputs, as name:1,3
  std::string data;                 // a file with the inputs
  double relative = 1e-4, absolute = 1e-5;
  std::string library;                 // of operators for ONNX Runtime
  std::vector<std::string> allow_ops;  // operators of other libraries that a .pt2 may call
  bool outputs_only = false;           // what no output shows is not looked for, and a judge without a runtime says so
};
/// Compares two files, and says what differs; empty where nothing does. Only the Python package can make one.
using CompareFiles = std::function<std::string(const std::string& source, const std::string& result)>;
using JudgeMaker = std::function<CompareFiles(const JudgeOptions&)>;

/// Models do not give the same: exit code 3.
class Differs : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The whole command line; returns the exit code.
int run(int argc, const char* const* argv, const JudgeMaker& make_judge = {});

using Run = std::function<void()>;

void add_convert(CLI::App& app, Run& run, const JudgeMaker& make_judge);
void add_check(CLI::App& app, Run& run);
void add_print(CLI::App& app, Run& run);
void add_simplify(CLI::App& app, Run& run, const JudgeMaker& make_judge);
void add_infer(CLI::App& app, Run& run);
void add_verify(CLI::App& app, Run& run);
void add_export(CLI::App& app, Run& run);
void add_batch(CLI::App& app, Run& run, const JudgeMaker& make_judge);
void add_opt(CLI::App& app, Run& run);
void add_ops(CLI::App& app, Run& run);

}  // namespace tonnx::cli
