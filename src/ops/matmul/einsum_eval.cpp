// einsum_eval.cpp - evaluation of Einsum: all products of elements, in the order of the result, each sum on its own.
#include <map>

#include "base/budget.h"
#include "ops/frame/eval_map.h"
#include "ops/matmul/eval.h"
#include "ops/matmul/matmul.h"

namespace tonnx {
namespace {

/// A dimension of the equation: a letter, or one of those that an ellipsis stands for, counted from the back.
using Label = std::pair<char, size_t>;

std::vector<Label> labels_of(const std::string& term, size_t rest) {
  std::vector<Label> labels;
  for (const char c : term) {
    if (c != '.') {
      labels.emplace_back(c, 0);
      continue;
    }
    for (size_t i = rest; i-- > 0;) labels.emplace_back('.', i);
  }
  return labels;
}

struct Product {
  std::vector<int64_t> dims;                  // those of the result first, then those that are summed over
  std::vector<std::vector<int64_t>> strides;  // of each input
  std::vector<int64_t> result_dims;
  int64_t summed = 1;
};

std::optional<Product> find_product(const Equation& equation, const std::vector<const Tensor*>& inputs) {
  std::map<Label, int64_t> sizes;
  std::vector<std::vector<Label>> terms;
  size_t most_rest = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& term = equation.terms[i];
    const size_t letters = term.size() - (term.find('.') != std::string::npos ? 1 : 0);
    if (inputs[i]->dims.size() < letters) return std::nullopt;
    const size_t rest = inputs[i]->dims.size() - letters;
    most_rest = std::max(most_rest, rest);
    terms.push_back(labels_of(term, rest));
    if (terms[i].size() != inputs[i]->dims.size()) return std::nullopt;
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const int64_t size = inputs[i]->dims[d];
      int64_t& known = sizes.try_emplace(terms[i][d], size).first->second;
      if (known == 1) known = size;
      if (size != known && size != 1) return std::nullopt;
    }
  }
  Product product;
  std::vector<Label> order = labels_of(equation.result, most_rest);
  const size_t shown = order.size();
  for (const auto& [label, size] : sizes) {
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const auto known = sizes.find(order[i]);
    if (known == sizes.end() || std::count(order.begin(), order.end(), order[i]) > 1) return std::nullopt;
    product.dims.push_back(known->second);
    if (i < shown)
      product.result_dims.push_back(known->second);
    else
      product.summed = checked_mul(product.summed, known->second);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t> dense = strides_of(inputs[i]->dims);
    std::vector<int64_t> strides(order.size(), 0);
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const auto at = static_cast<size_t>(std::find(order.begin(), order.end(), terms[i][d]) - order.begin());
      if (inputs[i]->dims[d] != 1) strides[at] += dense[d];  // a letter twice: the diagonal
    }
    product.strides.push_back(std::move(strides));
  }
  return product;
}

template <class T>
TensorPtr sums_of(const Product& product, const std::vector<const Tensor*>& inputs, DType dtype) {
  NewTensor result(dtype, product.result_dims);
  std::vector<NumberReader> readers;
  for (size_t i = 0; i < inputs.size(); ++i) readers.emplace_back(*inputs[i], product.dims, product.strides[i]);
  const int64_t size = product.summed;
  if (size == 0) return result.done();
  in_parallel(
      result.count(),
      [&](int64_t begin, int64_t end) {
        T numbers[kBlock], factors[kBlock];
        T sum{};
        int64_t place = 0, to = begin;
        for (int64_t i = begin * size; i < end * size; i += kBlock) {
          const int64_t count = std::min(kBlock, end * size - i);
          readers[0].read(i, count, numbers);
          for (size_t r = 1; r < readers.size(); ++r) {
            readers[r].read(i, count, factors);
            for_block(count, [&](int64_t k) { numbers[k] *= factors[k]; });
          }
          for (int64_t k = 0; k < count; ++k) {
            sum += numbers[k];
            if (++place < size) continue;
            store_numbers(dtype, result.data(), to++, 1, &sum);
            sum = T{};
            place = 0;
          }
        }
      },
      size);
  return result.done();
}

}  // namespace

Results eval_einsum(const NodeView& n) {
  constexpr int64_t kMostProducts = int64_t{1} << 27;
  const Equation equation = parse_equation(n.s("equation"));
  std::vector<const Tensor*> inputs;
  for (const Value* value : n.values("Inputs")) inputs.push_back(value->constant.get());
  if (inputs.empty() || inputs.size() != equation.terms.size()) return {};
  const DType dtype = inputs[0]->dtype;
  if (!contains(kComputed, dtype) || dtype == DType::Bool) return {};
  for (const Tensor* input : inputs) {
    if (input->dtype != dtype) return {};
  }
  const auto product = find_product(equation, inputs);
  if (!product) return {};
  int64_t work = 1;
  for (const int64_t size : product->dims) {
    if (__builtin_mul_overflow(work, size, &work) || work > kMostProducts) return {};
  }
  if (!budget().try_take(Resource::Steps, checked_mul(work, static_cast<int64_t>(inputs.size())))) return {};
  return is_float(dtype) ? sums_of<double>(*product, inputs, dtype) : sums_of<uint64_t>(*product, inputs, dtype);
}

}  // namespace tonnx
