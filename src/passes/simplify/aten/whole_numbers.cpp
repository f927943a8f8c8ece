// whole_numbers.cpp - aten: floats that are whole numbers do not go through an integer type and back.
#include <cmath>

#include "ops/frame/op_def.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr int kDeepest = 8;

template <class T>
const T* argument(const Node& node, std::string_view name) {
  const Attribute* found = node.find_attribute(name);
  return found ? found->value.get<T>() : nullptr;
}

/// A whole number among the arguments, whichever way it is written.
std::optional<double> whole_number(const Node& node, std::string_view name) {
  if (const auto* i = argument<int64_t>(node, name)) return static_cast<double>(*i);
  const auto* f = argument<double>(node, name);
  return f && std::floor(*f) == *f ? std::optional(*f) : std::nullopt;
}

bool is_product(const Node& node) {
  return is_aten(node, "matmul") || is_aten(node, "conv1d") || is_aten(node, "conv2d") || is_aten(node, "conv3d");
}

bool is_integer_tensor(const Value* value) {
  return is_integer(value->constant ? value->constant->dtype : value->type.dtype);
}

/// The float type of a value that has nothing but whole numbers; Undefined where that does not show.
DType whole_type(const Value* value, int depth = 0) {
  const Node* node = value->producer;
  if (node == nullptr || depth > kDeepest) return DType::Undefined;
  if (is_aten(*node, "to", "dtype")) {
    const auto* to = argument<DType>(*node, "dtype");
    const bool is_whole = to && is_float(*to) && info(*to).bits >= 32 && is_integer_tensor(node->input(0));
    return is_whole && node->attributes.size() == 2 ? *to : DType::Undefined;
  }
  if (is_aten(*node, "round")) return value->type.dtype;
  if (is_aten(*node, "add", "Scalar") || is_aten(*node, "sub", "Scalar")) {
    const bool is_whole = whole_number(*node, "other") && node->attributes.size() == 2;
    return is_whole ? whole_type(node->input(0), depth + 1) : DType::Undefined;
  }
  if (is_aten(*node, "clamp")) {
    const bool is_whole = whole_number(*node, "min") && whole_number(*node, "max");
    return is_whole ? whole_type(node->input(0), depth + 1) : DType::Undefined;
  }
  if (is_aten(*node, "add", "Tensor") || is_aten(*node, "sub", "Tensor") || is_product(*node)) {
    if (node->inputs().size() != 2) return DType::Undefined;
    const DType left = whole_type(node->input(0), depth + 1);
    const bool fits =
        whole_type(node->input(1), depth + 1) == left || (!is_product(*node) && is_integer_tensor(node->input(1)));
    return fits ? left : DType::Undefined;
  }
  return DType::Undefined;
}

/// Whether whole numbers fit into the integer type: held to its range, or a product, whose sums are exact.
bool fits(const Node& node, DType integer) {
  if (integer == DType::Int32) return is_product(node);
  if (!is_aten(node, "clamp") || info(integer).bits > 16) return false;
  const double count = std::exp2(info(integer).bits), least = is_signed_int(integer) ? -count / 2 : 0;
  const auto low = whole_number(node, "min"), high = whole_number(node, "max");
  return low && high && *low >= least && *high <= least + count - 1;
}

}  // namespace

void keep_whole_numbers(Graph& graph) {
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) keep_whole_numbers(*subgraph);
    // 1. x.to(integer).to(float) with whole numbers x, of that float type and inside the integer type -> x
    if (!is_aten(*node, "to", "dtype") || node->attributes.size() != 2) continue;
    const Node* before = node->input(0)->producer;
    if (before == nullptr || !is_aten(*before, "to", "dtype") || before->attributes.size() != 2) continue;
    const auto *to = argument<DType>(*node, "dtype"), *integer = argument<DType>(*before, "dtype");
    Value* x = before->input(0);
    if (!to || !integer || !is_float(*to) || !is_integer(*integer) || x->producer == nullptr) continue;
    if (fits(*x->producer, *integer) && whole_type(x) == *to) graph.replace_uses(node->output(0), x);
  }
}

}  // namespace tonnx
