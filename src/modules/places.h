// places.h - names of modules and tensors as paths, each of them free and such as code can say.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ops/frame/python_names.h"

namespace tonnx {

/// `encoder.layer.0`, part by part.
using Path = std::vector<std::string>;

bool is_index(std::string_view part);

/// `layer` of `layer12`.
std::string stem_of(const std::string& name);
/// 12 of `layer12`; -1 where there is no number.
int number_of(const std::string& name);

/// Whether code says the part behind a dot: it is neither a number nor a name like `block1-0`.
bool is_attribute(std::string_view part);

/// The parts of a name out of a file, between dots and slashes, each as an attribute may be called, or a number.
Path path_of_name(std::string_view name);

/// `weight` of `encoder.layer.0.weight`.
std::string last_part(const std::string& path);
/// The name in a place; the name alone in the model itself.
std::string within(const std::string& place, const std::string& name);
/// Where alike modules are: `model.layers.#.mlp.` of `model.layers.3.mlp`.
std::string kind_of_place(const std::string& path);

/// What is directly inside the place on the way to where a node's name says it is: `2` of `/features/features.0/
/// features.0.2/Relu` in `features.0`; empty where it is elsewhere. So many parts at the front of paths are left out.
std::string name_within(const std::string& place, std::string_view node_name, size_t outer_parts);

/// One name for all parts from there on, which is no number: `encoder_norm_0` of `encoder_0.norm`.
void join_from(Path& path, size_t first);

/// What is called how in a model. What has a name is no place for others, and the other way round.
class Places {
 public:
  Places();
  /// The path itself, or one like it that is free.
  Path add(Path path);
  /// Whether there are others in it.
  bool is_scope(const Path& path) const;
  /// The path with one name for all that is behind the places that there are.
  Path within_known(Path path) const;

 private:
  python::NameSet& names_in(const std::string& scope);

  std::unordered_map<std::string, python::NameSet> names_;  // by scope
  std::unordered_map<std::string, bool> is_scope_;          // whatever has a name: whether it is a place for others
};

}  // namespace tonnx
