// leftovers.cpp - keeps what a command made until the process ends.
#include <utility>
#include <vector>

#include "cli/process.h"

namespace tonnx::cli {
namespace {

std::vector<std::shared_ptr<void>>* leftovers = nullptr;

}  // namespace

void expect_end() { leftovers = new std::vector<std::shared_ptr<void>>(); }

void leave(std::shared_ptr<void> made) {
  if (leftovers != nullptr) leftovers->push_back(std::move(made));
}

}  // namespace tonnx::cli
