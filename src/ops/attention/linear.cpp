// linear.cpp - attention whose past is a state of fixed size: LinearAttention, CausalConvWithState.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/attention/rows.h"
#include "ops/frame/emission.h"
#include "ops/frame/expansion.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/linalg/rows.h"

namespace tonnx {
namespace {

bool is_gated(const NodeView& n) { return n.s("update_rule").starts_with("gated"); }
bool is_delta(const NodeView& n) { return n.s("update_rule").ends_with("delta"); }

void infer_linear_attention(InferNode& n) {
  const std::string rule = n.s("update_rule");
  require(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta", "the update rule is '{}'",
          rule);
  const int64_t q_heads = n.i("q_num_heads"), kv_heads = n.i("kv_num_heads");
  require(q_heads >= 1 && kv_heads >= 1 && q_heads % kv_heads == 0,
          "{} heads of the query do not divide into {} of the key", q_heads, kv_heads);
  require(n.has("decay") == is_gated(n), "the rule '{}' {} a decay", rule, is_gated(n) ? "needs" : "has not");
  require(n.has("beta") == is_delta(n), "the rule '{}' {} a beta", rule, is_delta(n) ? "needs" : "has not");
  for (const char* name : {"query", "key", "value", "decay", "beta"}) {
    const auto rank = n.has(name) ? n.find_rank(name) : std::nullopt;
    require(!rank || *rank == 3, "input '{}' has {} dimensions where three are needed", name, rank.value_or(0));
  }
  const Shape *q = n.find_shape("query"), *k = n.find_shape("key"), *v = n.find_shape("value");
  const Dim batch = q ? (*q)[0] : n.fresh(), length = q ? (*q)[1] : n.fresh();
  const Dim k_size = k ? floor_div((*k)[2], Dim(kv_heads)) : n.fresh();
  const Dim v_size = v ? floor_div((*v)[2], Dim(kv_heads)) : n.fresh();
  n.set(0, n.dtype("query"), Shape{batch, length, v_size * Dim(q_heads)});
  const DType state = n.has("past_state") ? n.dtype("past_state") : n.dtype("query");
  if (n.output_count() > 1) n.set(1, state, Shape{batch, Dim(kv_heads), k_size, v_size});
}

/// A recurrence over time in closed form. With G the sum of all decays up to a time, the state is that of the past
/// times exp(G), plus what each earlier time s wrote, times exp(G_t - G_s).
struct Recurrence {
  Value* written = nullptr;  // what each time adds to the state, beside its key
  Value* total = nullptr;    // G; null: nothing decays
  Value* remains = nullptr;  // exp(G_t - G_s) for s <= t, 0 elsewhere; with a last dimension where keys decay apart
  bool is_per_key = false;   // the elements of a key decay each on its own
};

Value* in_float(const OnnxNode& n, AtenBuilder& aten, const char* name) {
  Value* x = n.input(name);
  return n.dtype(name) == DType::Float32 ? x : aten("to.dtype", x, DType::Float32);
}

/// (batch, heads, time, size)
Value* by_head(const OnnxNode& n, AtenBuilder& aten, const char* name, int64_t heads) {
  Value* x = aten("unflatten.int", in_float(n, aten, name), -1, IntArgs{heads, -1});
  return aten("transpose.int", x, 1, 2);
}

void add_decay(const OnnxNode& n, AtenBuilder& aten, Recurrence& r, const IntArg& length) {
  const int64_t heads = n.i("kv_num_heads");
  const Shape* shape = n.find_shape("decay");
  r.is_per_key = shape == nullptr || !(*shape)[2].is(heads);
  Value* decay = by_head(n, aten, "decay", heads);
  r.total = aten("cumsum", decay, 2);
  Value* between = aten("sub.Tensor", aten("unsqueeze", r.total, 3), aten("unsqueeze", r.total, 2));
  Value* later = aten("triu", aten("ones", IntArgs{length, length}, Kw{"dtype", DType::Bool}), 1);
  const double never = -std::numeric_limits<double>::infinity();  // before exp, which overflows on what is to come
  r.remains = aten("exp", aten("masked_fill.Scalar", between, aten("unsqueeze", later, -1), never));
  if (!r.is_per_key) r.remains = aten("squeeze.dim", r.remains, -1);
}

/// How much of what the key of each time wrote the other sees later: (batch, heads, time, earlier time).
Value* overlap(AtenBuilder& aten, const Recurrence& r, Value* x, Value* key, int64_t group) {
  const auto repeated = [&](Value* of) { return group == 1 ? of : aten("repeat_interleave.self_int", of, group, 1); };
  if (r.total != nullptr && r.is_per_key) {
    return aten("einsum", "bhtd,bhsd,bhtsd->bhts", std::vector{x, repeated(key), repeated(r.remains)});
  }
  Value* product = aten("matmul", x, aten("transpose.int", repeated(key), -2, -1));
  return r.total ? aten("mul.Tensor", product, repeated(r.remains)) : aten("tril", product);
}

/// What is left of the past state, as each time sees it through x.
Value* seen_past(AtenBuilder& aten, const Recurrence& r, Value* x, Value* past, int64_t group) {
  const auto repeated = [&](Value* of) { return group == 1 ? of : aten("repeat_interleave.self_int", of, group, 1); };
  if (r.total != nullptr) x = aten("mul.Tensor", x, aten("exp", repeated(r.total)));
  return aten("matmul", x, repeated(past));
}

/// The delta rule writes the difference to what the state holds for the key already, which depends on all that was
/// written before: one triangular system.
Value* corrected(const OnnxNode& n, AtenBuilder& aten, const Recurrence& r, Value* key, Value* value, Value* past) {
  Value* beta = aten("unsqueeze", aten("transpose.int", in_float(n, aten, "beta"), 1, 2), -1);
  if (past != nullptr) value = aten("sub.Tensor", value, seen_past(aten, r, key, past, 1));
  Value* system = aten("mul.Tensor", beta, overlap(aten, r, key, key, 1));
  return aten("linalg_solve_triangular", system, aten("mul.Tensor", beta, value), Kw{"upper", false},
              Kw{"unitriangular", true});
}

/// Times the scale, which follows from the size of a head where it is not given.
Value* scaled(const OnnxNode& n, AtenBuilder& aten, Value* y) {
  if (n.f("scale") != 0.0) return aten("mul.Scalar", y, n.f("scale"));
  const Shape* query = n.find_shape("query");
  const auto hidden = query ? (*query)[2].constant() : std::nullopt;
  if (!hidden) {
    const IntArg size = aten.floor_div(n.size("query", 2), n.i("q_num_heads"));
    return aten("div.Tensor", y, aten("sqrt", aten("tonnx::int_scalar", size, Kw{"dtype", DType::Float32})));
  }
  const int64_t size = *hidden / n.i("q_num_heads");
  require(size >= 1, "the heads of the query are empty");
  return aten("mul.Scalar", y, 1.0 / std::sqrt(static_cast<double>(size)));
}

Values lower_linear_attention(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t q_heads = n.i("q_num_heads"), kv_heads = n.i("kv_num_heads"), group = q_heads / kv_heads;
  n.i("chunk_size");  // a hint for speed
  Value* query = by_head(n, aten, "query", q_heads);
  Value* key = by_head(n, aten, "key", kv_heads);
  Value* value = by_head(n, aten, "value", kv_heads);
  Value* past = n.has("past_state") ? in_float(n, aten, "past_state") : nullptr;
  Recurrence r;
  if (is_gated(n)) add_decay(n, aten, r, n.size("query", 1));
  r.written = is_delta(n) ? corrected(n, aten, r, key, value, past) : value;
  Value* written = group == 1 ? r.written : aten("repeat_interleave.self_int", r.written, group, 1);
  Value* y = aten("matmul", overlap(aten, r, query, key, group), written);
  if (past != nullptr) y = aten("add.Tensor", y, seen_past(aten, r, query, past, group));
  y = aten("flatten.using_ints", aten("transpose.int", scaled(n, aten, y), 1, 2), 2);
  if (n.dtype("query") != DType::Float32) y = aten("to.dtype", y, n.dtype("query"));
  if (!n.wants_output(1)) return {y, nullptr};
  Value* end = r.total ? aten("slice.Tensor", r.total, 2, -1) : nullptr;
  if (end != nullptr) key = aten("mul.Tensor", key, aten("exp", aten("sub.Tensor", end, r.total)));
  Value* state = aten("matmul", aten("transpose.int", key, -2, -1), r.written);
  if (past != nullptr && end != nullptr) {
    past = aten("mul.Tensor", past, aten("exp", aten("transpose.int", end, -2, -1)));
  }
  if (past != nullptr) state = aten("add.Tensor", state, past);
  const DType dtype = n.has("past_state") ? n.dtype("past_state") : n.dtype("query");
  return {y, dtype == DType::Float32 ? state : aten("to.dtype", state, dtype)};
}

/// A convolution that sees what was before: the last inputs of the past stand in front.
bool expand_causal_conv(const NodeView& n, OnnxEdit& edit) {
  const Node& node = n.node();
  const std::string activation = n.s("activation");
  require(activation == "none" || activation == "silu" || activation == "swish", "the activation is '{}'", activation);
  const Shape* weight = n.find_shape("weight");
  require(weight == nullptr || weight->size() == 3, "the weight has not three dimensions");
  const auto channels = weight ? (*weight)[0].constant() : std::nullopt;
  const auto size = weight ? (*weight)[2].constant() : std::nullopt;
  if (!channels || !size) edit.cannot("the shape of its weight is not known");
  require(*size >= 1, "the kernel has {} elements", *size);
  Expansion make(edit);
  Value* x = node.input(0);
  Value* all = x;
  if (node.input(3) != nullptr) {
    all = make.concat({node.input(3), x}, 2);
  } else if (*size > 1) {
    all = make("Pad", {x, make.ints({0, 0, *size - 1, 0, 0, 0})});
  }
  std::vector<Value*> inputs{all, node.input(1)};
  if (node.input(2) != nullptr) inputs.push_back(node.input(2));
  Value* y = make("Conv", inputs, {{"group", *channels}});
  if (activation != "none") y = make("Swish", {y});
  Value* state = n.wants_output(1) ? make.slice(all, 2, make.size(x, 2), make.ints({kToTheEnd})) : nullptr;
  return edit.replace_with({y, state});
}

std::string emit_solve_triangular(const Emission& e) {
  std::string text = fmt::format("torch.linalg.solve_triangular({}, {}", e.text("self"), e.text("B"));
  for (const char* name : {"upper", "left", "unitriangular"}) {
    if (e.node().find_attribute(name) != nullptr) text += fmt::format(", {}={}", name, e.text(name));
  }
  return text + ")";
}

constexpr OnnxOp kLinearAttentionOnnx[] = {
    {.sig = "LinearAttention(T query, T key, T value, S? past_state, T? decay, T? beta, *, int chunk_size=64, "
            "int kv_num_heads, int q_num_heads, float scale=0.0, str update_rule=\"gated_delta\") "
            "-> (T output, S present_state)",
     .since = 27,
     .traits = kSumsProducts,
     .infer = infer_linear_attention,
     .eval = eval_linear_attention,
     .lower = lower_linear_attention},
    {.sig = "CausalConvWithState(T input, T weight, T? bias, T? past_state, *, str activation=\"none\") "
            "-> (T output, T present_state)",
     .since = 27,
     .traits = kSumsProducts,
     .expand = expand_causal_conv},
};

constexpr AtenOp kLinearAttentionAten[] = {
    {.sig = "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
            "unitriangular=False) -> Tensor",
     .types = types_solve_triangular,
     .layout = Layout::Own,
     .emit = emit_solve_triangular,
     .raise = raise_solve_triangular},
};

}  // namespace

extern const OpFamily kLinearAttentionOps;
constinit const OpFamily kLinearAttentionOps{"linear_attention", kLinearAttentionOnnx, kLinearAttentionAten};

}  // namespace tonnx
