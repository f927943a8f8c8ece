// script_literals.cpp - computes with small tensors that the code itself makes, such as the scale of an image.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/budget.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/interpreter.h"
#include "formats/torchscript/item_facts.h"
#include "ops/frame/aten_names.h"
#include "ops/frame/result_dtype.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;

constexpr int64_t kMostElements = 16;
constexpr DTypeSet kTypes =
    dtype_set(DType::Float32, DType::Int64);  // floats round at each step, as they do in the run

/// Whether a node writes to the memory of the value, itself or through views.
bool is_written(const Value& value) {
  std::vector<const Value*> views = {&value};
  while (!views.empty()) {
    const Value& view = *views.back();
    views.pop_back();
    for (const Use& use : view.uses) {
      budget().take(Resource::Steps, 1);
      if (use.user == nullptr || use.index != 0) continue;
      if (writes_self(*use.user)) return true;
      const AtenOpEntry* const entry = find_canonical_op(*use.user);
      if (entry == nullptr || entry->op->view == ViewRule::None) continue;
      for (const Value* each : use.user->outputs()) views.push_back(each);
    }
  }
  return false;
}

struct Numbers {
  DType dtype = DType::Undefined;
  Ints dims;
  std::vector<double> values;

  double at(size_t i) const { return values[values.size() == 1 ? 0 : i]; }
  double rounded(double value) const { return dtype == DType::Float32 ? static_cast<float>(value) : value; }
};

/// Whether the operator gives floats, of integers too.
bool gives_floats(std::string_view op) {
  return op == "div" || op == "pow" || op == "reciprocal" || op == "sqrt" || op == "log2";
}

/// Powers that are the same wherever they are computed; those of other exponents may be rounded in another way.
bool is_exact_power(double exponent) { return exponent == 0.5 || exponent == 1 || exponent == 2; }

using Binary = double (*)(double, double);
Binary find_binary(std::string_view op, bool is_float) {
  if (op == "add") return [](double a, double b) { return a + b; };
  if (op == "sub") return [](double a, double b) { return a - b; };
  if (op == "mul") return [](double a, double b) { return a * b; };
  if (op == "min" || op == "minimum") return [](double a, double b) { return std::min(a, b); };
  if (op == "max" || op == "maximum") return [](double a, double b) { return std::max(a, b); };
  if (op == "div" && is_float) return [](double a, double b) { return a / b; };
  if (op == "pow" && is_float) return [](double a, double b) { return b == 0.5 ? std::sqrt(a) : std::pow(a, b); };
  return nullptr;
}

using Unary = double (*)(double);
Unary find_unary(std::string_view op, bool is_float) {
  if (op == "neg") return [](double a) { return -a; };
  if (op == "abs") return [](double a) { return std::abs(a); };
  if (!is_float) return nullptr;
  if (op == "reciprocal") return [](double a) { return 1 / a; };
  if (op == "sqrt") return [](double a) { return std::sqrt(a); };
  if (op == "log2") return [](double a) { return std::log2(a); };
  if (op == "round") return [](double a) { return std::nearbyint(a); };
  if (op == "floor") return [](double a) { return std::floor(a); };
  if (op == "ceil") return [](double a) { return std::ceil(a); };
  return nullptr;
}

}  // namespace

bool Interpreter::is_known_tensor(const Item& item) const {
  return item.is(IKind::Tensor) && item.value != nullptr && item.value->constant != nullptr &&
         item.value->producer == nullptr && !is_written(*item.value);
}

/// A tensor that the code made, and nobody writes to; weights keep their names, and are left to the run.
bool Interpreter::is_literal(const Item& item) const {
  return is_known_tensor(item) && !weights_.contains(item.value->constant.get()) &&
         contains(kTypes, item.value->constant->dtype) && item.value->constant->count() <= kMostElements;
}

std::optional<Item> Interpreter::of_literals(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  // traces have sizes as tensors: those that are known are literals
  const auto is_size = [](const Item& item) {
    return item.is(IKind::Tensor) && item.number && item.number->is(IKind::Int) && item.number->is_constant();
  };
  if (branches_ > 0 || args.empty() || args.size() > 2 || !arguments.keywords.empty() ||
      !(is_size(args[0]) || is_literal(args[0])))
    return std::nullopt;
  const auto numbers_of = [&](const Item& item) {
    if (is_size(item)) return Numbers{DType::Int64, {}, {real_of(*item.number)}};
    const Tensor& tensor = *item.value->constant;
    Numbers result{tensor.dtype, tensor.dims, {}};
    for (int64_t i = 0; i < tensor.count(); ++i) result.values.push_back(element_as_double(tensor, i));
    return result;
  };
  const auto made = [&](const Numbers& numbers) {
    std::vector<double> values;
    for (const double value : numbers.values) {
      // integers past what a double holds are left to the run
      if (numbers.dtype == DType::Int64 && std::abs(value) > 0x1p52) return std::optional<Item>();
      values.push_back(numbers.rounded(value));
    }
    return std::optional(Item::tensor(calls_.constant(
        make_floats(numbers.dtype, std::vector<int64_t>(numbers.dims.begin(), numbers.dims.end()), values),
        "constant")));
  };
  Numbers self = numbers_of(args[0]);
  const bool has_float = args.size() == 2 && args[1].is(IKind::Float);
  if (gives_floats(op) && (op != "pow" || has_float) && self.dtype == DType::Int64) {
    self.dtype = DType::Float32;
    for (double& value : self.values) value = self.rounded(value);
  }
  const bool is_float = self.dtype == DType::Float32;
  if (args.size() == 1) {
    if ((op == "min" || op == "max") && !self.values.empty()) {
      const auto ends = std::minmax_element(self.values.begin(), self.values.end());
      return made({self.dtype, {}, {op == "min" ? *ends.first : *ends.second}});
    }
    const Unary unary = find_unary(op, is_float);
    if (unary == nullptr) return std::nullopt;
    for (double& value : self.values) value = unary(value);
    return made(self);
  }
  if (op == "to" && args[1].is(IKind::Int) && args[1].is_constant()) {
    const DType dtype = dtype_of(args[1].integer);
    if (!contains(kTypes, dtype)) return std::nullopt;
    if (dtype == DType::Int64) {
      for (double& value : self.values) {
        if (!std::isfinite(value)) return std::nullopt;
        value = std::trunc(value);
      }
    }
    self.dtype = dtype;
    return made(self);
  }
  Numbers other;
  if (is_size(args[1]) || is_literal(args[1])) {
    other = numbers_of(args[1]);
    if (op == "div" && other.dtype == DType::Int64) {
      other.dtype = DType::Float32;
      for (double& value : other.values) value = other.rounded(value);
    }
    if (other.dtype != self.dtype) return std::nullopt;
  } else if (args[1].is_number() && args[1].is_constant() && (is_float || args[1].is(IKind::Int))) {
    other = {self.dtype, {}, {real_of(args[1])}};
    if (op == "min" || op == "max") return std::nullopt;  // along a dimension
  } else {
    return std::nullopt;
  }
  if (op == "pow" && !(has_float && is_exact_power(real_of(args[1])))) return std::nullopt;
  const Binary binary = find_binary(op, is_float);
  if (binary == nullptr || (self.dims != other.dims && !self.dims.empty() && !other.dims.empty())) return std::nullopt;
  Numbers result{self.dtype, self.dims.empty() ? other.dims : self.dims, {}};
  const size_t count = std::max(self.values.size(), other.values.size());
  for (size_t i = 0; i < count; ++i) result.values.push_back(binary(self.at(i), other.at(i)));
  return made(result);
}

}  // namespace tonnx::torchscript
