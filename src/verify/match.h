// match.h - finds which values of two models correspond: by what they are, by their names, by where they stand.
#pragma once
#include <map>
#include <set>
#include <unordered_map>

#include "verify/runner.h"
#include "verify/sketch.h"

namespace tonnx::judge {

using Prints = std::map<size_t, Print>;  // by the places of steps

enum class How : uint8_t { Name, Value, Place };

struct Pair {
  size_t a, b;
  How how;
};

/// Pairs of steps. Each step has at most one counterpart.
class Matcher {
 public:
  /// `inputs`: those of b as those of a, both as negative numbers.
  Matcher(const std::vector<Step>& a, const std::vector<Step>& b, const Prints& prints_a, const Prints& prints_b,
          std::map<int64_t, int64_t> inputs);
  std::vector<Pair> run();

 private:
  struct Close {
    double distance;
    size_t a, b;
  };
  using Named = std::vector<std::pair<size_t, size_t>>;
  using Kinds = std::unordered_map<std::string, std::vector<size_t>>;

  std::vector<Close> close_pairs() const;
  Named pairs_of_names() const;
  bool may_be_one(size_t i, size_t j) const;
  void take(std::vector<Close> close);
  bool names_are_right(const std::vector<Close>& close) const;
  void uncross();
  void follow_structure();
  void move_on();
  bool move_behind(const Pair& pair, size_t user, bool is_a, double apart);
  std::set<int64_t> frontier(bool is_a, size_t start) const;
  void add(size_t i, size_t j, How how);
  void erase(const Pair& pair);
  double distance_of(size_t i, size_t j) const { return distance(prints_a_.at(i), prints_b_.at(j)); }

  const std::vector<Step>&a_, &b_;
  const Prints &prints_a_, &prints_b_;
  std::map<int64_t, int64_t> inputs_;
  std::vector<std::string> classes_a_, classes_b_;
  Named named_;
  std::set<std::pair<size_t, size_t>> is_named_;
  std::map<size_t, Pair> of_a_, of_b_;
};

}  // namespace tonnx::judge
