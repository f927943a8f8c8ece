// main.cpp - the program.
#include <cstdlib>  // says which C library it is

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "cli/commands.h"
#include "cli/process.h"

namespace {

/// Memory that was given back is soon asked for again: it stays with the process, and comes in larger parts.
void keep_memory() {
#if defined(__GLIBC__)
  constexpr int kPart = 1 << 20, kLargest = 1 << 24, kSmall = 160;
  mallopt(M_TOP_PAD, kPart);
  mallopt(M_TRIM_THRESHOLD, kLargest);
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_MXFAST, kSmall);  // nodes and names, as they are
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_memory();
  tonnx::cli::guard_signals();
  tonnx::cli::expect_end();
  return tonnx::cli::run(argc, argv);
}
