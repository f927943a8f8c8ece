// tf_idf.cpp - counts of known sequences of numbers: TfIdfVectorizer.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/frame/eval_elements.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/rank_choice.h"

namespace tonnx {
namespace {

/// The sequences that are counted: those of each length, and where their counts go.
struct Pool {
  struct Grams {
    int64_t length;
    std::vector<int64_t> numbers;
    int64_t count() const { return static_cast<int64_t>(numbers.size()) / length; }
  };
  std::vector<Grams> grams;
  std::vector<int64_t> places;  // in the output, of the grams that are counted
  std::vector<double> weights;  // of the same
  int64_t size = 0;             // of the output
};

Pool pool_of(const NodeView& n) {
  const auto numbers = n.find_ints("pool_int64s");
  if (!numbers || n.find_strings("pool_strings")) fail_unsupported("PyTorch has no tensors of strings");
  const std::vector<int64_t> starts = n.ints("ngram_counts"), indexes = n.ints("ngram_indexes");
  const int64_t shortest = n.i("min_gram_length"), longest = n.i("max_gram_length");
  const auto total = static_cast<int64_t>(numbers->size());
  require(shortest >= 1 && shortest <= longest, "grams of {} to {} numbers", shortest, longest);
  require(longest <= static_cast<int64_t>(starts.size()), "ngram_counts has no grams of {} numbers", longest);
  const auto weights = n.find_floats("weights");
  require(!weights || weights->size() == indexes.size(), "there are {} weights for {} grams",
          weights ? weights->size() : 0, indexes.size());
  Pool pool;
  size_t gram = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : total, length = static_cast<int64_t>(i) + 1;
    require(starts[i] >= 0 && starts[i] <= end && end <= total && (end - starts[i]) % length == 0,
            "ngram_counts does not fit the pool");
    Pool::Grams grams{length, {numbers->begin() + starts[i], numbers->begin() + end}};
    for (int64_t k = 0; k < grams.count(); ++k, ++gram) {
      require(gram < indexes.size(), "there are more grams than ngram_indexes");
      if (length < shortest || length > longest) continue;
      pool.places.push_back(indexes[gram]);
      pool.weights.push_back(weights ? (*weights)[gram] : 1.0);
    }
    if (length >= shortest && length <= longest && grams.count() > 0) pool.grams.push_back(std::move(grams));
  }
  require(gram == indexes.size(), "there are {} ngram_indexes for {} grams", indexes.size(), gram);
  for (const int64_t index : indexes) {
    require(index >= 0 && index < (int64_t{1} << 31), "an index of {}", index);
    pool.size = std::max(pool.size, index + 1);
  }
  return pool;
}

void infer_tf_idf(InferNode& n) {
  const Shape* x = n.find_shape("X");
  require(!x || x->size() == 1 || x->size() == 2, "the input has {} dimensions", x ? x->size() : 0);
  if (!x || !n.find_ints("pool_int64s")) return n.set(0, DType::Float32, std::nullopt);
  Shape result(x->begin(), x->end() - 1);
  result.emplace_back(pool_of(n).size);
  n.set(0, DType::Float32, std::move(result));
}

/// How often each gram stands in a line, in the order of the output.
std::vector<double> counts_in(const Pool& pool, const std::vector<int64_t>& line, int64_t skips) {
  std::vector<double> counts(static_cast<size_t>(pool.size));
  size_t at = 0;
  for (const Pool::Grams& grams : pool.grams) {
    for (int64_t g = 0; g < grams.count(); ++g, ++at) {
      const auto gram = grams.numbers.begin() + g * grams.length;
      for (int64_t step = 1; step <= (grams.length == 1 ? 1 : skips + 1); ++step) {
        const int64_t reach = (grams.length - 1) * step;
        for (int64_t i = 0; i + reach < static_cast<int64_t>(line.size()); ++i) {
          bool is_same = true;
          for (int64_t j = 0; j < grams.length && is_same; ++j)
            is_same = line[static_cast<size_t>(i + j * step)] == gram[j];
          counts[static_cast<size_t>(pool.places[at])] += is_same ? 1 : 0;
        }
      }
    }
  }
  return counts;
}

Results eval_tf_idf(const NodeView& n) {
  const TensorPtr x = n.find_constant("X");
  const auto dims = static_dims(n.node().output(0));
  if (!dims || !is_integer(x->dtype) || x->dims.empty() || !n.find_ints("pool_int64s")) return {};
  const std::string mode = n.s("mode");
  // runtimes take the weights in the order of the output, and the standard in that of the pool
  if (mode != "TF" && n.has("weights")) return {};
  const Pool pool = pool_of(n);
  const int64_t skips = n.i("max_skip_count"), length = x->dims.back();
  const int64_t rows = length == 0 ? 0 : x->count() / length;
  int64_t work = 1;
  for (const Pool::Grams& grams : pool.grams) work += static_cast<int64_t>(grams.numbers.size());
  if (skips < 0 || skips > 4096 || length == 0 || !is_feasible({rows, length, work, skips + 1})) return {};
  std::vector<double> result;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> line;
    for (int64_t i = 0; i < length; ++i) line.push_back(element_as_int(*x, row * length + i));
    for (const double count : counts_in(pool, line, skips)) result.push_back(mode == "IDF" ? count > 0 : count);
  }
  return static_cast<int64_t>(result.size()) == count_of(*dims) ? Results(tensor_of(DType::Float32, *dims, result))
                                                                : Results();
}

/// Which of the grams stand where in the input, counted; elements that follow one another may be `step` apart.
Value* counted(AtenBuilder& aten, Value* x, const Pool::Grams& grams, Value* pool, int64_t step) {
  std::vector<Value*> parts;
  for (int64_t j = 0; j < grams.length; ++j) {
    const int64_t behind = (grams.length - 1 - j) * step;
    Value* part = x;
    if (j > 0 || behind > 0) part = aten("slice.Tensor", x, -1, j * step, behind > 0 ? Arg(-behind) : Arg(nullptr));
    parts.push_back(part);
  }
  Value* window = parts.size() == 1 ? aten("unsqueeze", parts[0], -1) : aten("stack", parts, -1);
  Value* same = aten("eq.Tensor", aten("unsqueeze", window, -2), pool);
  return aten("sum.dim_IntList", aten("all.dim", same, -1), std::vector<int64_t>{-2});
}

Values lower_tf_idf(const OnnxNode& n, AtenBuilder& aten) {
  const Pool pool = pool_of(n);
  const int64_t rank = n.rank("X"), skips = n.i("max_skip_count");
  const std::string mode = n.s("mode");
  require(mode == "TF" || mode == "IDF" || mode == "TFIDF", "the mode is '{}'", mode);
  require(skips >= 0 && skips < 4096, "max_skip_count is {}", skips);
  std::vector<Value*> counts;
  for (const Pool::Grams& grams : pool.grams) {
    auto tensor = std::make_shared<Tensor>(*make_ints(grams.numbers));
    tensor->dims = {grams.count(), grams.length};
    Value* known = aten.constant(tensor, "grams");
    Value* sum = nullptr;
    for (int64_t step = 1; step <= (grams.length == 1 ? 1 : skips + 1); ++step) {
      Value* count = counted(aten, n.input("X"), grams, known, step);
      sum = sum ? aten("add.Tensor", sum, count) : count;
    }
    counts.push_back(sum);
  }
  if (counts.empty()) fail_unsupported("there are no grams to count");
  Value* y = counts.size() == 1 ? counts[0] : aten("cat", counts, -1);
  if (mode == "IDF") y = aten("gt.Scalar", y, 0);
  y = aten("to.dtype", y, DType::Float32);
  const bool is_weighted = std::any_of(pool.weights.begin(), pool.weights.end(), [](double w) { return w != 1.0; });
  if (mode != "TF" && is_weighted) {
    const auto count = static_cast<int64_t>(pool.weights.size());
    y = aten("mul.Tensor", y, aten.constant(make_floats(DType::Float32, {count}, pool.weights), "weights"));
  }
  std::vector<int64_t> in_order(static_cast<size_t>(pool.size));
  std::iota(in_order.begin(), in_order.end(), 0);
  if (pool.places == in_order) return y;
  IntArgs sizes{pool.size};
  if (rank == 2) sizes.insert(sizes.begin(), n.size("X", 0));
  return aten("index_add", aten("zeros", sizes), -1, aten.constant(make_ints(pool.places), "places"), y);
}

constexpr OnnxOp kTfIdfOnnx[] = {
    {.sig =
         "TfIdfVectorizer(T X, *, str mode, ints ngram_indexes, floats? weights, ints ngram_counts, ints? pool_int64s, "
         "strs? pool_strings, int max_skip_count, int min_gram_length, int max_gram_length) -> T1 Y",
     .since = 9,
     .infer = infer_tf_idf,
     .eval = eval_tf_idf,
     .lower = lower_tf_idf,
     .note = "no strings",
     .expand = expand_by_rank<"X", 1, 2>},
};

}  // namespace

extern const OpFamily kTfIdfOps;
constinit const OpFamily kTfIdfOps{"tf_idf", kTfIdfOnnx, {}};

}  // namespace tonnx
