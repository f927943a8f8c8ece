// support.cpp - looks every node up in the operator tables.
#include "convert/support.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

namespace tonnx {
namespace {

constexpr std::string_view kNoStrings = "PyTorch has no tensors of strings";

int64_t version_of(const Node& node) {
  const int schema = node.domain.empty() ? schema_version(node.op.view(), node.version) : 0;
  return schema > 0 ? schema : node.version;
}

bool is_of_strings(const Type& type) {
  return type.dtype == DType::String || std::any_of(type.elements.begin(), type.elements.end(), is_of_strings);
}

class Search {
 public:
  explicit Search(const LoweringOptions& options) : options_(options) {}

  void walk(const Graph& graph) {
    for (const Node& node : graph) {
      if (is_external(node, options_)) continue;
      const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
      // an operator that a later opset took away is turned into another on the way there
      if (entry == nullptr || !(entry->op->is_supported() || entry->op->until != 0)) {
        add(node, entry ? entry->op->note : std::string_view());
      } else if (const Attribute* to = node.find_attribute("to"); to && node.op == "Cast" && node.domain.empty()) {
        const auto* number = to->value.get<int64_t>();
        if (number && *number == static_cast<int64_t>(DType::String)) add(node, kNoStrings);
      }
      for (const GraphPtr& subgraph : subgraphs_of(node)) walk(*subgraph);
    }
  }

  void add_inputs(const Graph& graph) {
    for (const Value* input : graph.inputs()) {
      const bool is_taken = std::any_of(input->uses.begin(), input->uses.end(), [&](const Use& use) {
        return use.user != nullptr && is_external(*use.user, options_);  // which may know what to do with strings
      });
      if (is_of_strings(input->type) && !is_taken) {
        UnsupportedOp& op = found_[{"", "input", 0}];
        op.nodes.push_back(input->name);
        op.reason = kNoStrings;
      }
    }
  }

  std::vector<UnsupportedOp> list() {
    std::vector<UnsupportedOp> result;
    for (auto& [key, op] : found_) {
      std::tie(op.domain, op.op, op.version) = key;
      result.push_back(std::move(op));
    }
    return result;
  }

 private:
  void add(const Node& node, std::string_view reason) {
    UnsupportedOp& op = found_[{std::string(node.domain.view()), std::string(node.op.view()), version_of(node)}];
    op.nodes.push_back(node.name.empty() && node.output(0) ? node.output(0)->name : node.name);
    op.reason = reason;
  }

  const LoweringOptions& options_;
  std::map<std::tuple<std::string, std::string, int64_t>, UnsupportedOp> found_;
};

}  // namespace

std::string label_of(const Node& node) {
  return fmt::format("{}{}{}-{}", node.domain.view(), node.domain.empty() ? "" : "::", node.op.view(),
                     version_of(node));
}

std::vector<UnsupportedOp> find_unsupported(const Graph& graph, const LoweringOptions& options) {
  Search search(options);
  search.walk(graph);
  search.add_inputs(graph);
  return search.list();
}

std::string describe(const std::vector<UnsupportedOp>& unsupported, size_t most_names) {
  std::string text;
  for (const UnsupportedOp& op : unsupported) {
    const size_t count = op.nodes.size();
    const bool is_input = op.domain.empty() && op.op == "input" && op.version == 0;
    std::vector<std::string> names;
    for (size_t i = 0; i < (is_input ? count : std::min(count, most_names)); ++i)
      names.push_back("'" + shown(op.nodes[i]) + "'");
    const std::string more = is_input || count <= most_names ? ""
                             : most_names == 1               ? " and others"
                                                             : fmt::format(" and {} others", count - most_names);
    const std::string what =
        is_input ? "input"
                 : fmt::format("{}{}{}-{}", shown(op.domain), op.domain.empty() ? "" : "::", shown(op.op), op.version);
    text += fmt::format("\n  {}: {} {}{}, {}{}{}{}", what, count, is_input ? "input" : "node", count == 1 ? "" : "s",
                        fmt::join(names, ", "), more, op.reason.empty() ? "" : ": ", op.reason);
  }
  return text;
}

void require_supported(const Graph& graph, const LoweringOptions& options) {
  const std::vector<UnsupportedOp> unsupported = find_unsupported(graph, options);
  if (unsupported.empty()) return;
  size_t count = 0;
  bool is_nodes = false;
  for (const UnsupportedOp& op : unsupported) {
    count += op.nodes.size();
    is_nodes = is_nodes || op.version != 0;
  }
  const auto op = std::find_if(unsupported.begin(), unsupported.end(), [](const auto& u) { return u.version != 0; });
  const std::string advice = op == unsupported.end()
                                 ? ""
                                 : fmt::format(
                                       "; @tonnx.add_converter(\"{}\", version={}{}) above a function of Python "
                                       "says what the node is",
                                       shown(op->op), op->version,
                                       op->domain.empty() ? "" : fmt::format(", domain=\"{}\"", shown(op->domain)));
  throw Error(ErrorKind::Unsupported,
              fmt::format("{} {}{} cannot be converted{}:{}", count, is_nodes ? "node" : "input", count == 1 ? "" : "s",
                          advice, describe(unsupported, 1)));
}

}  // namespace tonnx
