// scope_names.cpp - reads the notes of torch.onnx and of tonnx.export.
#include <fmt/format.h>

#include <map>

#include "base/budget.h"
#include "base/identifier.h"
#include "convert/graph_steps.h"
#include "modules/module_tree.h"

namespace tonnx {
namespace {

constexpr size_t kLongestNote = 4096;

const std::string* find_note(const Node& node, std::string_view key) {
  for (const auto& [name, value] : node.metadata) {
    if (name == key) return value.size() <= kLongestNote ? &value : nullptr;
  }
  return nullptr;
}

/// The texts of a list as Python prints it: `['', 'encoder', 'encoder.layer.0', 'linear']`.
std::vector<std::string> listed(const std::string& note) {
  std::vector<std::string> texts;
  for (size_t at = 0; (at = note.find_first_of("'\"", at)) != std::string::npos;) {
    const size_t end = note.find(note[at], at + 1);
    if (end == std::string::npos) break;
    texts.push_back(note.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return texts;
}

class ScopeNamer {
 public:
  void visit(Graph& graph) {
    for (Node& node : graph) {
      read_notes(node);
      for (const GraphPtr& inner : subgraphs_of(node)) visit(*inner);
    }
  }

  void note_classes(Graph& graph) const {
    for (const auto& [path, name] : classes_) graph.metadata.emplace_back(class_note(path), name);
  }

 private:
  void read_notes(Node& node) {
    if (const std::string* scopes = find_note(node, "pkg.torch.onnx.name_scopes")) {
      std::vector<std::string> paths = listed(*scopes);
      if (paths.size() < 2) return;  // the last one is the operator
      paths.pop_back();
      if (const std::string* classes = find_note(node, "pkg.torch.onnx.class_hierarchy")) {
        const std::vector<std::string> names = listed(*classes);
        for (size_t i = 0; i < paths.size() && i < names.size(); ++i) add_class(paths[i], names[i]);
      }
      rename(node, paths.back());
    } else if (const std::string* path = find_note(node, "torch.module")) {
      if (const std::string* name = find_note(node, "torch.class")) add_class(*path, *name);
      rename(node, *path);
    }
  }

  static void rename(Node& node, const std::string& path) {
    node.name = fmt::format("{}/{}", path, node.op.str());
    budget().take(Resource::Text, static_cast<int64_t>(node.name.size()));
  }

  /// `transformers.models.bert.modeling_bert.BertLayer` is a `BertLayer`.
  void add_class(const std::string& path, const std::string& full) {
    const std::string name = full.substr(full.rfind('.') + 1);
    if (is_plain_name(name) && !full.starts_with("torch.nn.modules.container")) classes_.emplace(path, name);
  }

  std::map<std::string, std::string> classes_;
};

}  // namespace

void name_by_scopes(Model& model) {
  ScopeNamer namer;
  namer.visit(*model.graph);
  namer.note_classes(*model.graph);
}

}  // namespace tonnx
