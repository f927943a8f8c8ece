// variables.cpp - chooses names of variables; those that are free are used again.
#include "formats/python/naming/variables.h"

#include <fmt/format.h>

namespace tonnx::python {
namespace {

constexpr std::string_view kPool[] = {"x", "y", "z", "u", "v", "w"};
constexpr size_t kLongestSizeName = 24;

}  // namespace

void Variables::set(const Value* value, const std::string& name) {
  name_of_[value] = name;
  holder_[name] = value;
}

const std::string* Variables::find(const Value* value) const {
  const auto at = name_of_.find(value);
  if (at != name_of_.end()) return &at->second;
  return outer_ != nullptr ? outer_->find(value) : nullptr;
}

bool Variables::is_live_around(const std::string& name) const {
  return outer_ != nullptr && outer_->is_live(name, position_in_outer_ - 1);
}

bool Variables::is_live(const std::string& name, int position) const {
  if (reserved_.contains(name)) return true;
  if (const auto held = holder_.find(name); held != holder_.end() && liveness_.last_use(held->second) > position)
    return true;
  return is_live_around(name);
}

/// Up to which position of this block a name is needed.
int Variables::needed_until(const std::string& name) const {
  if (parameters_.contains(name) || reserved_.contains(name) || is_live_around(name)) return Numbers::kAlways;
  const auto held = holder_.find(name);
  return held == holder_.end() ? -1 : liveness_.last_use(held->second);
}

/// The numbers behind a word, of which the first is `first`.
Numbers& Variables::numbers_of(const std::string& word, int first) {
  if (const auto at = numbers_.find({word, first}); at != numbers_.end()) return at->second;
  Numbers* outer = nullptr;
  if (outer_ != nullptr) {
    outer = &outer_->numbers_of(word, first);
    outer->release(position_in_outer_ - 1);
  }
  return numbers_.try_emplace({word, first}, first, outer).first->second;
}

/// The word with the lowest number, from `first` on, that is not needed behind the position and not among `others`.
std::string Variables::numbered(const std::string& word, int first, int position, ChosenNames* others) {
  const auto name = [&](int number) { return fmt::format("{}{}", word, number); };
  const auto until = [&](int number) { return needed_until(name(number)); };
  const auto is_allowed = [&](int number) { return others == nullptr || !others->contains(name(number)); };
  const int number = numbers_of(word, first).find(position, others ? others->last_number(word) : 0, until, is_allowed);
  if (others != nullptr) others->last_number(word) = number;
  return name(number);
}

std::string Variables::free_name(int position) {
  for (const std::string_view name : kPool) {
    if (!parameters_.contains(name) && !is_live(std::string(name), position)) return std::string(name);
  }
  return numbered("x", 1, position);
}

std::string number_hint(const Value& value) {
  std::string hint = identifier(value.name);
  if (hint.empty() || hint.size() > kLongestSizeName || is_made_up(value.name) ||
      value.name.find('/') != std::string::npos)
    hint = "n";
  const std::string word = hint.substr(0, hint.find_last_not_of("_0123456789") + 1);
  const bool is_numbered = word.size() < hint.size();
  if (word == "ints") return word;
  if (word == "n" || ((word == "u" || word == "s") && is_numbered)) return "n";  // what has no name of its own
  return hint;
}

std::string Variables::number_name(const Value* value, int position) {
  const std::string hint = number_hint(*value);
  return needed_until(hint) <= position ? hint : numbered(hint, 2, position);
}

std::string Variables::choose(const Value* output, const Node& node) {
  const int position = liveness_.position_of(node);
  if (!liveness_.is_used(output)) return "_";
  if (is_number(*output)) return number_name(output, position);
  if (const auto word = words_.find(output); word != words_.end()) {
    const std::string name(word->second);
    if (needed_until(name) <= position) return name;
  }
  std::string reuse;
  liveness_.visit_variables(node, [&](const Value* value) {
    if (!reuse.empty() || is_number(*value) || words_.contains(value)) return;
    const std::string& name = *find(value);
    if (!is_word_of_argument(name) && !parameters_.contains(name) && !is_live(name, position)) reuse = name;
  });
  return reuse.empty() ? free_name(position) : reuse;
}

std::string Variables::choose_early(const Value& value, int position, ChosenNames& others) {
  std::string name = find_early(value, position, others);
  others.add(name);
  return name;
}

std::string Variables::find_early(const Value& value, int position, ChosenNames& others) {
  const auto is_free = [&](const std::string& name) { return needed_until(name) < position && !others.contains(name); };
  if (value.type.kind == Type::Kind::Tensor || value.type.kind == Type::Kind::Unknown) {
    for (const std::string_view name : kPool) {
      if (is_free(std::string(name))) return std::string(name);
    }
    return numbered("x", 1, position - 1, &others);
  }
  const char* word = value.type.kind == Type::Kind::Sequence ? "items" : value.type.kind == Type::Kind::Int ? "i" : "x";
  if (word[0] == 'x') return numbered(word, 1, position - 1, &others);
  return is_free(word) ? word : numbered(word, 2, position - 1, &others);
}

std::string Variables::choose_word(const std::string& word, int position, ChosenNames& others) {
  const bool is_free = needed_until(word) < position && !others.contains(word);
  std::string name = is_free ? word : numbered(word, 2, position - 1, &others);
  others.add(name);
  return name;
}

}  // namespace tonnx::python
