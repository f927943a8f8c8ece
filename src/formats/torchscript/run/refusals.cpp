// refusals.cpp - one error of all that was refused.
#include "formats/torchscript/run/refusals.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace tonnx::torchscript {
namespace {

constexpr size_t kMostRefusals = 10000;
constexpr size_t kShownPlaces = 3;

}  // namespace

void Refusals::forget_since(size_t mark) { found_.resize(std::min(mark, found_.size())); }

void Refusals::add(std::string text, const std::string& file, uint32_t line) {
  found_.push_back({std::move(text), {file, line}});
  if (found_.size() >= kMostRefusals) fail();
}

void Refusals::fail() const {
  std::vector<std::string> order;  // in that of the code that ran
  std::map<std::string, std::vector<Place>> places;
  for (const Refusal& each : found_) {
    std::vector<Place>& known = places[each.text];
    if (known.empty()) order.push_back(each.text);
    if (std::find(known.begin(), known.end(), each.place) == known.end()) known.push_back(each.place);
  }
  if (order.size() == 1 && places.begin()->second.size() == 1) {
    const Place& place = places.begin()->second.front();
    Error error(ErrorKind::Unsupported, order.front());
    error.add_frame(error_text("reading {}, line {}", place.file, place.line));
    throw error;
  }
  std::string text = "these parts of the code cannot be read:";
  for (const std::string& each : order) {
    const std::vector<Place>& at = places[each];
    std::vector<std::string> shown;
    for (size_t i = 0; i < std::min(at.size(), kShownPlaces); ++i)
      shown.push_back(error_text("{}, line {}", at[i].file, at[i].line));
    const std::string times = at.size() == 1 ? "" : fmt::format(" ({} times)", at.size());
    text += fmt::format("\n  {}{}: {}{}", each, times, fmt::join(shown, "; "), at.size() > kShownPlaces ? " ..." : "");
  }
  throw Error(ErrorKind::Unsupported, text);
}

}  // namespace tonnx::torchscript
