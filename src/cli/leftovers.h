// leftovers.h - what a command made, and what nobody takes apart where the process ends right after it.
#pragma once
#include <memory>

namespace tonnx::cli {

/// From now on the process ends with the command that it runs.
void expect_end();
/// Takes what a command needs no more: it goes away at once, or with the process where that ends anyway.
void leave(std::shared_ptr<void> made);

}  // namespace tonnx::cli
