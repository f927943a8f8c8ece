// words.cpp - asks the nodes that use a value what it is to them.
#include "modules/words.h"

#include <string>

namespace tonnx {
namespace {

struct Word {
  std::string_view argument, word;
};
constexpr std::string_view kMask = "mask", kResidual = "residual";
constexpr Word kOfAttention[] = {{"query", "q"}, {"key", "k"}, {"value", "v"}, {"attn_mask", kMask}};

const Symbol kAten("aten"), kAttention("scaled_dot_product_attention"), kAdd("add");

void find_words_in(const Graph& graph, Words& words) {
  for (const Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) find_words_in(*inner, words);
    if (node.domain != kAten || node.op != kAttention) continue;
    for (const auto& [argument, word] : kOfAttention) {
      const Attribute* found = node.find_attribute(argument);
      const auto* operand = found ? found->value.get<Operand>() : nullptr;
      if (operand == nullptr) continue;
      const auto [at, fresh] = words.try_emplace(node.input(operand->index), word);
      if (!fresh && at->second != word) at->second = {};  // one tensor for several: it is none of them
    }
  }
}

bool is_only_added(const Graph& graph, const Value& value) {
  if (value.uses.size() != 1 || !value.type.is_tensor() || !is_float(value.type.dtype)) return false;
  const Node* sum = value.uses[0].user;
  if (sum == nullptr || sum->graph != &graph || sum->domain != kAten || sum->op != kAdd || sum->inputs().size() != 2)
    return false;
  const Value* other = sum->input(sum->input(0) == &value ? 1 : 0);
  return other != nullptr && other->producer != nullptr && other->type.shape == value.type.shape;
}

}  // namespace

Words find_words(const Graph& graph) {
  Words words;
  find_words_in(graph, words);
  std::erase_if(words, [](const auto& each) { return each.second.empty(); });
  return words;
}

bool is_word_of_argument(std::string_view name) { return name == kMask || name == kResidual; }

void name_residual(Graph& graph) {
  for (size_t i = 1; i < graph.inputs().size(); ++i) {
    if (!is_only_added(graph, *graph.inputs()[i])) continue;
    graph.inputs()[i]->name = graph.unique_name(std::string(kResidual));
    return;
  }
}

}  // namespace tonnx
