// process.h - the command line as a process of its own: how it ends, and what its signals do.
#pragma once
#include <memory>

namespace tonnx::cli {

/// For a process that is ours: temporary files go before a signal ends it, a limit on the size of files is an error of
/// the write, and a file that is cut short while it is read is an error in one line. Signals that are ignored stay so.
void guard_signals();

/// From now on the process ends with the command that it runs.
void expect_end();
/// Takes what a command needs no more: it goes away at once, or with the process where that ends anyway.
void leave(std::shared_ptr<void> made);

}  // namespace tonnx::cli
