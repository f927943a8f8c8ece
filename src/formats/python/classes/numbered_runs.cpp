// numbered_runs.cpp - finds items whose numbers follow from their places.
#include "formats/python/classes/numbered_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/join.h"
#include "formats/python/classes/number_tokens.h"
#include "modules/places.h"

namespace tonnx::python {
namespace {

constexpr size_t kFewestGrowing = 4;  // any two numbers, and many three, seem to follow a rule
constexpr size_t kFewestChosen = 3;   // of items that differ in one number
constexpr size_t kLongChosen = 100;   // so many characters they have, or are written one by one

/// By how much a number grows from one item to the next; nothing where it is another text.
std::optional<int64_t> growth(const std::string& from, const std::string& to) {
  if (from == to) return 0;
  if (!is_index(from) || !is_index(to)) return std::nullopt;
  return std::stoll(to) - std::stoll(from);
}

/// `64 + 32 * i`
std::string growing_text(const std::string& variable, int64_t first, int64_t step) {
  if (step == 1) return first == 0 ? variable : fmt::format("{} + {}", variable, first);
  const int64_t size = step < 0 ? -step : step;
  const std::string part = size == 1 ? variable : fmt::format("{} * {}", size, variable);
  if (first == 0 && step > 0) return part;
  return fmt::format("{} {} {}", first, step < 0 ? "-" : "+", part);
}

/// The sum, in brackets where what stands around it would take a part of it: `(j + 3) * i`.
std::string as_operand(const std::string& sum, const std::string& before, const std::string& behind) {
  const bool is_bare = before.empty() || before.ends_with('(') || before.ends_with('[') || before.ends_with(", ") ||
                       (before.ends_with('=') && !before.ends_with("=="));
  const bool is_left = behind.empty() || std::string_view(")],").find(behind[0]) != std::string_view::npos ||
                       behind.starts_with(" + ") || behind.starts_with(" - ") || behind.starts_with(" for ");
  return (is_bare && is_left) || sum.find(' ') == std::string::npos ? sum : fmt::format("({})", sum);
}

/// The first of the variables over which nothing inside of the item loops.
std::string variable_of(const std::string& item, std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (item.find(fmt::format(" for {} in ", variable)) == std::string::npos) return variable;
  }
  return "";
}

class RunFinder {
 public:
  RunFinder(const std::vector<std::string>& names, const std::vector<std::string>& items, size_t fewest)
      : names_(names), items_(items), fewest_(fewest) {
    const size_t least = names.empty() ? std::min(fewest, kFewestChosen) : fewest;
    if (items.size() < least) return;
    for (const std::string& item : items) texts_.push_back(split_numbers(item));
  }

  std::vector<Run> run() const {
    std::vector<Run> runs;
    if (texts_.empty()) {
      for (size_t i = 0; i < items_.size(); ++i) runs.push_back({.first = i, .item = items_[i]});
      return runs;
    }
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
    const bool is_same = !steps || std::all_of(steps->begin(), steps->end(), [](int64_t step) { return step == 0; });
    if (run.count < (is_same ? fewest_ : std::max(fewest_, kFewestGrowing))) {
      run.count = 1;
      return chosen(first).value_or(run);
    }
    const int64_t number = names_.empty() ? 0 : number_of(names_[first]);
    const std::string variable = variable_of(run.item, {"i", "j", "k"});
    if (variable.empty()) return {.first = first, .item = items_[first]};
    const int64_t start = is_same ? number : 0;
    const auto end = start + static_cast<int64_t>(run.count);
    run.range = start == 0 ? fmt::format("range({})", end) : fmt::format("range({}, {})", start, end);
    if (!names_.empty())
      run.name = fmt::format("f\"{}{{{}}}\"", stem_of(names_[first]), growing_text(variable, number - start, 1));
    if (!is_same || !names_.empty()) run.variable = variable;
    if (!is_same) {
      const NumberedText& text = texts_[first];
      run.item = text.texts[0];
      for (size_t i = 0; i < text.numbers.size(); ++i) {
        const int64_t step = (*steps)[i];
        run.item += step == 0 ? text.numbers[i]
                              : as_operand(growing_text(variable, std::stoll(text.numbers[i]), step), text.texts[i],
                                           text.texts[i + 1]);
        run.item += text.texts[i + 1];
      }
    }
    return run;
  }

  /// `Layer(n, 64) for n in (64, 128, 256)`: items without names that are long, and differ in one number.
  std::optional<Run> chosen(size_t first) const {
    if (!names_.empty() || first + 1 >= items_.size() || texts_[first].texts != texts_[first + 1].texts)
      return std::nullopt;
    const NumberedText& text = texts_[first];
    std::vector<bool> is_chosen;
    for (size_t i = 0; i < text.numbers.size(); ++i)
      is_chosen.push_back(text.numbers[i] != texts_[first + 1].numbers[i]);
    std::vector<std::string> values;
    size_t length = 0;
    for (size_t item = first; item < items_.size(); ++item) {
      const auto value = chosen_value(first, item, is_chosen);
      if (!value) break;
      values.push_back(*value);
      length += items_[item].size();
    }
    if (values.size() < kFewestChosen || length < kLongChosen) return std::nullopt;
    const std::string variable = variable_of(items_[first], {"n", "m"});
    if (variable.empty()) return std::nullopt;
    Run run{.first = first, .count = values.size(), .item = text.texts[0], .variable = variable};
    run.range = fmt::format("({})", joined(values));
    for (size_t i = 0; i < text.numbers.size(); ++i)
      run.item += (is_chosen[i] ? run.variable : text.numbers[i]) + text.texts[i + 1];
    return run;
  }

  /// The one number that stands in the chosen places of an item, which else is as the first one.
  std::optional<std::string> chosen_value(size_t first, size_t item, const std::vector<bool>& is_chosen) const {
    if (texts_[item].texts != texts_[first].texts) return std::nullopt;
    std::optional<std::string> value;
    for (size_t i = 0; i < is_chosen.size(); ++i) {
      const std::string& number = texts_[item].numbers[i];
      if (!is_chosen[i] && number != texts_[first].numbers[i]) return std::nullopt;
      if (is_chosen[i] && (!is_index(number) || value.value_or(number) != number)) return std::nullopt;
      if (is_chosen[i]) value = number;
    }
    return value;
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
