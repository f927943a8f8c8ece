// signals.cpp - handlers that only make calls which a signal handler may make.
#include <tonnx/tools.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

#include "cli/process.h"

namespace tonnx::cli {
namespace {

constexpr int kBadInput = 1;

/// The signal then does what it does without us, so that the caller sees which one it was.
void remove_and_end(int signal) {
  remove_temporaries();
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // comes when this handler returns
}

void tell_and_end(int) {
  remove_temporaries();
  constexpr std::string_view kText = "error: a file became shorter while it was read, or its disk failed\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kBadInput);
}

void set(int signal, void (*handler)(int)) {
  struct sigaction before {
  }, action{};
  if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  action.sa_handler = handler;
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void guard_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) set(signal, remove_and_end);
  set(SIGBUS, tell_and_end);
  set(SIGXFSZ, SIG_IGN);
}

}  // namespace tonnx::cli
