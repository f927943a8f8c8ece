// run.cpp - the command line: parses it, runs one subcommand, and turns errors into text and exit codes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include "cli/commands.h"
#include "cli/error.h"

namespace {

// kNobodyReads is what a shell says of a program that a closed pipe ended
enum ExitCode { kBadInput = 1, kUnsupported = 2, kDiffers = 3, kInternal = 70, kNobodyReads = 141 };

/// Names out of files are in it: none of them reaches the terminal as anything but text.
void print_error(std::string_view text) {
  std::fprintf(stderr, "error: %s\n", tonnx::visible_text(text, /*keep_lines=*/true).c_str());
}

int report(const tonnx::Error& e) {
  print_error(e.what());
  switch (e.kind()) {
    case tonnx::Error::Kind::BadFile:
    case tonnx::Error::Kind::InvalidModel:
    case tonnx::Error::Kind::Cancelled: return kBadInput;
    case tonnx::Error::Kind::Unsupported: return kUnsupported;
    case tonnx::Error::Kind::Differs: return kDiffers;
    case tonnx::Error::Kind::Internal: break;
  }
  std::fprintf(stderr, "  internal error in tonnx: please report it\n");
  return kInternal;
}

/// What was printed did not arrive: nothing is wrong where the reader has what it wants, as `head` does.
int report_unwritten(int reason) {
  if (reason == EPIPE) return kNobodyReads;
  return report(tonnx::Error(tonnx::Error::Kind::BadFile,
                             fmt::format("cannot write the output: {}", std::generic_category().message(reason))));
}

void require_command(const CLI::App& app, std::string_view name) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    known.emplace_back(command->get_name());
  if (!name.starts_with('-') && std::find(known.begin(), known.end(), name) == known.end())
    tonnx::cli::fail_invalid("there is no command '{}'{}", name, tonnx::did_you_mean(name, known));
}

/// Says of the first option that the command does not have what may be meant; false where there is none.
bool refuse_extras(const CLI::App& app, const std::vector<std::string>& given) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  const CLI::App& command = commands.empty() ? app : *commands.front();
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& text : given) {
    const std::string name = text.substr(0, text.find('='));
    if (!name.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end()) continue;
    print_error(fmt::format("{} has no option '{}'{}", command.get_name(), name, tonnx::did_you_mean(name, known)));
    return true;
  }
  return false;
}

/// The arguments, with `-` for `_` in the names of options, and `convert` before options that only it has.
std::vector<std::string> arguments_of(int argc, const char* const* argv) {
  std::vector<std::string> result(argv, argv + argc);
  for (std::string& text : result) {
    if (!text.starts_with("--")) continue;
    std::replace(text.begin(), std::find(text.begin(), text.end(), '='), '_', '-');
  }
  const bool has_command = result.size() > 1 && !result[1].starts_with("--");
  const bool is_conversion = std::any_of(result.begin(), result.end(), [](const std::string& text) {
    return text == "--onnx-path" || text.starts_with("--onnx-path=");
  });
  if (!has_command && is_conversion) result.insert(result.begin() + 1, "convert");
  return result;
}

}  // namespace

int tonnx::cli::run(int argc, const char* const* argv, const JudgeMaker& make_judge) {
  const std::vector<std::string> given = arguments_of(argc, argv);
  std::vector<const char*> arguments;
  for (const std::string& text : given) arguments.push_back(text.c_str());
  CLI::App app("Carries neural networks between ONNX and PyTorch.", "tonnx");
  app.set_version_flag("--version", "tonnx " TONNX_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 bad input, 2 not supported, 3 outputs differ, 70 internal error.");
  Run command;
  add_convert(app, command, make_judge);
  add_simplify(app, command, make_judge);
  add_infer(app, command);
  add_verify(app, command);
  add_export(app, command);
  add_batch(app, command, make_judge);
  add_check(app, command);
  add_print(app, command);
  add_opt(app, command);
  add_ops(app, command);
  try {
    if (given.size() > 1) require_command(app, given[1]);
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    command();
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return report_unwritten(errno != 0 ? errno : EIO);
  } catch (const CLI::ExtrasError& e) {
    return refuse_extras(app, given) ? kBadInput : app.exit(e);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kBadInput;
  } catch (const tonnx::Error& e) {
    return report(e);
  } catch (const Differs& e) {
    print_error(e.what());
    return kDiffers;
  } catch (const std::system_error& e) {
    return report_unwritten(e.code().value());
  } catch (const std::bad_alloc&) {
    return report(tonnx::Error(tonnx::Error::Kind::BadFile, "out of memory"));
  } catch (const std::exception& e) {
    return report(tonnx::Error(tonnx::Error::Kind::Internal, e.what()));
  }
  return 0;
}
