// verify.cpp - `tonnx verify`: only the Python package can do it, because it runs the models.
#include "base/error.h"
#include "cli/commands.h"

void tonnx::cli::add_verify(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("verify", "Run two models on the same inputs, and say where they differ (Python package)");
  command->prefix_command();  // the package reads the arguments itself, before they come here
  command->set_help_flag();
  command->callback([&run] {
    run = [] {
      fail_unsupported(
          "verify runs both models, which needs the Python package with PyTorch and ONNX Runtime: "
          "pip install tonnx[torch] onnxruntime, then python -m tonnx verify");
    };
  });
}
