// choices.h - which of several ways each node is opened in, where only the rest of the model tells which one is meant.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace tonnx {

/// The model is opened anew for each combination, depth first: the last choice that has another way left takes it.
class Choices {
 public:
  /// The way to take now. Where this node was not reached in the last attempt it is the way that the last node of the
  /// same key took.
  size_t choose(std::string_view key, size_t ways) {
    if (at_ < trail_.size()) return trail_[at_++].picked;
    const auto learned = learned_.find(key);
    const size_t picked = learned != learned_.end() && learned->second < ways ? learned->second : 0;
    trail_.push_back({std::string(key), picked, picked, ways});
    ++at_;
    return picked;
  }

  /// Goes on to the next combination, if there is one.
  bool advance() {
    trail_.resize(at_);  // what was not reached is not known to be wrong
    at_ = 0;
    while (!trail_.empty()) {
      Choice& last = trail_.back();
      last.picked = (last.picked + 1) % last.ways;
      if (last.picked != last.first) {
        learned_[last.key] = last.picked;
        return true;
      }
      trail_.pop_back();
    }
    return false;
  }

 private:
  struct Choice {
    std::string key;
    size_t picked, first, ways;
  };
  std::vector<Choice> trail_;
  size_t at_ = 0;
  std::map<std::string, size_t, std::less<>> learned_;
};

}  // namespace tonnx
