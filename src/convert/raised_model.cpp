// raised_model.cpp - constants, names and metadata of a model that was made from PyTorch.
#include "convert/raised_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "convert/evaluate.h"
#include "convert/source_line.h"
#include "ops/frame/op_def.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// A value that was computed from constants becomes one. A weight that nobody uses any more hands on its name.
void make_initializer(Graph& root, Value* value) {
  const Value* origin = origin_of_weight(value);
  Value* made = root.add_initializer(origin->name, value->constant);
  made->trainable = value->trainable;
  made->graph->replace_uses(value, made);
  for (const Use& use : std::vector<Use>(made->uses)) {  // a graph inside a node gives no value of those around it
    if (use.user != nullptr || use.output_of == &root) continue;
    Node* copy = use.output_of->add_node("", "Identity");
    copy->version = kNewestOpset;
    copy->set_input(0, made);
    use.output_of->set_output(use.index,
                              use.output_of->add_output_to(copy, use.output_of->unique_name(made->name), made->type));
  }
  if (origin != value) std::swap(made->name, const_cast<Value*>(origin)->name);
}

void make_initializers(Graph& root, Graph& graph) {
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) make_initializers(root, *subgraph);
    for (Value* output : node->outputs()) {
      if (output != nullptr && output->constant && !output->uses.empty()) make_initializer(root, output);
    }
    node = next;
  }
}

/// The output is a value of its own, under its own name.
void add_outputs(Graph& graph, const std::vector<Value*>& outputs, const std::vector<std::string>& names) {
  std::set<const Value*> taken;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value* value = outputs[i];
    const std::string name = i < names.size() ? names[i] : value->name;
    if (value->producer == nullptr || value->graph != &graph || value->constant || !taken.insert(value).second) {
      Node* copy = graph.add_node("", "Identity");
      copy->version = kNewestOpset;
      copy->set_input(0, value);
      Value* made = graph.add_output_to(copy, graph.unique_name(name), value->type);
      graph.add_output(made);
      continue;
    }
    if (value->name != name) value->name = graph.unique_name(name);
    graph.add_output(value);
  }
}

std::string_view last_part(std::string_view text, char separator) {
  const size_t at = text.rfind(separator);
  return at == std::string_view::npos ? text : text.substr(at + 1);
}

/// Where a node comes from, in three short entries instead of the texts of the program.
Metadata origin_of(const Metadata& metadata, bool has_lines) {
  Metadata result;
  for (const auto& [key, text] : metadata) {
    if (key == "nn_module_stack") {
      const std::string_view last = last_part(text, ';');
      const size_t first = last.find(','), second = last.find(',', first + 1);
      if (first == last.npos || second == last.npos) continue;
      const std::string path(last.substr(first + 1, second - first - 1));
      if (!path.empty()) result.emplace_back("torch.module", path);
      result.emplace_back("torch.class", last.substr(second + 1));
    } else if (key == "stack_trace" && has_lines) {
      if (std::string line = source_line(text); !line.empty()) result.emplace_back("torch.source", std::move(line));
    }
  }
  return result;
}

void count_paths(const Graph& graph, std::map<std::string, int>& counts) {
  for (const Node& node : graph) {
    ++counts[node.name];
    for (const GraphPtr& subgraph : subgraphs_of(node)) count_paths(*subgraph, counts);
  }
}

class Naming {
 public:
  Naming(const Graph& graph, bool has_lines) : has_lines_(has_lines) { count_paths(graph, counts_); }

  /// A module of one node gives it its path; others have `path/Add`.
  void name_nodes(Graph& graph) {
    for (Node& node : graph) {
      const std::string path = node.name;
      const bool is_alone = !path.empty() && counts_[path] == 1;
      node.name = unique(is_alone ? path : path.empty() ? node.op.str() : fmt::format("{}/{}", path, node.op.view()));
      auto [at, fresh] = origins_.try_emplace(key_of(node.metadata));
      if (fresh) at->second = origin_of(node.metadata, has_lines_);
      node.metadata = at->second;
      for (const GraphPtr& subgraph : subgraphs_of(node)) name_nodes(*subgraph);
    }
  }

 private:
  static std::string key_of(const Metadata& metadata) {
    std::string key;
    for (const auto& [name, text] : metadata) key += fmt::format("{}\n{}\n", name, text);
    return key;
  }
  std::string unique(const std::string& hint) {
    int& count = taken_[hint];
    return ++count == 1 ? hint : unique(fmt::format("{}_{}", hint, count));
  }

  bool has_lines_;
  std::map<std::string, int> counts_, taken_;
  std::map<std::string, Metadata> origins_;
};

void collect_domains(const Graph& graph, std::set<std::string>& domains) {
  for (const Node& node : graph) {
    if (!node.domain.empty()) domains.insert(node.domain.str());
    for (const GraphPtr& subgraph : subgraphs_of(node)) collect_domains(*subgraph, domains);
  }
}

}  // namespace

void finish_raised(Model& model, const std::vector<Value*>& outputs, const std::vector<std::string>& output_names,
                   bool has_source_lines) {
  Graph& graph = *model.graph;
  add_outputs(graph, outputs, output_names);
  share_nodes(graph);  // what is computed twice of constants is one constant
  make_initializers(graph, graph);
  share_nodes(graph);
  remove_dead_code(graph);
  Naming(graph, has_source_lines).name_nodes(graph);
  model.ir_version = 8;
  model.opsets = {{"", kNewestOpset}};
  std::set<std::string> domains;
  collect_domains(graph, domains);
  for (const std::string& domain : domains) model.opsets.emplace_back(domain, 1);
  model.producer_name = "tonnx";
  model.producer_version = TONNX_VERSION;
}

}  // namespace tonnx
