// numbered_runs.cpp - finds items whose numbers follow from their places.
#include "formats/python/numbered_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "formats/modules/places.h"
#include "formats/python/number_tokens.h"

namespace tonnx::python {
namespace {

constexpr size_t kFewestGrowing = 4;  // any two numbers, and many three, seem to follow a rule

/// By how much a number grows from one item to the next; nothing where it is another text.
std::optional<int64_t> growth(const std::string& from, const std::string& to) {
  if (from == to) return 0;
  if (!is_index(from) || !is_index(to)) return std::nullopt;
  return std::stoll(to) - std::stoll(from);
}

/// `64 + 32 * i`
std::string growing_text(int64_t first, int64_t step) {
  if (step == 1) return first == 0 ? "i" : fmt::format("i + {}", first);
  const int64_t size = step < 0 ? -step : step;
  const std::string part = size == 1 ? "i" : fmt::format("{} * i", size);
  if (first == 0 && step > 0) return part;
  return fmt::format("{} {} {}", first, step < 0 ? "-" : "+", part);
}

class RunFinder {
 public:
  RunFinder(const std::vector<std::string>& names, const std::vector<std::string>& items, size_t fewest)
      : names_(names), items_(items), fewest_(fewest) {
    for (const std::string& item : items) texts_.push_back(split_numbers(item));
  }

  std::vector<Run> run() const {
    std::vector<Run> runs;
    for (size_t first = 0; first < items_.size(); first += runs.back().count) runs.push_back(longest(first));
    return runs;
  }

 private:
  /// Whether two items differ in their numbers alone, which grow as given; gives that growth where it is not known yet.
  bool follows(size_t item, std::optional<std::vector<int64_t>>& steps) const {
    const NumberedText &a = texts_[item], &b = texts_[item + 1];
    if (a.texts != b.texts || !names_follow(item)) return false;
    std::vector<int64_t> found;
    for (size_t i = 0; i < a.numbers.size(); ++i) {
      const auto step = growth(a.numbers[i], b.numbers[i]);
      if (!step) return false;
      found.push_back(*step);
    }
    if (!steps) steps = found;
    return *steps == found;
  }

  bool names_follow(size_t item) const {
    if (names_.empty()) return true;
    const int number = number_of(names_[item]);
    return stem_of(names_[item]) == stem_of(names_[item + 1]) && number >= 0 &&
           number_of(names_[item + 1]) == number + 1;
  }

  Run longest(size_t first) const {
    std::optional<std::vector<int64_t>> steps;
    size_t last = first;
    while (last + 1 < items_.size() && follows(last, steps)) ++last;
    Run run{.first = first, .count = last - first + 1, .item = items_[first]};
    run.is_same = !steps || std::all_of(steps->begin(), steps->end(), [](int64_t step) { return step == 0; });
    if (run.count < (run.is_same ? fewest_ : std::max(fewest_, kFewestGrowing))) {
      run.count = 1;
      return run;
    }
    const int64_t number = names_.empty() ? 0 : number_of(names_[first]);
    const int64_t start = run.is_same ? number : 0;
    const auto end = start + static_cast<int64_t>(run.count);
    run.range = start == 0 ? fmt::format("range({})", end) : fmt::format("range({}, {})", start, end);
    if (!names_.empty())
      run.name = fmt::format("f\"{}{{{}}}\"", stem_of(names_[first]), growing_text(number - start, 1));
    if (!run.is_same) {
      const NumberedText& text = texts_[first];
      run.item = text.texts[0];
      for (size_t i = 0; i < text.numbers.size(); ++i) {
        const int64_t step = (*steps)[i];
        run.item += step == 0 ? text.numbers[i] : growing_text(std::stoll(text.numbers[i]), step);
        run.item += text.texts[i + 1];
      }
    }
    return run;
  }

  const std::vector<std::string>&names_, &items_;
  size_t fewest_;
  std::vector<NumberedText> texts_;
};

}  // namespace

std::vector<Run> find_runs(const std::vector<std::string>& names, const std::vector<std::string>& items,
                           size_t fewest) {
  return RunFinder(names, items, fewest).run();
}

}  // namespace tonnx::python
