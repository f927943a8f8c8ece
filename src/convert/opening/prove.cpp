// prove.cpp - compares a model with open sizes with what it was made of: at its own sizes, and run sample by sample.
#include "convert/opening/prove.h"

#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "base/error.h"
#include "base/limit_error.h"
#include "convert/inference.h"
#include "ir/clone.h"
#include "ops/frame/node_facts.h"

namespace tonnx {
namespace {

constexpr int64_t kMostWork = 30'000'000;  // multiplications and elements of one run of the model
constexpr int64_t kMostSamples = 3;

/// About how much work it is to run the model at the sizes of the file; nothing where sizes are not known.
std::optional<int64_t> work_of(const Graph& graph, const FixedTypes& types) {
  double work = 0;
  for (const Node& node : graph) {
    if (!subgraphs_of(node).empty()) return std::nullopt;
    for (const Value* output : node.outputs()) {
      const Type* type = types.find(output);
      if (output == nullptr || !is_used(output)) continue;
      if (type == nullptr || !type->is_tensor() || !type->shape) return std::nullopt;
      const auto count = count_of(*type->shape).constant();
      if (!count) return std::nullopt;
      double each = 1;
      const Type* weight = has_trait(node, kSumsProducts) ? types.find(node.input(1)) : nullptr;
      if (weight != nullptr && weight->shape && !weight->shape->empty() && !type->shape->empty()) {
        const auto elements = count_of(*weight->shape).constant();
        const Dim& columns = weight->shape->size() > 2 && (*weight->shape)[0] == (*type->shape)[1]
                                 ? (*weight->shape)[0]
                                 : type->shape->back();
        each = static_cast<double>(elements.value_or(1)) /
               static_cast<double>(std::max<int64_t>(columns.constant().value_or(1), 1));
      }
      work += static_cast<double>(*count) * std::max(each, 1.0);
      if (work > static_cast<double>(kMostWork)) return std::nullopt;
    }
  }
  return static_cast<int64_t>(work);
}

/// Numbers that are the same in each run of the program.
class Draws {
 public:
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 11) / static_cast<double>(uint64_t{1} << 53);
  }

  /// Floats around 0; integers and truth values are small, since they may be places in a table.
  TensorPtr tensor(DType dtype, const std::vector<int64_t>& dims) {
    std::vector<double> numbers(static_cast<size_t>(count_of(dims)));
    for (double& number : numbers) {
      const double drawn = next();
      number = is_float(dtype) ? 2 * drawn - 1 : dtype == DType::Bool ? (drawn < 0.7 ? 1 : 0) : std::floor(drawn * 3);
    }
    return make_floats(dtype, dims, numbers);
  }

 private:
  uint64_t state_ = 1;
};

/// What a model gives where all its inputs are these; nothing where it cannot be computed here.
std::optional<std::vector<TensorPtr>> run(const Model& model, const std::vector<TensorPtr>& inputs) {
  Model copy = clone(model);
  Graph& graph = *copy.graph;
  const std::vector<Value*> values = inputs_without_values(graph);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i]->constant = inputs[i];
    values[i]->type = Type::tensor(inputs[i]->dtype, Shape(inputs[i]->dims.begin(), inputs[i]->dims.end()));
  }
  const FoldLimits all{.times = 1e15, .bytes = INT64_MAX / 4, .keeps_weights = false};
  OnnxInference({.rewrites = true, .leave_alone = {}, .fold = all, .infer_other = {}, .before = {}, .after = {}})
      .walk(graph);
  std::vector<TensorPtr> result;
  for (const Value* output : graph.outputs()) {
    if (!output->constant) return std::nullopt;
    result.push_back(output->constant);
  }
  return result;
}

/// The same for the model as it was, which may be one that tonnx does not take.
std::optional<std::vector<TensorPtr>> try_run(const Model& model, const std::vector<TensorPtr>& inputs) {
  try {
    return run(model, inputs);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return std::nullopt;
  }
}

/// The parts of tensors that lie along an axis, joined.
TensorPtr joined(const std::vector<TensorPtr>& parts, size_t axis) {
  auto result = std::make_shared<Tensor>(*parts[0]);
  int64_t outer = 1, size = 0;
  for (size_t i = 0; i < axis; ++i) outer *= parts[0]->dims[i];
  for (const TensorPtr& part : parts) size += part->dims[axis];
  std::vector<double> numbers;
  for (int64_t i = 0; i < outer; ++i) {
    for (const TensorPtr& part : parts) {
      const int64_t row = part->count() / outer;
      for (int64_t k = 0; k < row; ++k) numbers.push_back(element_as_double(*part, i * row + k));
    }
  }
  std::vector<int64_t> dims = parts[0]->dims;
  dims[axis] = size;
  return make_floats(parts[0]->dtype, dims, numbers);
}

/// Empty where they are the same up to rounding.
std::string difference(const Tensor& a, const Tensor& b) {
  constexpr double kRelative = 1e-3;
  if (a.dims != b.dims)
    return fmt::format("is [{}] in place of [{}]", fmt::join(b.dims, ", "), fmt::join(a.dims, ", "));
  double largest = 0, most = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double x = element_as_double(a, i);
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  for (int64_t i = 0; i < a.count(); ++i) {
    const double x = element_as_double(a, i), y = element_as_double(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double off = std::abs(x - y);
    most = std::isnan(off) ? INFINITY : std::max(most, off);
  }
  const double allowed = is_float(a.dtype) ? kRelative * std::max(largest, 1e-3) : 0;
  return most > allowed ? fmt::format("differs by {:.2g}, of at most {:.2g}", most, largest) : "";
}

class Comparison {
 public:
  Comparison(const Model& fixed, const Model& opened, const OpeningRequest& request)
      : fixed_(fixed), opened_(opened), request_(request) {}

  std::string compare() {
    for (const Value* input : inputs_without_values(*fixed_.graph)) {
      if (!input->type.is_tensor() || !input->type.shape || input->type.dtype == DType::String)
        return std::string(kNotJudged) + "an input is no tensor of numbers";
      for (const Dim& size : *input->type.shape) {
        if (!size.is_constant()) return std::string(kNotJudged) + "the model has other open sizes";
      }
    }
    if (!request_.is_one_sample()) return compare_at(1, {sample()});
    std::vector<std::vector<TensorPtr>> samples;
    for (int64_t i = 0; i < kMostSamples; ++i) samples.push_back(sample());
    for (const int64_t count : {int64_t{1}, int64_t{2}, kMostSamples}) {
      const std::string answer = compare_at(
          count,
          std::vector<std::vector<TensorPtr>>(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(count)));
      if (!answer.empty()) return answer;
    }
    return "";
  }

 private:
  /// Inputs at the sizes of the file. What is no part of a sample is the same for all of them.
  std::vector<TensorPtr> sample() {
    std::vector<TensorPtr> result;
    const std::vector<Value*> inputs = inputs_without_values(*fixed_.graph);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_part = axis_of(*inputs[i]).has_value();
      if (!is_part && i < shared_.size() && shared_[i] != nullptr) {
        result.push_back(shared_[i]);
        continue;
      }
      std::vector<int64_t> dims;
      for (const Dim& size : *inputs[i]->type.shape) dims.push_back(*size.constant());
      result.push_back(draws_.tensor(inputs[i]->type.dtype, dims));
      shared_.resize(inputs.size());
      shared_[i] = result.back();
    }
    return result;
  }

  std::optional<size_t> axis_of(const Value& input) const {
    for (const OpeningPlace& place : request_.places) {
      if (fixed_.graph->inputs()[place.input]->name == input.name) return place.axis;
    }
    return std::nullopt;
  }

  std::string compare_at(int64_t count, const std::vector<std::vector<TensorPtr>>& samples) {
    std::vector<std::vector<TensorPtr>> each;
    for (const std::vector<TensorPtr>& inputs : samples) {
      auto outputs = try_run(fixed_, inputs);
      if (!outputs) return std::string(kNotJudged) + "tonnx itself cannot compute the model";
      each.push_back(std::move(*outputs));
    }
    std::vector<TensorPtr> all;
    const std::vector<Value*> inputs = inputs_without_values(*fixed_.graph);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto axis = axis_of(*inputs[i]);
      std::vector<TensorPtr> parts;
      for (const auto& sample : samples) parts.push_back(sample[i]);
      all.push_back(axis && count > 1 ? joined(parts, *axis) : parts[0]);
    }
    const auto outputs = run(opened_, all);
    if (!outputs) return std::string(kNotJudged) + "tonnx itself cannot compute the model";
    for (size_t i = 0; i < outputs->size(); ++i) {
      std::vector<TensorPtr> parts;
      for (const auto& one : each) parts.push_back(one[i]);
      const std::string text = difference(*expected(parts, i), *(*outputs)[i]);
      if (!text.empty())
        return fmt::format("at {} sample{} output '{}' {}", count, count == 1 ? "" : "s",
                           fixed_.graph->outputs()[i]->name, text);
    }
    return "";
  }

  /// What the samples give together: along the axis that is open now.
  TensorPtr expected(const std::vector<TensorPtr>& parts, size_t output) const {
    if (parts.size() == 1) return parts[0];
    const Type& type = opened_.graph->outputs()[output]->type;
    for (size_t i = 0; type.shape && i < type.shape->size() && i < parts[0]->dims.size(); ++i) {
      if (!(*type.shape)[i].is_constant()) return joined(parts, i);
    }
    return parts[0];
  }

  const Model& fixed_;
  const Model& opened_;
  const OpeningRequest& request_;
  Draws draws_;
  std::vector<TensorPtr> shared_;
};

}  // namespace

std::string compare_opened(const Model& fixed, const Model& opened, const OpeningRequest& request,
                           const FixedTypes& types) {
  if (!work_of(*fixed.graph, types)) return std::string(kNotJudged) + "the model is too large to be computed here";
  const OtherBudgetScope budget{Limits()};
  try {
    return Comparison(fixed, opened, request).compare();
  } catch (const LimitError& e) {
    return std::string(kNotJudged) + e.text();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return fmt::format("the model that was written cannot run: {}", e.text());
  }
}

}  // namespace tonnx
