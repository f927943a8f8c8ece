// match.cpp - pairs the values of two models.
#include "verify/match.h"

#include <algorithm>
#include <cmath>

#include "verify/operator_class.h"

namespace tonnx::judge {
namespace {

constexpr int kNear = 8;          // steps that one value may be after another it is like
constexpr double kSimilar = 0.1;  // a distance
constexpr double kExact = 1e-6;   // values that are closer are what they seem
constexpr size_t kLongestWay = 500;

std::vector<std::string> classes_of(const std::vector<Step>& steps) {
  std::vector<std::string> classes;
  for (const Step& step : steps) classes.push_back(operator_class(step.op));
  return classes;
}

/// Steps not far before one.
std::set<size_t> ancestors(const std::vector<Step>& steps, size_t index) {
  std::set<size_t> found;
  std::vector<size_t> waiting{index};
  for (int i = 0; i < kNear; ++i) {
    std::vector<size_t> next;
    for (const size_t at : waiting) {
      for (const int64_t parent : steps[at].parents) {
        if (parent >= 0 && found.insert(static_cast<size_t>(parent)).second)
          next.push_back(static_cast<size_t>(parent));
      }
    }
    waiting = std::move(next);
  }
  return found;
}

/// What all of these begin with, up to the last underscore.
std::string common_prefix(const std::set<std::string>& paths) {
  if (paths.size() < 2) return {};
  const std::string &first = *paths.begin(), &last = *paths.rbegin();
  size_t count = 0;
  while (count < std::min(first.size(), last.size()) && first[count] == last[count]) ++count;
  const size_t end = first.substr(0, count).rfind('_');
  return end == std::string::npos ? std::string() : first.substr(0, end + 1);
}

/// Names of values, and paths of modules without the part that all of them begin with; with the steps that have them.
std::unordered_map<std::string, std::vector<size_t>> places_of_keys(const std::vector<Step>& steps) {
  std::set<std::string> paths;
  for (const Step& step : steps) {
    for (const std::string& path : step.paths) paths.insert(identifier(path));
  }
  const std::string prefix = common_prefix(paths);
  std::unordered_map<std::string, std::vector<size_t>> found;
  for (size_t i = 0; i < steps.size(); ++i) {
    found["value " + identifier(steps[i].name)].push_back(i);
    for (const std::string& path : steps[i].paths) {
      std::string name = identifier(path);
      if (name.starts_with(prefix)) name.erase(0, prefix.size());
      found["layer " + name].push_back(i);
    }
  }
  return found;
}

std::pair<double, double> range_of(const Print& print) {
  if (print.dtype == DType::Int8) return {-128, 127};
  if (print.dtype == DType::UInt8) return {0, 255};
  return {-INFINITY, INFINITY};
}

}  // namespace

Matcher::Matcher(const std::vector<Step>& a, const std::vector<Step>& b, const Prints& prints_a, const Prints& prints_b,
                 std::map<int64_t, int64_t> inputs)
    : a_(a),
      b_(b),
      prints_a_(prints_a),
      prints_b_(prints_b),
      inputs_(std::move(inputs)),
      classes_a_(classes_of(a)),
      classes_b_(classes_of(b)),
      named_(pairs_of_names()),
      is_named_(named_.begin(), named_.end()) {}

std::vector<Pair> Matcher::run() {
  const std::vector<Close> close = close_pairs();
  std::vector<Close> closest;
  for (const Close& each : close) {
    if (each.distance <= prints_a_.at(each.a).same()) closest.push_back(each);
  }
  take(std::move(closest));
  if (names_are_right(close)) {
    Named named = named_;
    std::stable_sort(named.begin(), named.end(), [&](const auto& x, const auto& y) {
      const auto step = [&](const auto& pair) { return std::round(10 * distance_of(pair.first, pair.second)); };
      return step(x) < step(y);
    });
    for (const auto& [i, j] : named) add(i, j, How::Name);
  }
  take(close);
  uncross();
  follow_structure();
  move_on();
  std::vector<Pair> pairs;
  for (const auto& [i, pair] : of_a_) pairs.push_back(pair);
  return pairs;
}

void Matcher::add(size_t i, size_t j, How how) {
  if (of_a_.contains(i) || of_b_.contains(j)) return;
  of_a_.insert({i, {i, j, how}});
  of_b_.insert({j, {i, j, how}});
}

void Matcher::erase(const Pair& pair) {
  of_b_.erase(pair.b);
  of_a_.erase(pair.a);
}

/// All pairs that are similar.
std::vector<Matcher::Close> Matcher::close_pairs() const {
  Kinds by_kind;
  for (const auto& [j, print] : prints_b_) {
    if (print.is_telling()) by_kind[print.kind].push_back(j);
  }
  std::vector<Close> close;
  for (const auto& [i, print] : prints_a_) {
    const auto at = by_kind.find(print.kind);
    if (at == by_kind.end() || !print.is_telling()) continue;
    for (const size_t j : at->second) {
      const double apart = distance(print, prints_b_.at(j));
      if (apart <= kSimilar && may_be_one(i, j)) close.push_back({apart, i, j});
    }
  }
  return close;
}

/// What is quantised may be floats elsewhere, but not those that have yet to be rounded and cut off.
bool Matcher::may_be_one(size_t i, size_t j) const {
  const Print &a = prints_a_.at(i), &b = prints_b_.at(j);
  auto [low, high] = range_of(a);
  if (!std::isfinite(high)) std::tie(low, high) = range_of(b);
  if (!std::isfinite(high)) return true;
  const auto fits = [low = low, high = high](const Print& print) {
    return print.is_whole && low <= print.lowest && print.highest <= high;
  };
  return fits(a) && fits(b);
}

/// The closest pairs first; among those as close as rounding makes them, names, operators and order decide.
void Matcher::take(std::vector<Close> close) {
  const double scale = static_cast<double>(b_.size()) / static_cast<double>(std::max<size_t>(a_.size(), 1));
  struct Ranked {
    double step;
    bool has_other_name, has_other_class;
    double way;
    size_t a, b;
    auto key() const { return std::tie(step, has_other_name, has_other_class, way); }
  };
  std::vector<Ranked> ranked;
  for (const Close& each : close) {
    const double least = prints_a_.at(each.a).same() / 30;
    const double step = std::floor(2 * std::log10(std::max(each.distance, least)));
    const double way = std::abs(static_cast<double>(each.a) * scale - static_cast<double>(each.b));
    ranked.push_back(
        {step, !is_named_.contains({each.a, each.b}), classes_a_[each.a] != classes_b_[each.b], way, each.a, each.b});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& x, const Ranked& y) { return x.key() < y.key(); });
  for (const Ranked& each : ranked) add(each.a, each.b, each.has_other_name ? How::Value : How::Name);
}

/// Pairs of steps that have a name in common which is no other step's, and that are of the same kind.
Matcher::Named Matcher::pairs_of_names() const {
  const auto in_a = places_of_keys(a_), in_b = places_of_keys(b_);
  std::set<std::pair<size_t, size_t>> pairs;
  for (const auto& [key, of_a] : in_a) {
    const auto at = in_b.find(key);
    if (at == in_b.end() || of_a.size() != 1 || at->second.size() != 1) continue;
    const size_t i = of_a.front(), j = at->second.front();
    if (!prints_a_.contains(i) || !prints_b_.contains(j)) continue;
    if (key.starts_with("layer") && classes_a_[i] != classes_b_[j]) continue;
    if (prints_a_.at(i).kind == prints_b_.at(j).kind) pairs.insert({i, j});
  }
  return {pairs.begin(), pairs.end()};
}

/// Not where numbers such as `val_12` were given anew: what has the name then equals something else.
bool Matcher::names_are_right(const std::vector<Close>& close) const {
  std::unordered_map<size_t, double> best;
  for (const Close& each : close) {
    double& least = best.try_emplace(each.a, 1.0).first->second;
    least = std::min(least, each.distance);
  }
  size_t wrong = 0;
  for (const auto& [i, j] : named_) {
    const auto taken = of_a_.find(i);
    if (taken == of_a_.end() || taken->second.b == j) continue;
    const auto least = best.find(i);
    if (distance_of(i, j) > 30 * std::max(least == best.end() ? 1.0 : least->second, 1e-6)) ++wrong;
  }
  return wrong * 5 <= named_.size();
}

/// What comes after another value in one model does so in the other too: a value is like what it is rounded to. Where
/// they cannot change places, the two that are less alike are no counterparts.
void Matcher::uncross() {
  std::vector<size_t> all;
  for (const auto& [i, pair] : of_a_) all.push_back(i);
  for (const size_t behind : all) {
    for (const size_t before : ancestors(a_, behind)) {
      const auto at = of_a_.find(before), end = of_a_.find(behind);
      if (at == of_a_.end() || end == of_a_.end()) continue;
      const Pair first = at->second, last = end->second;
      const bool has_name = first.how == How::Name || last.how == How::Name;
      if (has_name || !ancestors(b_, first.b).contains(last.b)) continue;
      const auto may_be = [&](size_t i, size_t j) { return may_be_one(i, j) && distance_of(i, j) <= kSimilar; };
      if (may_be(before, last.b) && may_be(behind, first.b)) {
        erase(first);
        erase(last);
        add(before, last.b, How::Value);
        add(behind, first.b, How::Value);
        continue;
      }
      const Pair& worse = distance_of(first.a, first.b) >= distance_of(last.a, last.b) ? first : last;
      if (distance_of(worse.a, worse.b) > prints_a_.at(worse.a).same()) erase(worse);
    }
  }
}

/// Pairs equal operators on values that correspond, though they have no element in common any more.
void Matcher::follow_structure() {
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> left;
  for (const auto& [j, print] : prints_b_) {
    if (!of_b_.contains(j)) left[{classes_b_[j], print.kind}].push_back(j);
  }
  for (const auto& [i, print] : prints_a_) {
    if (of_a_.contains(i)) continue;
    const auto at = left.find({classes_a_[i], print.kind});
    if (at == left.end()) continue;
    std::set<int64_t> before;
    bool is_known = false;
    std::optional<std::pair<double, size_t>> best;
    for (const size_t j : at->second) {
      if (of_b_.contains(j)) continue;
      if (!is_known) before = frontier(true, i);
      is_known = true;
      if (before.empty() || frontier(false, j) != before) continue;
      const std::pair<double, size_t> found(std::round(10 * distance_of(i, j)), j);
      if (!best || found < *best) best = found;
    }
    if (best) add(i, best->second, How::Place);
  }
}

/// The nearest steps before it that have a counterpart, and inputs; as numbers of a.
std::set<int64_t> Matcher::frontier(bool is_a, size_t start) const {
  const std::vector<Step>& steps = is_a ? a_ : b_;
  const std::map<size_t, Pair>& matched = is_a ? of_a_ : of_b_;
  std::set<int64_t> found, seen;
  std::vector<int64_t> waiting = steps[start].parents;
  while (!waiting.empty() && seen.size() < kLongestWay) {
    const int64_t at = waiting.back();
    waiting.pop_back();
    if (!seen.insert(at).second) continue;
    if (at < 0) {
      const auto other = inputs_.find(at);
      constexpr int64_t kNoInput = -1000;
      found.insert(is_a ? at : other == inputs_.end() ? at + kNoInput : other->second);
    } else if (const auto pair = matched.find(static_cast<size_t>(at)); pair != matched.end()) {
      found.insert(static_cast<int64_t>(pair->second.a));
    } else {
      const auto& parents = steps[static_cast<size_t>(at)].parents;
      waiting.insert(waiting.end(), parents.begin(), parents.end());
    }
  }
  return found;
}

/// A layer whose bias is added after it looks like one that has it inside where the bias is small: what comes after it
/// is closer by far.
void Matcher::move_on() {
  for (const bool is_a : {true, false}) {
    const std::vector<Step>& steps = is_a ? a_ : b_;
    std::unordered_map<int64_t, std::vector<size_t>> users;
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const int64_t parent : steps[i].parents) users[parent].push_back(i);
    }
    const std::map<size_t, Pair> matched = is_a ? of_a_ : of_b_;
    for (const auto& [at, pair] : matched) {
      const double apart = distance_of(pair.a, pair.b);
      const auto behind = users.find(static_cast<int64_t>(at));
      if (apart <= kExact || behind == users.end()) continue;
      for (const size_t user : behind->second) {
        if (move_behind(pair, user, is_a, apart)) break;
      }
    }
  }
}

bool Matcher::move_behind(const Pair& pair, size_t user, bool is_a, double apart) {
  const std::map<size_t, Pair>& matched = is_a ? of_a_ : of_b_;
  const Prints& prints = is_a ? prints_a_ : prints_b_;
  const size_t at = is_a ? pair.a : pair.b;
  const auto now = matched.find(at);
  if (now == matched.end() || now->second.a != pair.a || now->second.b != pair.b) return false;
  if (matched.contains(user) || !prints.contains(user)) return false;
  if (prints.at(user).kind != prints.at(at).kind) return false;
  const size_t i = is_a ? user : pair.a, j = is_a ? pair.b : user;
  if (!may_be_one(i, j) || 10 * distance_of(i, j) >= apart) return false;
  erase(pair);
  add(i, j, How::Value);
  return true;
}

}  // namespace tonnx::judge
