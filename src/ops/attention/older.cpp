// older.cpp - Attention in matrix products and Softmax, for opsets before 23.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/attention/rows.h"
#include "ops/frame/expansion.h"

namespace tonnx {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

/// Whether a row of a mask may forbid everything: then Softmax gives NaN where Attention gives zeros.
bool may_forbid_rows(const Value* mask) {
  const auto is_finite = [](const Value* value) {
    const auto numbers =
        value && value->constant && value->constant->count() == 1 ? floats_of(*value->constant) : std::nullopt;
    return numbers && std::isfinite(numbers->front());
  };
  if (mask->constant && mask->constant->count() <= int64_t{1} << 24) {
    const auto numbers = floats_of(*mask->constant, mask->constant->count());
    if (!numbers || mask->constant->dims.empty()) return true;
    const auto width = static_cast<size_t>(std::max<int64_t>(mask->constant->dims.back(), 1));
    const double forbidden = mask->constant->dtype == DType::Bool ? 0 : kForbidden;
    for (size_t row = 0; row + width <= numbers->size(); row += width) {
      const auto begin = numbers->begin() + static_cast<ptrdiff_t>(row);
      if (std::all_of(begin, begin + static_cast<ptrdiff_t>(width), [&](double x) { return x == forbidden; }))
        return true;
    }
    return false;
  }
  const Node* maker = mask->producer;
  const bool is_choice = maker && maker->domain.empty() && maker->op == "Where";
  return !(is_choice && is_finite(maker->input(1)) && is_finite(maker->input(2)));
}

/// An Attention on its way to older operators. Heads may be absent: then there is one, and three dimensions.
class OlderAttention {
 public:
  OlderAttention(const NodeView& n, OnnxEdit& edit) : n_(n), edit_(edit), make_(edit) {}

  bool run() {
    Node& node = edit_.node();
    const auto rank = n_.find_rank("Q");
    if (!rank || n_.find_shape("K") == nullptr || n_.find_shape("V") == nullptr) return false;
    if (n_.wants_output(3) || n_.has("nonpad_kv_seqlen") || n_.f("softcap") != 0 || n_.find_i("softmax_precision") ||
        n_.i("left_window_size") != -1 || n_.i("right_window_size") != -1)
      return false;
    dtype_ = n_.dtype("Q");
    Value *q = node.input(0), *k = node.input(1), *v = node.input(2);
    const int64_t q_heads = n_.find_i("q_num_heads").value_or(1), kv_heads = n_.find_i("kv_num_heads").value_or(1);
    require(q_heads >= 1 && kv_heads >= 1, "{} heads of Q, and {} of K", q_heads, kv_heads);
    require(q && k && v && n_.has("past_key") == n_.has("past_value"), "an input is missing");
    const bool is_joined = *rank == 3 && (q_heads > 1 || kv_heads > 1 || (n_.find_rank("attn_mask").value_or(2) > 2) ||
                                          n_.has("past_key"));
    if (is_joined) {
      q = split(q, q_heads);
      k = split(k, kv_heads);
      v = split(v, kv_heads);
    }
    if (n_.has("past_key")) {
      k = make_.concat({node.input(4), k}, 2);
      v = make_.concat({node.input(5), v}, 2);
    }
    const int64_t groups = group_size(*rank, q_heads, kv_heads);
    if (groups == 0) return false;
    Value* y = attended(q, k, v, groups);
    if (y == nullptr) return false;
    if (is_joined) y = make_.reshape(make_.transpose(y, {0, 2, 1, 3}), {0, 0, -1});
    return edit_.replace_with({y, n_.wants_output(1) ? k : nullptr, n_.wants_output(2) ? v : nullptr});
  }

 private:
  Value* split(Value* x, int64_t heads) { return make_.transpose(make_.reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3}); }

  /// How many heads of Q share one of K; 0 where that is not known.
  int64_t group_size(int64_t rank, int64_t q_heads, int64_t kv_heads) const {
    if (rank == 3) return kv_heads > 0 && q_heads % kv_heads == 0 ? q_heads / kv_heads : 0;
    const Dim &q = n_.find_shape("Q")->at(1), &k = n_.find_shape("K")->at(1);
    if (q == k) return 1;
    if (!q.is_constant() || !k.is_constant() || k.is(0) || *q.constant() % *k.constant() != 0) return 0;
    return *q.constant() / *k.constant();
  }

  std::optional<double> find_scale() const {
    if (const auto given = n_.find_f("scale")) return given;
    auto size = n_.find_shape("Q")->back().constant();
    if (size && n_.find_rank("Q") == 3) *size /= n_.find_i("q_num_heads").value_or(1);
    return size && *size > 0 ? std::optional(1.0 / std::sqrt(static_cast<double>(*size))) : std::nullopt;
  }

  /// K with its last two dimensions swapped; a transposition that it comes from is done at once.
  Value* transposed(Value* k) {
    const auto rank = static_cast<size_t>(k->type.rank().value_or(4));
    std::vector<int64_t> order;
    for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
    std::swap(order[rank - 1], order[rank - 2]);
    Node* maker = k->producer;
    const Attribute* perm =
        maker && maker->domain.empty() && maker->op == "Transpose" ? maker->find_attribute("perm") : nullptr;
    const auto* before = perm ? perm->value.get<std::vector<int64_t>>() : nullptr;
    if (before != nullptr && before->size() == rank && maker->graph == &edit_.graph()) {
      std::vector<int64_t> both;
      for (const int64_t axis : order) both.push_back((*before)[static_cast<size_t>(axis)]);
      return make_.transpose(maker->input(0), both);
    }
    return make_.transpose(k, order);
  }

  /// Scores of a causal attention: what lies above the diagonal is forbidden.
  Value* above_forbidden(Value* scores, Value* q, Value* k) {
    const Shape &of_q = *n_.find_shape("Q"), &of_k = *n_.find_shape("K");
    const size_t at = of_q.size() == 3 ? 1 : 2;
    const auto length = of_q[at].constant(), keys = of_k[at].constant();
    constexpr int64_t kMostKnown = int64_t{1} << 18;
    if (length && keys && *length <= kMostKnown && *keys <= kMostKnown && *length * *keys <= kMostKnown &&
        !n_.has("past_key")) {
      std::vector<double> bias;
      for (int64_t i = 0; i < *length; ++i) {
        for (int64_t j = 0; j < *keys; ++j) bias.push_back(j <= i ? 0 : kForbidden);
      }
      return make_("Add", {scores, make_.numbers(dtype_, {*length, *keys}, bias)});
    }
    const auto axis_of = [](const Value* x) { return x->type.rank().value_or(4) - 2; };
    Value* rows = make_.range(make_.size(q, axis_of(q)));
    if (n_.has("past_key")) rows = make_("Add", {rows, make_.size(edit_.node().input(4), 2)});
    const bool is_square = of_q[at] == of_k[at] && !n_.has("past_key");
    Value* columns = is_square ? rows : make_.range(make_.size(k, axis_of(k)));
    Value* forbidden = make_("Less", {make_.unsqueeze(rows, {1}), columns});
    return make_("Where", {forbidden, make_.number(dtype_, kForbidden), scores});
  }

  Value* attended(Value* q, Value* k, Value* v, int64_t groups) {
    const auto scale = find_scale();
    if (!scale) edit_.cannot("the size of a head is not known");
    Value* mask = edit_.node().input(3);
    if (*scale != 1) q = make_("Mul", {q, make_.number(dtype_, *scale)});
    Value* together = q;
    // heads that share keys become more rows of one head
    const Shape* shape = n_.find_shape("Q");
    const bool is_plain = mask == nullptr && !n_.flag("is_causal");
    const int64_t heads =
        shape->size() == 4 ? shape->at(1).constant().value_or(0) : n_.find_i("q_num_heads").value_or(1);
    const int64_t size = shape->back().constant().value_or(0) / (shape->size() == 4 ? 1 : heads);
    if (groups > 1) together = make_.reshape(q, {0, heads / groups, -1, size});
    Value* scores = make_("MatMul", {together, transposed(k)});
    if (groups > 1 && !is_plain) scores = make_("Reshape", {scores, rows_shape(q, k, heads)});
    if (n_.flag("is_causal")) scores = above_forbidden(scores, q, k);
    const bool is_bool = mask && mask->type.dtype == DType::Bool;
    if (is_bool) {
      scores = make_("Where", {mask, scores, make_.number(dtype_, kForbidden)});
    } else if (mask) {
      scores = make_("Add", {scores, mask});
    }
    Value* weights = make_("Softmax", {scores}, {{"axis", int64_t{-1}}});
    if (mask && may_forbid_rows(mask)) {
      Value* zero = make_.number(dtype_, 0);
      weights =
          is_bool ? make_("Where", {mask, weights, zero})
                  : make_("Where", {make_("Equal", {mask, make_.number(mask->type.dtype, kForbidden)}), zero, weights});
    }
    if (groups == 1) return make_("MatMul", {weights, v});
    if (!is_plain) weights = make_("Reshape", {weights, rows_shape(nullptr, k, heads / groups)});
    Value* y = make_("MatMul", {weights, v});
    return make_("Reshape", {y, result_shape(q, v, heads)});
  }

  /// [batch, heads, length (or what is left), keys]
  Value* rows_shape(Value* q, Value* k, int64_t heads) {
    const Dim keys = k->type.shape ? k->type.shape->at(2) : Dim::symbol("");
    if (q == nullptr) {
      if (const auto known = keys.constant()) return make_.ints({0, heads, -1, *known});
      return make_.concat({make_.ints({0, heads, -1}), make_.size(k, 2)}, 0);
    }
    const Dim length = q->type.shape ? q->type.shape->at(2) : Dim::symbol("");
    if (const auto known = length.constant()) return make_.ints({0, heads, *known, -1});
    return make_.concat({make_.ints({0, heads}), make_.size(q, 2), make_.ints({-1})}, 0);
  }
  Value* result_shape(Value* q, Value* v, int64_t heads) {
    const Dim length = q->type.shape ? q->type.shape->at(2) : Dim::symbol("");
    const Dim size = v->type.shape ? v->type.shape->at(3) : Dim::symbol("");
    if (size.is_constant()) return make_.ints({0, heads, -1, *size.constant()});
    if (length.is_constant()) return make_.ints({0, heads, *length.constant(), -1});
    return make_.concat({make_.ints({0, heads}), make_.size(q, 2), make_.ints({-1})}, 0);
  }

  const NodeView& n_;
  OnnxEdit& edit_;
  Expansion make_;
  DType dtype_ = DType::Undefined;
};

}  // namespace

bool attention_in_older(const NodeView& n, OnnxEdit& edit) { return OlderAttention(n, edit).run(); }

}  // namespace tonnx
