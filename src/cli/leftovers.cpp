// leftovers.cpp - keeps what a command made until the process ends.
#include "cli/leftovers.h"

#include <utility>
#include <vector>

namespace tonnx::cli {
namespace {

std::vector<std::shared_ptr<void>>* leftovers = nullptr;

}  // namespace

void expect_end() { leftovers = new std::vector<std::shared_ptr<void>>(); }

void leave(std::shared_ptr<void> made) {
  if (leftovers != nullptr) leftovers->push_back(std::move(made));
}

}  // namespace tonnx::cli
