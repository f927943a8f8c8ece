// run.cpp - the command line: parses it, runs one subcommand, and turns errors into text and exit codes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "base/error.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "cli/commands.h"

namespace {

enum ExitCode { kBadInput = 1, kUnsupported = 2, kDiffers = 3, kInternal = 70 };

/// Names out of files are in it: none of them reaches the terminal as anything but text.
void print_error(std::string_view text) {
  std::fprintf(stderr, "error: %s\n", tonnx::visible_text(text, /*keep_lines=*/true).c_str());
}

int report(const tonnx::Error& e) {
  print_error(e.what());
  switch (e.kind()) {
    case tonnx::ErrorKind::BadFile:
    case tonnx::ErrorKind::InvalidModel: return kBadInput;
    case tonnx::ErrorKind::Unsupported: return kUnsupported;
    case tonnx::ErrorKind::Internal: break;
  }
  std::fprintf(stderr, "  this is a mistake of tonnx, not of the model\n");
  return kInternal;
}

void require_command(const CLI::App& app, std::string_view name) {
  tonnx::Names known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    known.emplace_back(command->get_name());
  if (!name.starts_with('-') && std::find(known.begin(), known.end(), name) == known.end())
    tonnx::fail_invalid("there is no command '{}'; there are: {}", name, tonnx::nearest_list(name, known));
}

}  // namespace

int tonnx::cli::run(int argc, const char* const* argv, const JudgeMaker& make_judge) {
  CLI::App app("Carries neural networks between ONNX and PyTorch.", "tonnx");
  app.set_version_flag("--version", "tonnx " TONNX_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 bad input, 2 not supported, 3 outputs differ, 70 internal error.");
  Run command;
  add_convert(app, command);
  add_simplify(app, command, make_judge);
  add_infer(app, command);
  add_verify(app, command);
  add_export(app, command);
  add_batch(app, command, make_judge);
  add_check(app, command);
  add_print(app, command);
  add_ops(app, command);
  try {
    if (argc > 1) require_command(app, argv[1]);
    app.parse(argc, argv);
    command();
    std::fflush(stdout);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kBadInput;
  } catch (const tonnx::Error& e) {
    return report(e);
  } catch (const Differs& e) {
    print_error(e.what());
    return kDiffers;
  } catch (const std::bad_alloc&) {
    return report(tonnx::Error(tonnx::ErrorKind::BadFile, "out of memory"));
  } catch (const std::exception& e) {
    return report(tonnx::Error(tonnx::ErrorKind::Internal, e.what()));
  }
  return 0;
}
