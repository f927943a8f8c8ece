// parts.cpp - aten: recognises slices that are all parts of a tensor, and taken apart at once.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr size_t kMost = 8;  // parts that a person would write in one line

/// The slices of one tensor along one dimension that one module takes: all with the same start and end together.
struct Cut {
  Node* first = nullptr;
  int64_t dim = 0, size = 0;
  bool is_element = false;
  std::map<std::pair<int64_t, int64_t>, std::vector<Node*>> parts;
};

/// A tensor, a dimension, whether single elements are taken, and the module that takes them.
using CutKey = std::tuple<Value*, int64_t, bool, std::string_view>;

std::string_view scope_of_part(const Node& node) {
  const std::string_view name = node.name;
  const size_t end = name.find_last_of("/.");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

/// The index from the front; nothing for one that is outside.
std::optional<int64_t> from_front(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index <= size ? std::optional(index) : std::nullopt;
}

/// Notes what a slice with step 1, or a select, takes.
void note(Node& node, std::map<CutKey, Cut>& cuts, std::vector<Cut*>& order) {
  const bool is_element = is_aten(node, "select", "int");
  if ((!is_element && !is_aten(node, "slice", "Tensor")) || node.inputs().size() != 1) return;
  Value* of = operand(node, "self");
  if (of == nullptr || of->constant || !of->type.shape) return;
  const int64_t* given = find_int(node, "dim");
  const auto rank = static_cast<int64_t>(of->type.shape->size());
  const auto dim = from_front(given ? *given : 0, rank);
  const auto size = dim && *dim < rank ? (*of->type.shape)[static_cast<size_t>(*dim)].constant() : std::nullopt;
  if (!size || (node.find_attribute("step") && !is_number(node, "step", 1))) return;
  std::optional<int64_t> start, end;
  if (is_element) {
    const int64_t* index = find_int(node, "index");
    start = index ? from_front(*index, *size) : std::nullopt;
    if (start) end = *start + 1;
  } else {
    const int64_t *a = find_int(node, "start"), *b = find_int(node, "end");
    start = from_front(a ? *a : 0, *size);
    end = b ? from_front(std::min(*b, *size), *size) : *size;
  }
  if (!start || !end || *start >= *end) return;
  const auto [at, is_fresh] = cuts.try_emplace({of, *dim, is_element, scope_of_part(node)});
  Cut& cut = at->second;
  if (is_fresh) {
    cut.first = &node;
    cut.dim = *dim;
    cut.size = *size;
    cut.is_element = is_element;
    order.push_back(&cut);
  }
  cut.parts[{*start, *end}].push_back(&node);
}

/// Whether the parts are all of the dimension, one behind the other, and enough of them are used more than once: what
/// is used once stands where it is used.
bool is_split(const Cut& cut) {
  if (cut.parts.size() < 2 || cut.parts.size() > kMost) return false;
  int64_t end = 0;
  size_t often = 0;
  for (const auto& [range, nodes] : cut.parts) {
    if (range.first != end) return false;
    end = range.second;
    size_t uses = 0;
    for (const Node* node : nodes) {
      for (const Use& use : node->output(0)->uses) {
        if (use.user == nullptr) return false;
        ++uses;
      }
    }
    if (uses > 1) ++often;
  }
  return end == cut.size && often >= (cut.is_element ? 2 : 1);
}

void split(Graph& graph, const Cut& cut) {
  std::vector<int64_t> sizes;
  for (const auto& [range, nodes] : cut.parts) sizes.push_back(range.second - range.first);
  const bool is_even = std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size == sizes[0]; });
  Node* made = graph.add_node("aten", cut.is_element ? "unbind" : is_even ? "chunk" : "split_with_sizes", cut.first);
  if (cut.is_element) made->overload = "int";
  made->name = cut.first->name;
  made->metadata = cut.first->metadata;
  add_operand(*made, "self", operand(*cut.first, "self"));
  if (!cut.is_element && is_even)
    made->attributes.push_back({"chunks", static_cast<int64_t>(sizes.size()), AttrType::None, {}, {}});
  else if (!cut.is_element)
    made->attributes.push_back({"split_sizes", std::move(sizes), AttrType::None, {}, {}});
  if (cut.dim != 0) made->attributes.push_back({"dim", cut.dim, AttrType::None, {}, {}});
  for (const auto& [range, nodes] : cut.parts) {
    Value* part = graph.add_output_to(made, graph.unique_name(nodes[0]->output(0)->name), nodes[0]->output(0)->type);
    for (Node* node : nodes) {
      graph.replace_uses(node->output(0), part);
      graph.erase(node);
    }
  }
}

}  // namespace

void recognise_parts(Graph& graph) {
  std::map<CutKey, Cut> cuts;
  std::vector<Cut*> order;
  for (Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) recognise_parts(*subgraph);
    note(node, cuts, order);
  }
  for (const Cut* cut : order) {
    if (is_split(*cut)) split(graph, *cut);
  }
}

}  // namespace tonnx
