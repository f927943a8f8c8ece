// hidden_views.cpp - operators that may give a view, though their schemas do not say so.
#include <algorithm>
#include <optional>
#include <string>

#include "passes/functionalize/readying.h"

namespace tonnx {
namespace {

/// The only item of the argument `tensors`.
std::optional<Operand> only_tensor(const Node& node) {
  const Attribute* given = node.find_attribute("tensors");
  const auto* list = given ? given->value.get<AttrList>() : nullptr;
  const auto* item = list && list->size() == 1 ? list->front().get<Operand>() : nullptr;
  const Value* value = item ? node.input(item->index) : nullptr;
  return value && value->type.is_tensor() && value->type.shape ? std::optional(*item) : std::nullopt;
}

void become(Node& node, std::string_view op, Operand self) {
  node.op = op;
  node.attributes.clear();
  node.set_attribute("self", self);
  node.mark_changed();
}

/// A letter for each dimension, "..." among them written as dots: `b...i` of four dimensions is `b..i`.
std::optional<std::string> letters_of(std::string text, size_t rank) {
  std::erase(text, ' ');
  const size_t dots = text.find("...");
  if (dots == std::string::npos) return text.size() == rank ? std::optional(text) : std::nullopt;
  if (text.size() - 3 > rank) return std::nullopt;
  const size_t extra = rank - (text.size() - 3);
  std::string names;
  for (size_t i = 0; i < extra; ++i) names += static_cast<char>('0' + i);
  return text.substr(0, dots) + names + text.substr(dots + 3);
}

/// The same letters in another order are permute; one that stands twice, and last in the result, is diagonal.
void show_view_of_einsum(Node& node, Operand self) {
  const Attribute* given = node.find_attribute("equation");
  const auto* equation = given ? given->value.get<std::string>() : nullptr;
  const size_t arrow = equation ? equation->find("->") : std::string::npos;
  constexpr size_t kMostDims = 10;
  const size_t rank = node.input(self.index)->type.shape->size();
  if (arrow == std::string::npos || rank > kMostDims) return;
  const auto from = letters_of(equation->substr(0, arrow), rank);
  const std::optional<int64_t> result = node.output(0)->type.rank();
  const auto to = result ? letters_of(equation->substr(arrow + 2), static_cast<size_t>(*result)) : std::nullopt;
  if (!from || !to) return;
  if (from->size() == to->size() && std::is_permutation(from->begin(), from->end(), to->begin())) {
    std::vector<int64_t> dims;
    for (const char letter : *to) dims.push_back(static_cast<int64_t>(from->find(letter)));
    become(node, "permute", self);
    return node.set_attribute("dims", std::move(dims));
  }
  if (to->empty() || from->size() != to->size() + 1) return;
  const size_t first = from->find(to->back()), second = from->rfind(to->back());
  std::string rest = *from;
  rest.erase(second, 1).erase(first, 1);
  if (first == second || rest + to->back() != *to) return;
  become(node, "diagonal", self);
  node.set_attribute("dim1", static_cast<int64_t>(first));
  node.set_attribute("dim2", static_cast<int64_t>(second));
}

}  // namespace

void show_view(Node& node) {
  static const Symbol aten("aten"), einsum("einsum"), product("cartesian_prod"), conjugate("conj_physical");
  if (node.domain != aten || (node.op != einsum && node.op != product && node.op != conjugate)) return;
  if (node.output(0) == nullptr) return;
  if (node.op == conjugate) {
    const Attribute* given = node.find_attribute("self");
    const auto* at = given ? given->value.get<Operand>() : nullptr;
    const bool is_real = at && node.input(at->index) && !is_complex(node.input(at->index)->type.dtype);
    return is_real ? become(node, "alias", Operand(*at)) : void();
  }
  const auto self = only_tensor(node);
  if (!self) return;
  if (node.op == product) return become(node, "alias", *self);
  show_view_of_einsum(node, *self);
}

}  // namespace tonnx
