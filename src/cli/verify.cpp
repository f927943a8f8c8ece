// verify.cpp - `tonnx verify` and `tonnx export`: only the Python package can do them, because they run models.
#include "cli/commands.h"
#include "cli/error.h"

namespace tonnx::cli {
namespace {

void add_for_package(CLI::App& app, Run& run, const char* name, const char* help, const char* refusal) {
  CLI::App* command = app.add_subcommand(name, help);
  command->prefix_command();  // the package reads the arguments itself, before they come here
  command->set_help_flag();
  command->callback([&run, refusal] { run = [refusal] { throw Error(Error::Kind::Unsupported, refusal); }; });
}

}  // namespace

void add_verify(CLI::App& app, Run& run) {
  add_for_package(app, run, "verify", "Run two models on the same inputs, and say where they differ (Python package)",
                  "verify runs both models, which needs the Python package with PyTorch and ONNX Runtime: "
                  "pip install tonnx[torch] onnxruntime, then python -m tonnx verify");
}

void add_export(CLI::App& app, Run& run) {
  add_for_package(app, run, "export", "Write a model of PyTorch code, with its weights, as ONNX (Python package)",
                  "export runs the model's code, which needs the Python package with PyTorch: "
                  "pip install tonnx[torch], then python -m tonnx export");
}

}  // namespace tonnx::cli
