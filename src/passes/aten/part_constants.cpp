// part_constants.cpp - aten: a table that a file holds once for modules of one kind is each module's own again.
#include <algorithm>
#include <cctype>
#include <map>

#include "ops/frame/python_names.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr size_t kMostBytes = size_t{1} << 16;  // larger ones stay common
constexpr size_t kMostUses = 1000;

/// The first parts of a path; empty where it has fewer.
std::string first_parts(std::string path, ptrdiff_t count) {
  std::replace(path.begin(), path.end(), '/', '.');
  size_t end = 0;
  for (; count > 0; --count) {
    end = path.find('.', end + 1);
    if (end == std::string::npos) return count == 1 ? path : "";
  }
  return path.substr(0, end);
}

/// `encoder.#.attn` of `encoder.3.attn`.
std::string without_numbers(const std::string& path) {
  std::string kind;
  for (const char c : path) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit)
      kind += c;
    else if (kind.empty() || kind.back() != '#')
      kind += '#';
  }
  return kind;
}

void part(Graph& graph, Value& value) {
  const size_t dot = value.name.rfind('.');
  const std::string owner = value.name.substr(0, dot), kind = without_numbers(owner);
  const auto parts = std::count(owner.begin(), owner.end(), '.') + 1;
  std::map<std::string, Value*> own;
  const std::vector<Use> uses = value.uses;
  for (const Use& use : uses) {
    if (use.user == nullptr || use.user->graph != &graph) continue;
    const std::string place = first_parts(python::path_of_node(use.user->name), parts);
    if (place.empty() || place == owner || without_numbers(place) != kind) continue;
    Value*& copy = own[place];
    if (copy == nullptr) copy = graph.add_initializer(place + value.name.substr(dot), value.constant);
    use.user->set_input(use.index, copy);
  }
}

}  // namespace

void part_constants(Graph& graph) {
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers) {
    const bool is_common = !value->trainable && value->constant && value->uses.size() > 1 &&
                           value->uses.size() <= kMostUses && value->constant->data.size() <= kMostBytes;
    if (is_common && value->name.find('.') != std::string::npos && !python::is_made_up(value->name))
      part(graph, *value);
  }
}

}  // namespace tonnx
