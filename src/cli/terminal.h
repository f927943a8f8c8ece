// terminal.h - what is said to a person at a terminal, and to nobody where the output goes elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace tonnx::cli {

/// Whether somebody reads the output.
bool has_reader();

/// Says what was written, how large it is, and how long it took; the clock runs from where it is made.
class Written {
 public:
  explicit Written(bool is_quiet) : is_quiet_(is_quiet) {}
  void say(const std::string& target) const;

 private:
  bool is_quiet_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t wall_ = std::chrono::system_clock::now().time_since_epoch().count();
};

/// A bar in the last line of the terminal, once the work has taken a second.
class WeightsBar {
 public:
  void show(uint64_t done, uint64_t total);

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool is_drawn_ = false;
};

}  // namespace tonnx::cli
