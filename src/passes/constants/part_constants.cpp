// part_constants.cpp - aten: a table that a file holds once for modules of one kind is each module's own again.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_set>

#include "ops/frame/python_names.h"
#include "ops/frame/trained_scalar.h"
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

/// What an exporter computed, and called as its operator is, belongs to the modules that need it, if each use says
/// which that is.
bool belongs_to_users(const Graph& graph, const Value& value) {
  if (!value.constant || value.sparse || value.uses.empty() || value.uses.size() > kMostUses ||
      !(value.trainable ? is_operator_word(value.name) : is_result_name(value.name)))
    return false;
  std::set<std::string> places;
  for (const Use& use : value.uses) {
    if (use.user == nullptr || use.user->graph != &graph) return false;
    places.insert(python::path_of_node(use.user->name));
  }
  const bool may_be_copied = !value.trainable && value.constant->data.size() <= kMostBytes;
  return !places.contains("") && (places.size() == 1 || may_be_copied);
}

/// Each module gets its own, in the order of its nodes, so that modules that are alike have them in the same order.
void give_to_users(Graph& graph) {
  std::unordered_set<const Value*> given;
  for (const Value* value : graph.initializers()) {
    if (belongs_to_users(graph, *value)) given.insert(value);
  }
  if (given.empty()) return;
  std::map<std::pair<const Value*, std::string>, Value*> own;
  for (Node& node : graph) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Value* value = node.input(i);
      if (!given.contains(value)) continue;
      std::string name = "/" + python::path_of_node(node.name) + "/Constant";
      std::replace(name.begin(), name.end(), '.', '/');
      Value*& copy = own[{value, name}];
      if (copy == nullptr) copy = graph.add_initializer(graph.unique_name(name), value->constant);
      copy->trainable = value->trainable;
      node.set_input(i, copy);
    }
  }
}

}  // namespace

void part_constants(Graph& graph) {
  give_to_users(graph);
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers) {
    const bool is_common = !value->trainable && value->constant && value->uses.size() > 1 &&
                           value->uses.size() <= kMostUses && value->constant->data.size() <= kMostBytes;
    if (is_common && value->name.find('.') != std::string::npos && !python::is_made_up(value->name))
      part(graph, *value);
  }
}

}  // namespace tonnx
