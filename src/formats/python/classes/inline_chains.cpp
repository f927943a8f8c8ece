// inline_chains.cpp - finds the one place at which a class is made, and puts what its constructor says there.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <unordered_map>

#include "formats/python/classes/drafts.h"
#include "formats/python/classes/sequences.h"
#include "formats/python/layout.h"
#include "modules/places.h"

namespace tonnx::python {
namespace {

constexpr size_t kBodyIndent = 8;  // of the statements of a constructor
constexpr size_t kMostLines = 8;   // of a statement that has become the class
constexpr size_t kLongest = 120 * kMostLines;

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// One call of a class's constructor.
struct Place {
  size_t owner = 0, member = 0;
  size_t start = 0, end = 0;  // within the statement
  std::string arguments;
};

/// Where each class is made, and how often.
struct Made {
  Place first;
  size_t count = 0;
};
using Places = std::unordered_map<std::string, Made>;

void note_places(const std::vector<ClassText>& classes, size_t owner, size_t member, Places& places) {
  const std::string& text = classes[owner].members[member].text;
  for (size_t open = text.find('('); open != std::string::npos; open = text.find('(', open + 1)) {
    size_t start = open;
    while (start > 0 && in_word(text[start - 1])) --start;
    if (start == open || (start > 0 && text[start - 1] == '.')) continue;
    const auto at = places.find(text.substr(start, open - start));
    const size_t close = at == places.end() ? std::string::npos : matching_bracket(text, open);
    if (close == std::string::npos) continue;
    at->second.first = {owner, member, start, close + 1, text.substr(open + 1, close - open - 1)};
    ++at->second.count;
  }
}

using Given = std::map<std::string, std::string>;

/// What each parameter is at the place; nothing where an argument is more than a number or a name.
std::optional<Given> arguments_at(const ClassText& text, const Place& place) {
  Given given;
  for (const std::string& parameter : text.parameters) {
    const size_t equals = parameter.find('=');
    given[parameter.substr(0, equals)] = equals == std::string::npos ? "" : parameter.substr(equals + 1);
  }
  size_t position = 0;
  if (!place.arguments.empty()) {
    for (const std::string& argument : split_arguments(place.arguments)) {
      const size_t equals = argument.find('=');
      if (equals == std::string::npos && position >= text.parameters.size()) return std::nullopt;
      given[equals == std::string::npos ? text.parameters[position++] : argument.substr(0, equals)] =
          equals == std::string::npos ? argument : argument.substr(equals + 1);
    }
  }
  const bool are_plain = std::all_of(given.begin(), given.end(), [](const auto& each) {
    return !each.second.empty() && std::all_of(each.second.begin(), each.second.end(), in_word);
  });
  return are_plain && given.size() == text.parameters.size() ? std::optional(given) : std::nullopt;
}

/// `4 * 32` and `64 // 2` as numbers.
std::string computed(std::string text) {
  for (const std::string_view sign : {" * ", " // "}) {
    for (size_t at = 0; (at = text.find(sign, at)) != std::string::npos;) {
      size_t start = at, end = at + sign.size();
      while (start > 0 && in_word(text[start - 1])) --start;
      while (end < text.size() && in_word(text[end])) ++end;
      const std::string a = text.substr(start, at - start), b = text.substr(at + sign.size(), end - at - sign.size());
      at += sign.size();
      if (!is_index(a) || !is_index(b) || a.size() + b.size() > 16 || b == "0") continue;
      const int64_t x = std::stoll(a), y = std::stoll(b);
      text.replace(start, end - start, std::to_string(sign == " * " ? x * y : x / y));
      at = start;
    }
  }
  return text;
}

/// The text with arguments in place of parameters. Words before `=` are names of others' parameters.
std::string with_arguments(const std::string& text, const Given& given) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      const size_t end = std::min(text.find('"', at + 1), text.size() - 1);
      result.append(text, at, end + 1 - at);
      at = end + 1;
      continue;
    }
    if (!in_word(text[at])) {
      result += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    const std::string word = text.substr(at, end - at);
    const auto found = given.find(word);
    const bool is_name = (at > 0 && text[at - 1] == '.') || (end < text.size() && text[end] == '=');
    result += found == given.end() || is_name ? word : found->second;
    at = end;
  }
  return computed(std::move(result));
}

size_t lines_of(const std::string& text, int level, const Standards& standards) {
  const std::string laid =
      lay_out(without_standards(text, standards), kBodyIndent + 4 * static_cast<size_t>(std::max(level, 0)));
  return static_cast<size_t>(std::count(laid.begin(), laid.end(), '\n'));
}

/// A class has no forward where layers without weights among its members are shorter.
void make_sequential(ClassText& text) {
  if (text.chain.size() < 2 || !text.has_forward || text.chain.size() < text.members.size()) return;
  const bool are_attributes =
      std::all_of(text.chain.begin(), text.chain.end(), [](const ChainItem& item) { return is_attribute(item.name); });
  const size_t added = text.chain.size() - text.members.size();
  if (!are_attributes || added >= text.forward.statements.size() + 2) return;  // its head, and what is blank
  text.members.clear();
  for (const ChainItem& item : text.chain)
    text.members.push_back({0, fmt::format("self.{} = {}", item.name, item.text)});
  text.has_forward = false;
  text.is_chain = true;
}

}  // namespace

void inline_chains(std::vector<ClassText>& classes, const Standards& standards) {
  Places places;
  for (const ClassText& text : classes) {
    if (!text.chain.empty()) places.emplace(text.name, Made());
  }
  if (places.empty()) return;
  for (size_t i = 0; i < classes.size(); ++i) {
    for (size_t k = 0; k < classes[i].members.size(); ++k) note_places(classes, i, k, places);
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    ClassText& text = classes[i];
    const auto made = places.find(text.name);
    if (made == places.end() || made->second.count != 1) continue;
    const auto& [owner_of, member_of] = std::pair(made->second.first.owner, made->second.first.member);
    if (classes[owner_of].members[member_of].text.size() > kLongest) continue;
    // what was put into the same statement has moved what is behind it
    Places anew{{text.name, Made()}};
    note_places(classes, owner_of, member_of, anew);
    const Place& place = anew.at(text.name).first;
    const auto given = arguments_at(text, place);
    if (!given) continue;
    std::vector<std::string> names, items;
    for (const auto& [name, item] : text.chain) {
      names.push_back(name);
      items.push_back(with_arguments(item, *given));
    }
    ClassText& owner = classes[place.owner];
    Statement& member = owner.members[place.member];
    std::string changed = member.text;
    changed.replace(place.start, place.end - place.start,
                    fmt::format("nn.Sequential(OrderedDict({}))", Drafts::keywords_text(names, items)));
    if (lines_of(changed, member.level, standards) > kMostLines) continue;
    for (auto& [name, item] : owner.chain) {
      const std::string former = member.text.substr(place.start, place.end - place.start);
      const size_t at = item.find(former);
      if (at != std::string::npos)
        item.replace(at, former.size(),
                     changed.substr(place.start, changed.size() - member.text.size() + former.size()));
    }
    member.text = std::move(changed);
    text.name.clear();
  }
  std::erase_if(classes, [](const ClassText& text) { return text.name.empty(); });
  for (ClassText& text : classes) make_sequential(text);
}

}  // namespace tonnx::python
