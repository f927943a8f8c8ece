// word_paths.h - names whose words are parted by underscores alone, as paths: `features_stage1_conv0`.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "modules/places.h"

namespace tonnx {

/// Words with numbers that several names begin with are modules: `features.stage1.conv0`.
class WordPaths {
 public:
  explicit WordPaths(const std::vector<std::string>& names);

  Path split(const std::string& name) const;
  /// The module that a name is in; nothing where it is in none.
  std::optional<Path> place_of(const std::string& name) const;

 private:
  /// So much of the name is accepted as modules.
  std::vector<size_t> ends_of(const std::string& name) const;

  std::set<std::string, std::less<>> modules_;  // up to a word with a number
  std::set<std::string, std::less<>> heads_;    // what stands before those
};

}  // namespace tonnx
