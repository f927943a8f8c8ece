// attention_mask.cpp - aten: proves of masks that they leave something to each query.
#include "passes/recognise/aten/attention_mask.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>

#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

constexpr int kDeepest = 16;
constexpr int kDeepestArithmetic = 4;  // beyond it a mask is made of activations
constexpr int64_t kMostElements = int64_t{1} << 22;

/// Calls `is_fine` with each row of a constant; false where there is none, or it is too large to be looked at.
template <class F>
bool holds_for_rows(const Tensor& tensor, F is_fine) {
  if (tensor.dims.empty() || tensor.count() > kMostElements) return false;
  const auto numbers = floats_of(tensor, kMostElements);
  const auto width = static_cast<size_t>(tensor.dims.back());
  if (!numbers || width == 0) return false;
  for (size_t row = 0; row + width <= numbers->size(); row += width) {
    if (!is_fine(std::span(*numbers).subspan(row, width))) return false;
  }
  return true;
}

/// Whether a node takes, repeats or adds rows, or keeps the first elements of them.
bool keeps_first_key(const Node& node) {
  const Value* x = operand(node, "self");
  const auto rank = x ? x->type.rank() : std::nullopt;
  if (is_aten(node, "expand")) return true;
  if (!rank || *rank == 0) return false;
  const auto last = static_cast<int64_t>(*rank) - 1;
  const int64_t* dim = find_int(node, "dim");
  if (is_aten(node, "unsqueeze")) return dim && *dim >= 0 && *dim <= last;
  if (!is_aten(node, "slice", "Tensor")) return false;
  const int64_t at = dim ? (*dim < 0 ? *dim + *rank : *dim) : 0;
  const Attribute* start = node.find_attribute("start");
  return at != last || start == nullptr || start->value.is_none() || is_number(node, "start", 0);
}

bool opens(const Value* mask, bool says_allowed, int depth) {
  if (mask == nullptr || depth > kDeepest) return false;
  if (mask->constant)
    return holds_for_rows(*mask->constant, [&](std::span<const double> row) { return (row[0] != 0) == says_allowed; });
  const Node* node = mask->producer;
  if (node == nullptr) return false;
  if (keeps_first_key(*node)) return opens(operand(*node, "self"), says_allowed, depth + 1);
  if (is_aten(node, "logical_not") || is_aten(node, "bitwise_not"))
    return opens(operand(*node, "self"), !says_allowed, depth + 1);
  if (says_allowed && (is_aten(node, "bitwise_and", "Tensor") || is_aten(node, "logical_and")))
    return opens(operand(*node, "self"), true, depth + 1) && opens(operand(*node, "other"), true, depth + 1);
  if (!says_allowed && (is_aten(node, "bitwise_or", "Tensor") || is_aten(node, "logical_or")))
    return opens(operand(*node, "self"), false, depth + 1) && opens(operand(*node, "other"), false, depth + 1);
  const auto is_not_negative = [&](std::string_view argument) {
    return !node->find_attribute(argument) || number_of(*node, argument).value_or(-1) >= 0;
  };
  if (says_allowed && is_aten(node, "tril") && is_not_negative("diagonal")) {
    const Value* all = operand(*node, "self");
    return all && is_aten(all->producer, "ones");
  }
  // keys that are counted from 0, against rows that are: none lies before the first key
  const auto is_count = [](const Value* value) { return value && is_aten(value->producer, "arange"); };
  const auto is_column = [&](const Value* value) {
    const Node* turned = value ? value->producer : nullptr;
    const int64_t* dim = is_aten(turned, "unsqueeze") ? find_int(*turned, "dim") : nullptr;
    return dim && (*dim == 1 || *dim == -1) && is_count(operand(*turned, "self"));
  };
  const Value *a = operand(*node, "self"), *b = operand(*node, "other");
  if (is_aten(node, says_allowed ? "le" : "gt", "Tensor")) return is_count(a) && is_column(b);
  return is_aten(node, says_allowed ? "ge" : "lt", "Tensor") && is_column(a) && is_count(b);
}

bool is_negative_infinity(double number) { return std::isinf(number) && number < 0; }

/// Whether one of the node's arguments is an infinite number.
bool says_infinity(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& each) {
    const auto* number = each.value.get<double>();
    return number && std::isinf(*number);
  });
}

bool hands_on(const Node& node) {
  constexpr std::array kOps{"slice",   "expand",    "unsqueeze", "squeeze", "transpose", "permute", "reshape", "view",
                            "flatten", "unflatten", "cat",       "to",      "add",       "where",   "select"};
  return node.domain == "aten" &&
         std::any_of(kOps.begin(), kOps.end(), [&](const char* op) { return node.op == Symbol(op); });
}

/// Looks for -inf among the literals and constants that a mask is made of.
class InfinitySearch {
 public:
  /// `is_handed_on`: the elements of the mask are elements of the value, or sums of them.
  bool finds(const Value* value, bool is_handed_on, int depth) {
    if (value == nullptr || value->type.dtype == DType::Bool) return false;
    if (value->type.is_tensor() && value->type.dtype != DType::Undefined && !is_float(value->type.dtype)) return false;
    if (depth > kDeepest) return is_handed_on;
    if (value->constant) return is_handed_on ? forbids_row(*value->constant) : has_infinity(*value->constant);
    const Node* node = value->producer;
    if (node == nullptr) return is_handed_on;  // an input of the model
    if (!seen_.insert(node).second) return false;
    return finds(*node, is_handed_on, depth);
  }

 private:
  bool finds(const Node& node, bool is_handed_on, int depth) {
    const auto is_infinite = [&](const char* name) {
      const auto number = number_of(node, name);
      return number && is_negative_infinity(*number);
    };
    if (is_aten(node, "where", "Scalar") && (is_infinite("self") || is_infinite("other")))
      return !opens(operand(node, "condition"), is_infinite("other"), depth + 1);
    if (is_aten(node, "masked_fill", "Scalar") && is_infinite("value") && opens(operand(node, "mask"), false, 0))
      return finds(operand(node, "self"), is_handed_on, depth + 1);
    if (is_aten(node, "triu") && number_of(node, "diagonal").value_or(0) >= 1) return false;
    if (says_infinity(node)) return true;
    const bool goes_on = is_handed_on && hands_on(node);
    const int next = goes_on || !is_handed_on ? depth + 1 : std::max(depth + 1, kDeepest - kDeepestArithmetic);
    return std::any_of(node.inputs().begin(), node.inputs().end(),
                       [&](const Value* input) { return finds(input, goes_on, next); });
  }

  static bool has_infinity(const Tensor& tensor) {
    if (tensor.count() > kMostElements) return false;
    const auto numbers = floats_of(tensor, kMostElements);
    return numbers && std::any_of(numbers->begin(), numbers->end(), is_negative_infinity);
  }
  static bool forbids_row(const Tensor& tensor) {
    if (tensor.dims.empty() || tensor.dims.back() == 1) return has_infinity(tensor);
    return !holds_for_rows(
        tensor, [](std::span<const double> row) { return !std::all_of(row.begin(), row.end(), is_negative_infinity); });
  }

  std::unordered_set<const Node*> seen_;
};

}  // namespace

bool opens_first_key(const Value* mask, bool says_allowed) { return opens(mask, says_allowed, 0); }

bool may_forbid_rows(const Value* mask) { return InfinitySearch().finds(mask, true, 0); }

}  // namespace tonnx
