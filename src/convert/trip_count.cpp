// trip_count.cpp - recognises counters and their limits.
#include "convert/trip_count.h"

#include <algorithm>

#include "ops/frame/infer.h"
#include "ops/frame/node_view.h"

namespace tonnx {
namespace {

/// low < high
struct LessThan {
  Dim low, high;
  bool operator==(const LessThan&) const = default;
};

bool is_op(const Value* value, std::string_view op) {
  return value && value->producer && value->producer->domain.empty() && value->producer->op == Symbol(op);
}

const Value* behind_identities(const Value* value) {
  while (is_op(value, "Identity")) value = value->producer->input(0);
  return value;
}

/// An integer, also where it is held as a float.
std::optional<Dim> find_integer(const Value* value) {
  while (value != nullptr) {
    const auto dims = find_dims(*value);
    if (dims) return dims->size() == 1 ? std::optional((*dims)[0]) : std::nullopt;
    if (value->constant && value->constant->count() == 1 && is_float(value->constant->dtype)) {
      const double number = element_as_double(*value->constant, 0);
      constexpr double kExact = 9007199254740992.0;  // 2^53
      const auto whole = std::abs(number) < kExact ? static_cast<int64_t>(number) : 0;
      return static_cast<double>(whole) == number ? std::optional(Dim(whole)) : std::nullopt;
    }
    const bool is_same =
        is_op(value, "Cast") || is_op(value, "Identity") || is_op(value, "Squeeze") || is_op(value, "Unsqueeze");
    value = is_same ? value->producer->input(0) : nullptr;
  }
  return std::nullopt;
}

/// All comparisons that make up the condition; nothing where it is anything else.
std::optional<std::vector<LessThan>> find_comparisons(const Value* condition, int depth = 0) {
  constexpr int kDepth = 8;
  if (depth > kDepth) return std::nullopt;
  while (is_op(condition, "Identity") || is_op(condition, "Squeeze") || is_op(condition, "Unsqueeze") ||
         is_op(condition, "Reshape") ||
         (is_op(condition, "Cast") && condition->producer->input(0) &&
          condition->producer->input(0)->type.dtype == DType::Bool)) {
    condition = condition->producer->input(0);
  }
  if (is_op(condition, "And")) {
    auto a = find_comparisons(condition->producer->input(0), depth + 1);
    const auto b = a ? find_comparisons(condition->producer->input(1), depth + 1) : std::nullopt;
    if (!b) return std::nullopt;
    a->insert(a->end(), b->begin(), b->end());
    return a;
  }
  const bool upwards = is_op(condition, "Less") || is_op(condition, "LessOrEqual");
  if (!upwards && !is_op(condition, "Greater") && !is_op(condition, "GreaterOrEqual")) return std::nullopt;
  const auto a = find_integer(condition->producer->input(upwards ? 0 : 1)),
             b = find_integer(condition->producer->input(upwards ? 1 : 0));
  if (!a || !b) return std::nullopt;
  const bool may_be_equal = is_op(condition, "LessOrEqual") || is_op(condition, "GreaterOrEqual");
  return std::vector{LessThan{*a, may_be_equal ? *b + 1 : *b}};
}

bool is_one(const Value* value) {
  if (value == nullptr) return false;
  TensorPtr tensor = value->constant;
  if (!tensor && is_op(value, "Constant")) tensor = find_tensor_of_constant(*value->producer);
  return tensor && tensor->count() == 1 && is_integer(tensor->dtype) && element_as_int(*tensor, 0) == 1;
}

}  // namespace

std::vector<std::optional<Dim>> find_counters(const Node& loop, const Graph& body) {
  std::vector<std::optional<Dim>> result;
  for (size_t i = 2; i < loop.inputs().size(); ++i) {
    result.emplace_back();
    const Value* start = loop.input(i);
    if (!start->type.is_tensor() || !is_integer(start->type.dtype) || start->type.rank().value_or(2) > 1) continue;
    const auto dims = find_dims(*start);
    const Value* next = behind_identities(body.outputs()[i - 1]);
    if (!dims || dims->size() != 1 || !is_op(next, "Add") || next->producer->graph != &body) continue;
    const Value *a = behind_identities(next->producer->input(0)), *b = next->producer->input(1);
    if (behind_identities(b) == body.inputs()[i]) std::swap(a, b);
    if (behind_identities(a) == body.inputs()[i] && is_one(behind_identities(b))) result.back() = (*dims)[0];
  }
  return result;
}

void count_iterations(Node& loop, Graph& body, const Dim& i, int mark) {
  const auto inside = find_comparisons(body.outputs()[0]);
  if (!inside) return;
  std::vector<LessThan> before;  // what the condition says of the first iteration, if it is the same one
  std::optional<Dim> count;
  for (const LessThan& each : *inside) {
    const Dim rest = each.low - i;
    if (FreshDims::is_newer(rest, mark) || FreshDims::is_newer(each.high, mark)) return;
    before.push_back({rest - 1, each.high});
    const Dim turns = each.high - rest + 1;
    count = count ? min(*count, turns) : turns;
  }
  const bool is_same = loop.input(1) != nullptr && find_comparisons(loop.input(1)) == before;
  count = max(*count, Dim(is_same ? 0 : 1));
  if (loop.input(0) != nullptr) {
    const auto limit = find_dims(*loop.input(0));
    if (!limit || limit->size() != 1) return;
    const auto number = (*limit)[0].constant();
    constexpr int64_t kForever = int64_t{1} << 31;
    if (!number || *number < kForever) count = min(*count, (*limit)[0]);
  }
  Graph& graph = *loop.graph;
  Node* known = graph.add_node("tonnx", "Integer", &loop);
  known->version = 1;
  Value* value = graph.add_output_to(known, graph.unique_name("count"), Type::tensor(DType::Int64, Shape{}));
  value->known_ints = {*count};
  loop.set_input(0, value);
  if (is_same) loop.set_input(1, nullptr);
  body.set_output(0, body.inputs()[1]);
}

}  // namespace tonnx
