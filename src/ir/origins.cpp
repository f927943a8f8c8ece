// origins.cpp - keeps notes of what constants were made of, in the thread that asked for them.
#include "ir/origins.h"

#include <utility>

namespace tonnx {
namespace {

thread_local Origins* current = nullptr;

}  // namespace

Origins* origins() { return current; }

OriginsScope::OriginsScope(Origins& notes) : outer_(std::exchange(current, &notes)) {}
OriginsScope::~OriginsScope() { current = outer_; }

void note_move(const TensorPtr& result, const TensorPtr& from, const std::function<TensorPtr(const Tensor&)>& move) {
  if (current == nullptr || result->data.data() == from->data.data()) return;
  const auto compute = [move](const Tensors& inputs) { return Tensors{move(*inputs[0])}; };
  current->computed.push_back({.inputs = {from}, .results = {result}, .moved = {0}, .compute = compute});
}

void note_cast(const TensorPtr& result, const TensorPtr& from) {
  if (current == nullptr || result->data.data() == from->data.data()) return;
  current->computed.push_back({.op = "Cast", .inputs = {from}, .results = {result}});
}

void note_number(std::string_view node, double number, const TensorPtr& constant) {
  if (current != nullptr) current->numbers.push_back({std::string(node), number, constant});
}

void note_made_of_number(const TensorPtr& result, std::string_view node, double number) {
  if (current == nullptr) return;
  for (const NotedNumber& noted : current->numbers) {
    if (noted.node == node && noted.number == number) return note_cast(result, noted.constant);
  }
}

void note_equal(const TensorPtr& kept, const TensorPtr& dropped, bool transposed) {
  if (current != nullptr && kept->data.data() != dropped->data.data())
    current->equal.push_back({kept, dropped, transposed});
}

}  // namespace tonnx
