// tool_names.cpp - names that tools have put something into: functions that were written out where they are called
// (`If_0__Inline_0__encoder.0.weight`), weights that were made common to several graphs (`weight_merged_0`).
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "passes/names/tensorflow_names.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr std::string_view kInlined = "__Inline_", kMerged = "_merged_";

/// Behind the digits that begin there.
size_t end_of_digits(std::string_view name, size_t at) {
  while (at < name.size() && std::isdigit(static_cast<unsigned char>(name[at]))) ++at;
  return at;
}

/// What a name says of the functions that it was inside of, and itself.
struct InlinedName {
  std::string calls;  // `If_0_then_branch`; several are parted by slashes
  std::string_view inner;
};

InlinedName inlined_name(std::string_view name) {
  std::string calls;
  for (size_t at = 0; (at = name.find(kInlined)) != std::string_view::npos && (at > 0 || !calls.empty());) {
    const size_t digits = at + kInlined.size(), end = end_of_digits(name, digits);
    if (end == digits || name.substr(end, 2) != "__") break;
    if (at > 0) calls += (calls.empty() ? "" : "/") + std::string(name.substr(0, at));
    name.remove_prefix(end + 2);
  }
  return {std::move(calls), name};
}

/// `then_branch` of `F0::If_0_then_branch`: the first If is what it is called after if it is called at all.
std::string call_word(std::string_view call) {
  if (const size_t fused = call.find("::"); call.starts_with('F') && end_of_digits(call, 1) == fused)
    call.remove_prefix(fused + 2);
  constexpr std::string_view kFirst = "If_0_";
  return std::string(call.starts_with(kFirst) ? call.substr(kFirst.size()) : call);
}

class InlinedNames {
 public:
  /// Looks at a name; what all that were inlined have in common says nothing.
  void note(std::string_view name) {
    if (name.find(kInlined) == std::string_view::npos) return;
    std::string calls = words_of(inlined_name(name).calls);
    if (!only_) only_ = calls;
    if (*only_ != calls) are_several_ = true;
  }

  /// `then_branch.encoder.weight` of `If_0_then_branch__Inline_0__encoder.weight`, `/then_branch/encoder/Conv` of
  /// `If_0_then_branch__Inline_0__/encoder/Conv`: the call is a place, and what was inside it has its own places there.
  std::string path_of(const std::string& name, std::string_view separator) const {
    if (name.find(kInlined) == std::string::npos) return name;
    const InlinedName found = inlined_name(name);
    const std::string calls = are_several_ ? words_of(found.calls) : "";
    const bool is_node = found.inner.starts_with('/');
    std::string path = calls;
    if (is_node || separator == "/") path.insert(0, path.empty() ? "" : "/");
    if (!is_node && !path.empty()) path += separator;
    if (!is_node && separator == "/" && path.empty()) path = "/";
    return path.append(found.inner);
  }

 private:
  static std::string words_of(const std::string& calls) {
    std::string words;
    for (size_t start = 0; start < calls.size();) {
      const size_t end = std::min(calls.find('/', start), calls.size());
      words += (words.empty() ? "" : ".") + call_word(std::string_view(calls).substr(start, end - start));
      start = end + 1;
    }
    return words;
  }

  std::optional<std::string> only_;
  bool are_several_ = false;
};

/// `weight_quantized` of `weight_merged_0_quantized`.
std::string without_merging(std::string name) {
  const size_t mark = name.rfind(kMerged);
  if (mark == std::string::npos || mark == 0) return name;
  const size_t digits = mark + kMerged.size(), end = end_of_digits(name, digits);
  const bool is_whole = end > digits && (end == name.size() || name[end] == '_');
  return is_whole ? name.erase(mark, end - mark) : name;
}

template <typename F>
void visit_nodes(const Graph& graph, const F& f) {
  for (Node& node : graph) {
    f(node);
    for (const GraphPtr& inner : subgraphs_of(node)) visit_nodes(*inner, f);
  }
}

}  // namespace

void read_tool_names(Graph& graph) {
  InlinedNames inlined;
  for (const Value* value : graph.initializers()) inlined.note(value->name);
  visit_nodes(graph, [&](Node& node) { inlined.note(node.name); });
  for (Value* value : graph.initializers()) {
    const std::string name = tensorflow_weight_name(without_merging(inlined.path_of(value->name, ".")));
    if (name != value->name) value->name = graph.unique_name(name.empty() ? "onnx::" : name);
  }
  visit_nodes(graph, [&](Node& node) { node.name = tensorflow_node_name(inlined.path_of(node.name, "/")); });
}

}  // namespace tonnx
