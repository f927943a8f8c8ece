// attention.cpp - scaled dot-product attention: Attention <-> aten::scaled_dot_product_attention.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/attention/rows.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/shape/rows.h"

namespace tonnx {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();  // the bias of what is not attended

/// Whether heads are a dimension of their own. Only inputs of three dimensions need to be told how many there are.
bool has_split_heads(const NodeView& n) {
  for (const char* name : {"Q", "K", "V"}) {
    const auto rank = n.find_rank(name);
    require(!rank || *rank == 3 || *rank == 4, "input '{}' has {} dimensions where three or four are needed", name,
            rank.value_or(0));
    if (rank) return *rank == 4;
  }
  return !n.find_i("q_num_heads");
}

int64_t head_count(const NodeView& n, const char* attribute) {
  const int64_t heads = n.find_i(attribute).value_or(0);
  require(heads >= 1, "inputs of three dimensions need '{}'", attribute);
  return heads;
}

/// The sizes of an input as (batch, heads, length, head size); those that are not known are new.
Shape split_shape(InferNode& n, const char* name, const char* heads) {
  const Shape* shape = n.find_shape(name);
  if (has_split_heads(n)) {
    if (shape != nullptr) return *shape;
    return {n.fresh(), n.fresh(), n.fresh(), n.fresh()};
  }
  const int64_t count = head_count(n, heads);
  if (shape == nullptr) return {n.fresh(), Dim(count), n.fresh(), n.fresh()};
  const auto hidden = shape->at(2).constant();
  require(!hidden || *hidden % count == 0, "{} columns of '{}' do not divide into {} heads", hidden.value_or(0), name,
          count);
  return {(*shape)[0], Dim(count), (*shape)[1], floor_div((*shape)[2], Dim(count))};
}

void infer_attention(InferNode& n) {
  const bool is_split = has_split_heads(n);
  for (const char* name : {"Q", "K", "V"}) {
    const auto rank = n.find_rank(name);
    require(!rank || *rank == (is_split ? 4 : 3), "Q, K and V have different numbers of dimensions");
  }
  require(n.has("past_key") == n.has("past_value"), "past_key and past_value come together");
  require(!n.has("past_key") || !n.has("nonpad_kv_seqlen"), "nonpad_kv_seqlen and past_key exclude each other");
  const Shape q = split_shape(n, "Q", "q_num_heads");
  const Shape k = split_shape(n, "K", "kv_num_heads"), v = split_shape(n, "V", "kv_num_heads");
  const auto q_heads = q[1].constant(), kv_heads = k[1].constant();
  require(!q_heads || !kv_heads || *kv_heads == 0 || *q_heads % *kv_heads == 0,
          "{} heads of Q do not divide into the {} of K", q_heads.value_or(0), kv_heads.value_or(0));
  Dim total = k[2];
  if (n.has("past_key")) {
    const Shape* past = n.find_shape("past_key");
    require(past == nullptr || past->size() == 4, "past_key has not four dimensions");
    total = past ? (*past)[2] + k[2] : n.fresh();
  }
  if (is_split) {
    n.set(0, n.dtype("Q"), Shape{q[0], q[1], q[2], v[3]});
  } else {
    n.set(0, n.dtype("Q"), Shape{q[0], q[2], q[1] * v[3]});
  }
  if (n.output_count() > 1) n.set(1, n.dtype("K"), Shape{k[0], k[1], total, k[3]});
  if (n.output_count() > 2) n.set(2, n.dtype("V"), Shape{v[0], v[1], total, v[3]});
  if (n.output_count() > 3) n.set(3, n.dtype("Q"), Shape{q[0], q[1], q[2], total});
}

/// An attention in the making: four-dimensional tensors, and what each query may see.
struct Attention {
  Value* q;
  Value* k;  // with the past
  Value* v;
  IntArg q_length = 0, k_length = 0;
  IntArg past = 0;               // so many keys are in front of those of the first query
  Value* bias = nullptr;         // is added to the scores
  Value* allowed = nullptr;      // of bool
  bool is_causal = false;        // nothing but the triangle of SDPA: in that case `allowed` is null
  bool may_mask_rows = false;    // a query may see nothing at all
  bool has_equal_heads = false;  // one head of K for each of Q
};

Value* split_heads(const OnnxNode& n, AtenBuilder& aten, const char* name, const char* heads) {
  if (has_split_heads(n)) return n.input(name);
  Value* split = aten("unflatten.int", n.input(name), -1, IntArgs{head_count(n, heads), -1});
  return aten("transpose.int", split, 1, 2);
}

/// The mask is as long as the keys, where the file does not show otherwise; a shorter one forbids the rest.
Value* padded_mask(const OnnxNode& n, AtenBuilder& aten, const Attention& a, const Dim& total) {
  Value* mask = n.input("attn_mask");
  const Shape* shape = n.find_shape("attn_mask");
  const bool is_bool = n.dtype("attn_mask") == DType::Bool;
  require(!shape || (!shape->empty() && shape->size() <= 4), "attn_mask has {} dimensions", shape ? shape->size() : 0);
  if (shape == nullptr) mask = aten("atleast_2d", mask);
  if (shape && shape->size() == 1) mask = aten("unsqueeze", mask, 0);
  if (!shape || !(shape->back() == total)) {
    const IntArg size =
        shape ? n.size("attn_mask", static_cast<int64_t>(shape->size()) - 1) : IntArg(aten("sym_size.int", mask, -1));
    const IntArg missing = aten.sub(a.k_length, size);
    if (!missing.is(0)) {
      mask = is_bool ? aten("pad", mask, IntArgs{0, missing}, "constant", 0.0)
                     : aten("pad", mask, IntArgs{0, missing}, "constant", kNever);
    }
  }
  const DType dtype = n.dtype("Q");
  return is_bool || n.dtype("attn_mask") == dtype ? mask : aten("to.dtype", mask, dtype);
}

Value* both(AtenBuilder& aten, Value* a, Value* b) { return a ? aten("bitwise_and.Tensor", a, b) : b; }

/// What position and length allow: the keys up to a query's own position, those inside the window, those that are no
/// padding.
void restrict_by_position(const OnnxNode& n, AtenBuilder& aten, Attention& a) {
  const int64_t left = n.i("left_window_size"), right = n.i("right_window_size");
  require(left >= -1 && right >= -1, "a window has the size {}", std::min(left, right));
  const bool is_causal = n.flag("is_causal");
  Value* lengths = n.find_input("nonpad_kv_seqlen");
  const bool has_window = left >= 0 || (right >= 0 && !is_causal);
  if (lengths == nullptr && !has_window) {
    if (!is_causal) return;
    if (a.allowed == nullptr && a.bias == nullptr && a.past.is(0)) {
      a.is_causal = true;
      return;
    }
    Value* all = aten("ones", IntArgs{a.q_length, a.k_length}, Kw{"dtype", DType::Bool});
    a.allowed = both(aten, a.allowed, aten("tril", all, a.past));
    return;
  }
  a.may_mask_rows = true;
  Value* keys = aten("arange", a.k_length);
  if (lengths != nullptr) lengths = aten("reshape", lengths, IntArgs{-1, 1, 1, 1});
  if (is_causal || has_window) {
    Value* at =
        a.past.is(0) ? aten("arange", a.q_length) : aten("arange.start_step", a.past, aten.add(a.past, a.q_length));
    at = aten("unsqueeze", at, 1);
    if (lengths != nullptr) at = aten("add.Tensor", at, aten("sub.Scalar", lengths, a.q_length));
    if (is_causal) a.allowed = both(aten, a.allowed, aten("le.Tensor", keys, at));
    if (left >= 0) a.allowed = both(aten, a.allowed, aten("ge.Tensor", keys, aten("sub.Scalar", at, left)));
    if (right >= 0 && !is_causal) {
      a.allowed = both(aten, a.allowed, aten("le.Tensor", keys, aten("add.Scalar", at, right)));
    }
  }
  // the position of the last query is that of the last key that is no padding
  if (lengths != nullptr && !is_causal) a.allowed = both(aten, a.allowed, aten("lt.Tensor", keys, lengths));
}

Value* fused_attention(const OnnxNode& n, AtenBuilder& aten, const Attention& a) {
  Value* mask = a.allowed;
  if (a.bias != nullptr) mask = a.allowed ? aten("where.ScalarOther", a.allowed, a.bias, kNever) : a.bias;
  const auto scale = n.find_f("scale");
  return aten("scaled_dot_product_attention", a.q, a.k, a.v, mask, 0.0, a.is_causal,
              Kw{"scale", scale ? Arg(*scale) : Arg(nullptr)}, Kw{"enable_gqa", !a.has_equal_heads});
}

Value* repeated_heads(AtenBuilder& aten, const Attention& a, Value* x) {
  if (a.has_equal_heads) return x;
  return aten("repeat_interleave.self_int", x, aten.floor_div(aten.size(a.q, 1), aten.size(a.k, 1)), 1);
}

/// q and k, each times the square root of the scale, which keeps their product in the range of 16 bits.
Value* scaled_product(const OnnxNode& n, AtenBuilder& aten, const Attention& a) {
  Value* q = a.q;
  Value* k = aten("transpose.int", repeated_heads(aten, a, a.k), -2, -1);
  const Shape* shape = n.find_shape("Q");
  auto scale = n.find_f("scale");
  if (!scale && shape != nullptr) {
    auto size = shape->back().constant();
    if (size && !has_split_heads(n)) *size /= head_count(n, "q_num_heads");
    if (size && *size > 0) scale = 1.0 / std::sqrt(static_cast<double>(*size));
  }
  if (!scale) {  // one over the root of the size of a head, which only the run knows
    Value* size = aten("tonnx::int_scalar", aten("sym_size.int", q, -1), Kw{"dtype", DType::Float32});
    Value* root = aten("pow.Tensor_Scalar", size, -0.25);
    return aten("matmul", aten("mul.Tensor", q, root), aten("mul.Tensor", k, root));
  }
  if (*scale < 0.0) return aten("matmul", aten("mul.Scalar", q, *scale), k);
  const double root = std::sqrt(*scale);
  return aten("matmul", aten("mul.Scalar", q, root), aten("mul.Scalar", k, root));
}

/// Where a query may see nothing its row is zero: softmax would make it NaN.
Value* without_masked_rows(AtenBuilder& aten, const Attention& a, Value* weights) {
  if (!a.may_mask_rows) return weights;
  Value* bias = a.bias;
  if (bias != nullptr && a.allowed != nullptr) bias = aten("where.ScalarOther", a.allowed, bias, kNever);
  Value* is_empty = bias ? aten("all.dim", aten("eq.Scalar", bias, kNever), -1, true)
                         : aten("logical_not", aten("any.dim", a.allowed, -1, true));
  return aten("masked_fill.Scalar", weights, is_empty, 0.0);
}

/// The same step by step, for what SDPA has not: a soft cap, another precision, and the scores themselves.
std::pair<Value*, Value*> written_out(const OnnxNode& n, AtenBuilder& aten, Attention& a) {
  const int64_t mode = n.i("qk_matmul_output_mode");
  require(mode >= 0 && mode <= 3, "qk_matmul_output_mode is {}", mode);
  const double cap = n.f("softcap");
  const DType dtype = n.dtype("Q");
  if (a.is_causal) {
    Value* all = aten("ones", IntArgs{a.q_length, a.k_length}, Kw{"dtype", DType::Bool});
    a.allowed = aten("tril", all);
  }
  Value* scores = scaled_product(n, aten, a);
  Value* shown = scores;
  if (cap > 0.0) scores = aten("mul.Scalar", aten("tanh", aten("div.Scalar", scores, cap)), cap);
  if (mode == 1) shown = scores;
  if (a.bias != nullptr) scores = aten("add.Tensor", scores, a.bias);
  if (a.allowed != nullptr) scores = aten("where.ScalarOther", a.allowed, scores, kNever);
  if (mode == 2) shown = scores;
  const DType precision = n.find_dtype("softmax_precision").value_or(dtype);
  Value* weights = precision == dtype ? aten("softmax.int", scores, -1)
                                      : aten("softmax.int", aten("to.dtype", scores, precision), -1);
  weights = without_masked_rows(aten, a, weights);
  if (precision != dtype) weights = aten("to.dtype", weights, dtype);
  if (mode == 3) shown = weights;
  return {aten("matmul", weights, repeated_heads(aten, a, a.v)), shown};
}

bool is_fused(const OnnxNode& n) {
  const DType dtype = n.dtype("Q");
  const auto precision = n.find_dtype("softmax_precision");
  n.i("qk_matmul_output_mode");
  // SDPA computes in 32 bits where the tensors have 16
  const bool is_small = dtype == DType::Float16 || dtype == DType::BFloat16;
  const bool fits = !precision || *precision == dtype || (is_small && *precision == DType::Float32);
  return fits && n.f("softcap") <= 0.0 && !n.wants_output(3);
}

Values lower_attention(const OnnxNode& n, AtenBuilder& aten) {
  Attention a{.q = split_heads(n, aten, "Q", "q_num_heads"),
              .k = split_heads(n, aten, "K", "kv_num_heads"),
              .v = split_heads(n, aten, "V", "kv_num_heads")};
  const bool is_split = has_split_heads(n);
  if (is_split) {
    n.find_i("q_num_heads");
    n.find_i("kv_num_heads");
    const Shape *q = n.find_shape("Q"), *k = n.find_shape("K");
    a.has_equal_heads = q && k && (*q)[1] == (*k)[1];
  } else {
    a.has_equal_heads = n.i("q_num_heads") == n.i("kv_num_heads");
  }
  a.q_length = n.size("Q", is_split ? 2 : 1);
  a.k_length = n.size("K", is_split ? 2 : 1);
  const Shape* k_shape = n.find_shape("K");
  Dim total = k_shape ? (*k_shape)[is_split ? 2 : 1] : Dim::symbol("");
  if (Value* past = n.find_input("past_key")) {
    const Shape* shape = n.find_shape("past_key");
    total = shape && k_shape ? (*shape)[2] + total : Dim::symbol("");
    a.past = n.size("past_key", 2);
    a.k_length = aten.add(a.past, a.k_length);
    a.k = aten("cat", std::vector{past, a.k}, 2);
    a.v = aten("cat", std::vector{n.input("past_value"), a.v}, 2);
  }
  const Values cache{a.k, a.v};
  if (n.has("attn_mask")) {
    Value* mask = padded_mask(n, aten, a, total);
    (n.dtype("attn_mask") == DType::Bool ? a.allowed : a.bias) = mask;
    a.may_mask_rows = true;
  }
  restrict_by_position(n, aten, a);
  if (n.dtype("V") != n.dtype("Q")) a.v = aten("to.dtype", a.v, n.dtype("Q"));
  Value* y = nullptr;
  Value* scores = nullptr;
  if (is_fused(n)) {
    y = fused_attention(n, aten, a);
  } else {
    std::tie(y, scores) = written_out(n, aten, a);
  }
  if (!is_split) y = aten("flatten.using_ints", aten("transpose.int", y, 1, 2), 2);
  return {y, cache[0], cache[1], scores};
}

/// `F.scaled_dot_product_attention(q, k, v, mask, scale=0.125)`
std::string emit_attention(const Emission& e) {
  std::string text =
      fmt::format("F.scaled_dot_product_attention({}, {}, {}", e.text("query"), e.text("key"), e.text("value"));
  if (e.has("attn_mask")) text += ", " + e.text("attn_mask");
  for (const char* name : {"dropout_p", "is_causal", "scale", "enable_gqa"}) {
    if (e.node().find_attribute(name) != nullptr) text += fmt::format(", {}={}", name, e.text(name));
  }
  return text + ")";
}

/// The projections of query, key and value are one matrix; each weight may be turned around.
std::optional<ModuleSpec> module_multihead_attention(const Emission& e) {
  ModuleSpec spec{.type = "nn.MultiheadAttention", .inputs = {"query", "key", "value"}, .short_name = "attention"};
  constexpr std::pair<const char*, const char*> kWeights[] = {{"in_proj_weight", "in_proj_weight"},
                                                              {"in_proj_bias", "in_proj_bias"},
                                                              {"out_proj_weight", "out_proj.weight"},
                                                              {"out_proj_bias", "out_proj.bias"}};
  for (const auto& [argument, attribute] : kWeights) {
    Value* weight = e.value(argument);
    const bool is_turned = weight->constant == nullptr;
    spec.weights.push_back({attribute, is_turned ? weight->producer->input(0) : weight, is_turned});
  }
  spec.arguments = fmt::format("{}, {}", e.value("out_proj_bias")->constant->dims[0], e.text("num_heads"));
  if (e.flag("batch_first")) spec.arguments += ", batch_first=True";
  if (e.has("attn_mask")) spec.inputs.emplace_back("attn_mask");
  return spec;
}

/// `x.unflatten(-1, (8, 64))`
std::string emit_unflatten(const Emission& e) {
  return fmt::format("{}.unflatten({}, {})", e.text("self", precedence::kAtom), e.text("dim"),
                     python_tuple(e.items("sizes")));
}

void down_without_lengths(OnnxEdit& edit) {
  if (edit.node().input(6) != nullptr) edit.cannot("opset 23 has no input 'nonpad_kv_seqlen'");
  if (edit.node().inputs().size() > 6) edit.node().resize_inputs(6);
}

void down_without_windows(OnnxEdit& edit) {
  require_default(edit, "left_window_size", -1);
  require_default(edit, "right_window_size", -1);
}

constexpr OpsetStep kHistory[] = {
    {.to = 24, .down = down_without_lengths},
    {.to = 25, .down = down_without_windows},
};

constexpr OnnxOp kAttentionOnnx[] = {
    {.sig = "Attention(T1 Q, T1 K, T2 V, U? attn_mask, T1? past_key, T2? past_value, tensor(int64)? nonpad_kv_seqlen, "
            "*, int is_causal=0, int? kv_num_heads, int left_window_size=-1, int? q_num_heads, "
            "int qk_matmul_output_mode=0, int right_window_size=-1, float? scale, float softcap=0.0, "
            "int? softmax_precision) -> (T1 Y, T1? present_key, T2? present_value, T1? qk_matmul_output)",
     .since = 23,
     .traits = kSumsProducts,
     .history = kHistory,
     .infer = infer_attention,
     .open = open_first_axes<0, 1, 2, 4, 5, 6>,
     .eval = eval_attention,
     .lower = lower_attention,
     .in_older = attention_in_older},
};

constexpr AtenOp kAttentionAten[] = {
    {.sig = "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
            "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
     .types = types_attention,
     .layout = Layout::Own,
     .low_precision = true,
     .emit = emit_attention,
     .raise = raise_attention},
    {.sig =
         "tonnx::multihead_attention(Tensor query, Tensor key, Tensor value, Tensor in_proj_weight, Tensor "
         "in_proj_bias, Tensor out_proj_weight, Tensor out_proj_bias, Tensor? attn_mask=None, *, int num_heads, bool "
         "batch_first=False) -> Tensor",
     .module = module_multihead_attention},
    {.sig = "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
     .types = types_unflatten,
     .view = ViewRule::View,
     .emit = emit_unflatten,
     .raise = raise_reshaped},
};

}  // namespace

extern const OpFamily kAttentionOps;
constinit const OpFamily kAttentionOps{"attention", kAttentionOnnx, kAttentionAten};

}  // namespace tonnx
