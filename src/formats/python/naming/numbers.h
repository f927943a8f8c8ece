// numbers.h - the lowest number behind a word that makes a name which nobody needs, found without trying them all.
#pragma once
#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tonnx::python {

/// Numbers behind one word, in one block: those that are free, and those that are needed up to some position. Positions
/// never go back.
class Numbers {
 public:
  static constexpr int kAlways = std::numeric_limits<int>::max();
  /// Up to which position the name with that number is needed; kAlways: it cannot be had in this block.
  using NeededUntil = std::function<int(int number)>;

  /// `outer`: the numbers of the block around. Those that it needs are not looked at here.
  Numbers(int first, const Numbers* outer) : outer_(outer), next_(first) {}

  /// The lowest number above `after` whose name is not needed behind that position and is allowed.
  int find(int position, int after, const NeededUntil& needed_until, const std::function<bool(int)>& is_allowed);
  /// What is needed up to that position only is free.
  void release(int position);

 private:
  int first_from(int number) const;

  const Numbers* outer_;
  int next_;                         // from here on nothing is known
  std::set<int> free_;               // below that; some may have been taken since
  using Held = std::pair<int, int>;  // a position, and the number that is needed up to it
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
};

/// Names that are chosen together, before any of them is set.
class ChosenNames {
 public:
  void add(std::string name) { set_.insert(std::move(name)); }
  bool contains(const std::string& name) const { return set_.contains(name); }
  /// The last number that was chosen behind a word: the next one lies above it.
  int& last_number(const std::string& word) { return last_.try_emplace(word, 0).first->second; }

 private:
  std::unordered_set<std::string> set_;
  std::unordered_map<std::string, int> last_;
};

}  // namespace tonnx::python
