// refusals.h - what of an archive's code cannot be read, with all its places.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tonnx::torchscript {

class Refusals {
 public:
  bool empty() const { return found_.empty(); }
  /// How many there are: what is refused behind this is newer.
  size_t mark() const { return found_.size(); }
  /// Forgets what is newer: it stands in code that does not run.
  void forget_since(size_t mark);
  /// Throws the error of all where they are too many to go on.
  void add(std::string text, const std::string& file, uint32_t line);
  /// Throws one error that lists them all.
  [[noreturn]] void fail() const;

 private:
  struct Place {
    std::string file;
    uint32_t line = 0;
    bool operator==(const Place&) const = default;
  };
  struct Refusal {
    std::string text;
    Place place;
  };
  std::vector<Refusal> found_;
};

}  // namespace tonnx::torchscript
