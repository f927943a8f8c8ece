// stack_classes.cpp - reads the classes of modules out of the notes that torch.export leaves at each node.
#include <map>
#include <string>
#include <unordered_set>

#include "base/identifier.h"
#include "modules/module_tree.h"

namespace tonnx {
namespace {

class StackClasses {
 public:
  void visit(const Graph& graph) {
    for (const Node& node : graph) {
      for (const auto& [key, text] : node.metadata) {
        if (key == "nn_module_stack" && seen_.insert(text).second) add_stack(text);
      }
      for (const GraphPtr& inner : subgraphs_of(node)) visit(*inner);
    }
  }

  void note(Graph& graph) const {
    for (const auto& [path, name] : names_) graph.metadata.emplace_back(class_note(path), name);
  }

 private:
  /// `key,path,class;key,path,class`, from the outermost module to the innermost.
  void add_stack(std::string_view stack) {
    while (!stack.empty()) {
      const size_t end = std::min(stack.find(';'), stack.size());
      add_entry(stack.substr(0, end));
      stack.remove_prefix(std::min(end + 1, stack.size()));
    }
  }

  void add_entry(std::string_view entry) {
    const size_t first = entry.find(','), second = entry.find(',', first + 1);
    if (first == entry.npos || second == entry.npos) return;
    std::string_view path = entry.substr(first + 1, second - first - 1);
    path = path.substr(0, path.find('@'));  // of the second call of a module
    const std::string_view full = entry.substr(second + 1);
    const std::string_view name = full.substr(full.rfind('.') + 1);
    if (!path.empty() && is_plain_name(name) && !full.starts_with("torch.nn.modules.container"))
      names_.emplace(path, name);
  }

  std::unordered_set<std::string_view> seen_;
  std::map<std::string, std::string> names_;
};

}  // namespace

void note_stack_classes(Graph& graph) {
  StackClasses classes;
  classes.visit(graph);
  classes.note(graph);
}

}  // namespace tonnx
