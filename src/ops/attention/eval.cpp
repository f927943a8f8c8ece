// eval.cpp - evaluation of Attention, LinearAttention and RotaryEmbedding.
#include <algorithm>
#include <cmath>

#include "ops/attention/rows.h"
#include "ops/frame/eval_elements.h"

namespace tonnx {
namespace {

constexpr double kNever = -HUGE_VAL;

/// Numbers as [batch, heads, length, size], however the tensor has them.
struct Heads {
  std::vector<double> numbers;
  int64_t batch = 0, heads = 0, length = 0, size = 0;

  const double* at(int64_t b, int64_t h, int64_t t) const {
    return numbers.data() + ((b * heads + h) * length + t) * size;
  }
  double* at(int64_t b, int64_t h, int64_t t) { return numbers.data() + ((b * heads + h) * length + t) * size; }
  std::vector<int64_t> dims() const { return {batch, heads, length, size}; }
};

/// Of a tensor of four dimensions, or of three where heads and their sizes are one; nothing where they do not fit.
std::optional<Heads> heads_of(const Tensor& x, int64_t heads) {
  if (!is_float(x.dtype) || !is_plain_number(x.dtype)) return std::nullopt;
  if (x.dims.size() == 4) return Heads{numbers_of(x), x.dims[0], x.dims[1], x.dims[2], x.dims[3]};
  if (x.dims.size() != 3 || heads < 1 || heads > x.dims[2] || x.dims[2] % heads != 0) return std::nullopt;
  Heads result{{}, x.dims[0], heads, x.dims[1], x.dims[2] / heads};
  const std::vector<double> numbers = numbers_of(x);
  result.numbers.resize(numbers.size());
  const double* from = numbers.data();
  for (int64_t b = 0; b < result.batch; ++b) {
    for (int64_t t = 0; t < result.length; ++t) {
      for (int64_t h = 0; h < heads; ++h, from += result.size) std::copy_n(from, result.size, result.at(b, h, t));
    }
  }
  return result;
}

/// The other way: numbers of four dimensions in the shape of an output, which may have three.
TensorPtr tensor_of_heads(const Heads& x, DType dtype, const std::vector<int64_t>& dims) {
  if (dims.size() == 4) return tensor_of(dtype, dims, x.numbers);
  std::vector<double> numbers;
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t t = 0; t < x.length; ++t) {
      for (int64_t h = 0; h < x.heads; ++h) numbers.insert(numbers.end(), x.at(b, h, t), x.at(b, h, t) + x.size);
    }
  }
  return tensor_of(dtype, dims, numbers);
}

/// What is kept of earlier keys or values, and the new ones behind it.
std::optional<Heads> joined(const TensorPtr& past, Heads now) {
  if (!past) return now;
  const auto before = heads_of(*past, 0);
  if (!before || before->batch != now.batch || before->heads != now.heads || before->size != now.size)
    return std::nullopt;
  Heads result{{}, now.batch, now.heads, before->length + now.length, now.size};
  for (int64_t i = 0; i < now.batch * now.heads; ++i) {
    const double *first = before->numbers.data() + i * before->length * now.size,
                 *second = now.numbers.data() + i * now.length * now.size;
    result.numbers.insert(result.numbers.end(), first, first + before->length * now.size);
    result.numbers.insert(result.numbers.end(), second, second + now.length * now.size);
  }
  return result;
}

/// What each query may see, and what is added to its scores.
struct Visibility {
  TensorPtr mask;  // null: none
  std::vector<double> mask_numbers;
  std::vector<int64_t> mask_strides;  // for batch, head, query and key
  TensorPtr lengths;                  // of the keys of each batch that are no padding; null: all
  bool is_causal = false;
  int64_t left = -1, right = -1, past = 0, q_length = 0;

  double bias(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t length = lengths ? element_as_int(*lengths, b) : 0;
    const int64_t at = i + (lengths ? length - q_length : past);
    if ((is_causal && j > at) || (lengths && j >= length) || (left >= 0 && at - j > left) ||
        (right >= 0 && j - at > right))
      return kNever;
    if (!mask) return 0;
    if (j >= mask->dims.back()) return kNever;  // a mask that is shorter forbids the rest
    const double number = mask_numbers[static_cast<size_t>(b * mask_strides[0] + h * mask_strides[1] +
                                                           i * mask_strides[2] + j * mask_strides[3])];
    return mask->dtype == DType::Bool ? (number != 0 ? 0 : kNever) : number;
  }
};

/// Nothing where the mask does not fit.
std::optional<Visibility> visibility_of(const NodeView& n, const Heads& q, const Heads& k) {
  Visibility v{.mask = n.find_constant("attn_mask"), .lengths = n.find_constant("nonpad_kv_seqlen")};
  v.is_causal = n.flag("is_causal");
  v.left = n.i("left_window_size");
  v.right = n.i("right_window_size");
  v.q_length = q.length;
  if (const TensorPtr past = n.find_constant("past_key")) v.past = past->dims[2];
  if (v.lengths && v.lengths->dims != std::vector{q.batch}) return std::nullopt;
  for (int64_t b = 0; v.lengths && b < q.batch; ++b) {
    const int64_t length = element_as_int(*v.lengths, b);
    if (length < 0 || length > k.length) return std::nullopt;
  }
  if (!v.mask) return v;
  if (!is_plain_number(v.mask->dtype) || v.mask->dims.empty() || v.mask->dims.size() > 4 ||
      v.mask->dims.back() > k.length)
    return std::nullopt;
  const std::vector<int64_t> all{q.batch, q.heads, q.length, v.mask->dims.back()};
  for (size_t i = 0; i < v.mask->dims.size(); ++i) {
    const int64_t size = v.mask->dims[i];
    if (size != 1 && size != all[4 - v.mask->dims.size() + i]) return std::nullopt;
  }
  v.mask_numbers = numbers_of(*v.mask);
  v.mask_strides = broadcast_strides(v.mask->dims, all);
  return v;
}

/// Rounds to a type of 16 bits, as every step of the operator's definition does; wider types are rounded once, in the
/// end.
class Rounding {
 public:
  explicit Rounding(DType dtype) : dtype_(dtype) {}
  double operator()(double x) const {
    if ((dtype_ != DType::BFloat16 && dtype_ != DType::Float16) || x == 0 || !std::isfinite(x)) return x;
    const bool is_half = dtype_ == DType::Float16;
    const int digits = is_half ? 10 : 7;
    const int exponent = std::max(std::ilogb(x), is_half ? -14 : -126);
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, digits - exponent)), exponent - digits);
    return is_half && std::fabs(rounded) > 65504 ? std::copysign(HUGE_VAL, rounded) : rounded;
  }
  void operator()(std::vector<double>& numbers) const {
    if (dtype_ != DType::BFloat16 && dtype_ != DType::Float16) return;
    for (double& x : numbers) x = (*this)(x);
  }
  bool sums_exactly() const { return dtype_ != DType::BFloat16; }

 private:
  DType dtype_;
};

/// In place. A row that sees nothing is zero.
void soften(std::vector<double>& row, bool sees_nothing, const Rounding& rounded) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& score : row) {
    score = sees_nothing ? 0 : rounded(std::exp(rounded(score - most)));
    sum = rounded.sums_exactly() ? sum + score : rounded(sum + score);
  }
  sum = rounded(sum);
  for (double& score : row) score = sees_nothing ? 0 : rounded(score / sum);
}

/// Queries and keys each take the square root of the scale, which keeps their product in the range of 16 bits.
void scale_both(Heads& q, Heads& k, double scale, const Rounding& rounded) {
  const double root = scale < 0 ? 1 : rounded(std::sqrt(scale)), other = scale < 0 ? scale : root;
  for (double& x : q.numbers) x = rounded(x * other);
  for (double& x : k.numbers) x = rounded(x * root);
}

}  // namespace

Results eval_attention(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  auto q = heads_of(*n.find_constant("Q"), n.find_i("q_num_heads").value_or(0));
  auto new_k = heads_of(*n.find_constant("K"), n.find_i("kv_num_heads").value_or(0)),
       new_v = heads_of(*n.find_constant("V"), n.find_i("kv_num_heads").value_or(0));
  const auto dims = static_dims(n.node().output(0));
  if (!q || !new_k || !new_v || !dims || n.has("past_key") != n.has("past_value")) return {};
  const auto k = joined(n.find_constant("past_key"), std::move(*new_k)),
             v = joined(n.find_constant("past_value"), std::move(*new_v));
  if (!k || !v || k->heads == 0 || k->length == 0 || q->heads % k->heads != 0 || v->heads != k->heads ||
      k->size != q->size || v->length != k->length || k->batch != q->batch || v->batch != q->batch || q->size == 0)
    return {};
  if (!is_feasible({q->batch, q->heads, q->length, k->length, q->size + v->size + 8})) return {};
  const auto visible = visibility_of(n, *q, *k);
  const int64_t mode = n.i("qk_matmul_output_mode");
  if (!visible || mode < 0 || mode > 3 || visible->left < -1 || visible->right < -1) return {};
  const DType dtype = n.find_constant("Q")->dtype;
  const Rounding rounded(dtype), softens(n.find_dtype("softmax_precision").value_or(dtype));
  const double cap = n.f("softcap");
  Heads scaled_k = *k;
  scale_both(*q, scaled_k, n.find_f("scale").value_or(1 / std::sqrt(static_cast<double>(q->size))), rounded);
  Heads y{{}, q->batch, q->heads, q->length, v->size}, shown{{}, q->batch, q->heads, q->length, k->length};
  y.numbers.resize(static_cast<size_t>(count_of(y.dims())));
  shown.numbers.resize(static_cast<size_t>(count_of(shown.dims())));
  for_each_in_parallel(q->batch * q->heads, q->length * k->length * (q->size + v->size), [&](int64_t head) {
    const int64_t b = head / q->heads, h = head % q->heads, kv = h / (q->heads / k->heads);
    std::vector<double> row(static_cast<size_t>(k->length));
    for (int64_t i = 0; i < q->length; ++i) {
      bool sees_nothing = true;
      double* seen = shown.at(b, h, i);
      for (int64_t j = 0; j < k->length; ++j) {
        double score = 0;
        for (int64_t d = 0; d < q->size; ++d) score += q->at(b, h, i)[d] * scaled_k.at(b, kv, j)[d];
        score = rounded(score);
        if (mode == 0) seen[j] = score;
        if (cap > 0) score = rounded(cap * rounded(std::tanh(rounded(score / cap))));
        if (mode == 1) seen[j] = score;
        const double bias = visible->bias(b, h, i, j);
        sees_nothing = sees_nothing && bias == kNever;
        row[static_cast<size_t>(j)] = rounded(score + bias);
        if (mode == 2) seen[j] = row[static_cast<size_t>(j)];
      }
      soften(row, sees_nothing, softens);
      rounded(row);
      if (mode == 3) std::copy(row.begin(), row.end(), seen);
      for (int64_t j = 0; j < k->length; ++j) {
        for (int64_t d = 0; d < v->size; ++d) y.at(b, h, i)[d] += row[static_cast<size_t>(j)] * v->at(b, kv, j)[d];
      }
    }
  });
  Results results(tensor_of_heads(y, dtype, *dims));
  results.push_back(tensor_of(n.find_constant("K")->dtype, k->dims(), k->numbers));
  results.push_back(tensor_of(n.find_constant("V")->dtype, v->dims(), v->numbers));
  results.push_back(tensor_of(dtype, shown.dims(), shown.numbers));
  return results;
}

namespace {

/// A state of fixed size for each head, which every step changes.
struct LinearStates {
  Heads q, k, v, state;        // the state is [batch, heads of k, size of k, size of v]
  std::optional<Heads> decay;  // of size one, or of that of a key
  TensorPtr beta;
  double scale = 1;

  /// One step of one head of k, and what those heads of q read that share it.
  void step(int64_t b, int64_t h, int64_t t, Heads& y) {
    if (decay) {
      for (int64_t d = 0; d < k.size; ++d) {
        const double left = std::exp(decay->at(b, h, t)[decay->size == 1 ? 0 : d]);
        for (int64_t m = 0; m < v.size; ++m) state.at(b, h, d)[m] *= left;
      }
    }
    std::vector<double> written(v.at(b, h, t), v.at(b, h, t) + v.size);
    if (beta) {
      const int64_t width = beta->dims[2];
      const double share = element_as_double(*beta, (b * k.length + t) * width + (width == 1 ? 0 : h));
      for (int64_t m = 0; m < v.size; ++m) {
        double held = 0;
        for (int64_t d = 0; d < k.size; ++d) held += state.at(b, h, d)[m] * k.at(b, h, t)[d];
        written[static_cast<size_t>(m)] = share * (written[static_cast<size_t>(m)] - held);
      }
    }
    for (int64_t d = 0; d < k.size; ++d) {
      for (int64_t m = 0; m < v.size; ++m) state.at(b, h, d)[m] += k.at(b, h, t)[d] * written[static_cast<size_t>(m)];
    }
    const int64_t group = q.heads / k.heads;
    for (int64_t reader = h * group; reader < (h + 1) * group; ++reader) {
      for (int64_t d = 0; d < k.size; ++d) {
        for (int64_t m = 0; m < v.size; ++m)
          y.at(b, reader, t)[m] += scale * q.at(b, reader, t)[d] * state.at(b, h, d)[m];
      }
    }
  }
};

}  // namespace

Results eval_linear_attention(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const int64_t q_heads = n.i("q_num_heads"), kv_heads = n.i("kv_num_heads");
  auto q = heads_of(*n.find_constant("query"), q_heads), k = heads_of(*n.find_constant("key"), kv_heads),
       v = heads_of(*n.find_constant("value"), kv_heads);
  const auto dims = static_dims(n.node().output(0));
  if (!q || !k || !v || !dims || kv_heads < 1 || q_heads % kv_heads != 0 || q->size != k->size || q->size == 0)
    return {};
  if (q->batch != k->batch || v->batch != k->batch || q->length != k->length || v->length != k->length) return {};
  LinearStates s{.q = *q, .k = *k, .v = *v, .state = {{}, q->batch, kv_heads, k->size, v->size}};
  if (!is_feasible({q->batch, q_heads + 4 * kv_heads, q->length, k->size, v->size})) return {};
  s.scale = n.f("scale") != 0 ? n.f("scale") : 1 / std::sqrt(static_cast<double>(q->size));
  if (const TensorPtr decay = n.find_constant("decay")) {
    s.decay = heads_of(*decay, kv_heads);
    if (!s.decay || s.decay->batch != q->batch || s.decay->length != q->length ||
        (s.decay->size != 1 && s.decay->size != k->size))
      return {};
  }
  s.beta = n.find_constant("beta");
  if (s.beta && (s.beta->dims.size() != 3 || s.beta->dims[0] != q->batch || s.beta->dims[1] != q->length ||
                 (s.beta->dims[2] != 1 && s.beta->dims[2] != kv_heads)))
    return {};
  const TensorPtr past = n.find_constant("past_state");
  if (past && past->dims != s.state.dims()) return {};
  s.state.numbers = past ? numbers_of(*past) : std::vector<double>(static_cast<size_t>(count_of(s.state.dims())));
  Heads y{{}, q->batch, q_heads, q->length, v->size};
  y.numbers.resize(static_cast<size_t>(count_of(y.dims())));
  for (int64_t b = 0; b < q->batch; ++b) {
    for (int64_t h = 0; h < kv_heads; ++h) {
      for (int64_t t = 0; t < q->length; ++t) s.step(b, h, t, y);
    }
  }
  const DType dtype = n.find_constant("query")->dtype;
  Results results(tensor_of_heads(y, dtype, *dims));
  results.push_back(tensor_of(past ? past->dtype : dtype, s.state.dims(), s.state.numbers));
  return results;
}

Results eval_rotary_embedding(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("X"), cos = n.find_constant("cos_cache"), sin = n.find_constant("sin_cache"),
                  positions = n.find_constant("position_ids");
  auto heads = heads_of(*x, n.find_i("num_heads").value_or(0));
  if (!heads || cos->dims != sin->dims || cos->dims.size() != (positions ? 2 : 3)) return {};
  const int64_t given = n.i("rotary_embedding_dim"), size = given == 0 ? heads->size : given, half = size / 2;
  if (size > heads->size || size % 2 != 0 || cos->dims.back() != half) return {};
  const std::vector<int64_t> each{heads->batch, heads->length};
  if (positions ? positions->dims != each : !(cos->dims[0] == each[0] && cos->dims[1] == each[1])) return {};
  const std::vector<double> cosines = numbers_of(*cos), sines = numbers_of(*sin);
  const bool is_interleaved = n.flag("interleaved");
  for (int64_t b = 0; b < heads->batch; ++b) {
    for (int64_t t = 0; t < heads->length; ++t) {
      const int64_t at = b * heads->length + t,
                    row = positions ? index_in(element_as_int(*positions, at), cos->dims[0]) : at;
      if (row < 0) return {};
      for (int64_t h = 0; h < heads->heads; ++h) {
        double* numbers = heads->at(b, h, t);
        for (int64_t i = 0; i < half; ++i) {
          double &first = numbers[is_interleaved ? 2 * i : i], &second = numbers[is_interleaved ? 2 * i + 1 : half + i];
          const double c = cosines[static_cast<size_t>(row * half + i)], s = sines[static_cast<size_t>(row * half + i)];
          const double real = c * first - s * second, imaginary = s * first + c * second;
          first = real;
          second = imaginary;
        }
      }
    }
  }
  return tensor_of_heads(*heads, x->dtype, x->dims);
}

}  // namespace tonnx
