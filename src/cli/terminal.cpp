// terminal.cpp - sizes, times and bars for a person at a terminal.
#include "cli/terminal.h"

#include <fmt/format.h>
#include <tonnx/tools.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

namespace tonnx::cli {
namespace {

namespace fs = std::filesystem;

std::string size_text(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e3) return fmt::format("{} B", bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  return value < 1e9 ? fmt::format("{:.1f} MB", value / 1e6) : fmt::format("{:.2f} GB", value / 1e9);
}

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1e3) : fmt::format("{:.1f} s", seconds);
}

/// The target, and what may lie beside it.
std::vector<std::string> files_of(const std::string& target) {
  const auto format = find_format(target);
  if (format == Format::Python) return {target, fs::path(target).replace_extension(".safetensors").string()};
  if (format == Format::Onnx) return {target, target + ".data"};
  return {target};
}

}  // namespace

bool has_reader() { return isatty(STDOUT_FILENO) != 0; }

void Written::say(const std::string& target) const {
  if (is_quiet_ || !has_reader()) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
  const fs::file_time_type before = std::chrono::file_clock::from_sys(
      std::chrono::system_clock::time_point(std::chrono::system_clock::duration(wall_)));
  std::string text;
  for (const std::string& file : files_of(target)) {
    std::error_code error;
    const uint64_t size = fs::file_size(file, error);
    if (error) continue;
    const bool is_old = file != target && fs::last_write_time(file, error) + std::chrono::seconds(1) < before;
    if (!is_old) text += fmt::format("{}{} ({})", text.empty() ? "" : " and ", shown(file), size_text(size));
  }
  fmt::print("wrote {} in {}\n", text, time_text(took.count()));
}

void WeightsBar::show(uint64_t done, uint64_t total) {
  constexpr std::chrono::seconds kWorthShowing{1};
  if (isatty(STDERR_FILENO) == 0 || total == 0) return;
  if (!is_drawn_ && (done == total || std::chrono::steady_clock::now() - start_ < kWorthShowing)) return;
  is_drawn_ = true;
  constexpr int kWidth = 40;
  const int filled = static_cast<int>(static_cast<double>(done) / static_cast<double>(total) * kWidth);
  std::fprintf(stderr, "\r[%s%s] %s of %s ", std::string(filled, '#').c_str(),
               std::string(kWidth - filled, ' ').c_str(), size_text(done).c_str(), size_text(total).c_str());
  if (done == total) std::fputs("\r\033[K", stderr);
}

}  // namespace tonnx::cli
