// main.cpp - the program.
#include "cli/commands.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  tonnx::cli::guard_signals();
  return tonnx::cli::run(argc, argv);
}
