// signals.h - how the program ends where a signal ends it: nothing half-done stays behind.
#pragma once

namespace tonnx::cli {

/// For a process that is ours: temporary files go before a signal ends it, a limit on the size of files is an error of
/// the write, and a file that is cut short while it is read is an error in one line. Signals that are ignored stay so.
void guard_signals();

}  // namespace tonnx::cli
