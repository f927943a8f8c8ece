// split_slices.cpp - Slices that are all the parts of one tensor become a Split.
#include <algorithm>

#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"
#include "passes/simplify/onnx/cuts.h"

namespace tonnx {
namespace {

constexpr size_t kMostParts = 32;

struct Part {
  Node* slice;
  Cut cut;
};

/// The Slices of a value that are its parts along one axis, from the first to the last; empty where they are not.
std::vector<Part> parts_of(const Value& value) {
  std::vector<Part> parts;
  if (value.uses.size() < 2 || value.uses.size() > kMostParts || !value.type.shape) return {};
  for (const Use& use : value.uses) {
    if (use.user == nullptr || use.index != 0 || use.user->graph != value.graph || !is_onnx(use.user, kSlice)) continue;
    const auto cuts = cuts_of(*use.user);
    if (!cuts || cuts->size() != 1 || cuts->front().step != 1) continue;
    if (!parts.empty() && parts.front().cut.axis != cuts->front().axis) return {};
    parts.push_back({use.user, cuts->front()});
  }
  if (parts.size() < 2) return {};
  const auto size = (*value.type.shape)[static_cast<size_t>(parts.front().cut.axis)].constant();
  if (!size) return {};
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.cut.start < b.cut.start; });
  int64_t next = 0;
  for (Part& part : parts) {
    part.cut.end = std::min(part.cut.end, *size);
    if (part.cut.start != next || part.cut.end <= part.cut.start) return {};
    next = part.cut.end;
  }
  return next == *size ? parts : std::vector<Part>{};
}

/// 1. All parts of a value along one axis, where its size is known
bool split(Value& value, Rewriter& rewriter) {
  const std::vector<Part> parts = parts_of(value);
  if (parts.empty()) return false;
  std::vector<int64_t> sizes;
  for (const Part& part : parts) sizes.push_back(part.cut.end - part.cut.start);
  Graph& graph = *value.graph;
  Node* before = value.producer ? value.producer->next : graph.first();
  Value* first = rewriter.add(*before,
                              {.op = "Split",
                               .inputs = {&value, rewriter.ints(graph, sizes, "split")},
                               .attributes = {{"axis", parts.front().cut.axis, AttrType::Int, {}, {}}},
                               .outputs = parts.size()},
                              parts.front().slice->output(0)->name);
  if (first == nullptr) return false;
  const std::vector<Value*> outputs = first->producer->outputs();
  for (size_t i = 0; i < parts.size(); ++i) rewriter.replace(parts[i].slice->output(0), outputs[i]);
  return true;
}

}  // namespace

bool split_slices(Graph& graph, Rewriter& rewriter) {
  bool is_changed = false;
  for (Value* input : graph.inputs()) is_changed |= split(*input, rewriter);
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) is_changed |= split_slices(*subgraph, rewriter);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      if (Value* output = node->output(i); output != nullptr) is_changed |= split(*output, rewriter);
    }
  }
  return is_changed;
}

}  // namespace tonnx
