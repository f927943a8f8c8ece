// literals.cpp - computes with small tensors that the code itself makes, such as the scale of an image.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/budget.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/operators/operators.h"
#include "formats/torchscript/run/item_facts.h"
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
constexpr Named<Binary> kBinary[] = {
    {"add", [](double a, double b) { return a + b; }},
    {"max", [](double a, double b) { return std::max(a, b); }},
    {"maximum", [](double a, double b) { return std::max(a, b); }},
    {"min", [](double a, double b) { return std::min(a, b); }},
    {"minimum", [](double a, double b) { return std::min(a, b); }},
    {"mul", [](double a, double b) { return a * b; }},
    {"sub", [](double a, double b) { return a - b; }},
};
constexpr Named<Binary> kBinaryOfFloats[] = {
    {"div", [](double a, double b) { return a / b; }},
    {"pow", [](double a, double b) { return b == 0.5 ? std::sqrt(a) : std::pow(a, b); }},
};

using Unary = double (*)(double);
constexpr Named<Unary> kUnary[] = {
    {"abs", [](double a) { return std::abs(a); }},
    {"neg", [](double a) { return -a; }},
};
constexpr Named<Unary> kUnaryOfFloats[] = {
    {"ceil", [](double a) { return std::ceil(a); }},       {"floor", [](double a) { return std::floor(a); }},
    {"log2", [](double a) { return std::log2(a); }},       {"reciprocal", [](double a) { return 1 / a; }},
    {"round", [](double a) { return std::nearbyint(a); }}, {"sqrt", [](double a) { return std::sqrt(a); }},
};

template <class Function, size_t N, size_t M>
Function find_function(const Named<Function> (&rows)[N], const Named<Function> (&of_floats)[M], std::string_view op,
                       bool is_float) {
  const Function found = find_named(rows, op);
  return found || !is_float ? found : find_named(of_floats, op);
}

/// Traces have sizes as tensors: those that are known are literals.
bool is_known_size(const Item& item) {
  return item.is(IKind::Tensor) && item.number && item.number->is(IKind::Int) && item.number->is_constant();
}

/// A tensor that the code made, and nobody writes to; weights keep their names, and are left to the run.
bool is_literal(const Operators& ops, const Item& item) {
  return is_known_tensor(item) && !ops.weights.contains(item.value->constant.get()) &&
         contains(kTypes, item.value->constant->dtype) && item.value->constant->count() <= kMostElements;
}

Numbers numbers_of(const Item& item) {
  if (is_known_size(item)) return {DType::Int64, {}, {real_of(*item.number)}};
  const Tensor& tensor = *item.value->constant;
  Numbers result{tensor.dtype, tensor.dims, {}};
  for (int64_t i = 0; i < tensor.count(); ++i) result.values.push_back(element_as_double(tensor, i));
  return result;
}

void make_floats_of(Numbers& numbers) {
  if (numbers.dtype != DType::Int64) return;
  numbers.dtype = DType::Float32;
  for (double& value : numbers.values) value = numbers.rounded(value);
}

/// Nothing for integers past what a double holds, which are left to the run.
std::optional<Item> made_of(Operators& ops, const Numbers& numbers) {
  std::vector<double> values;
  for (const double value : numbers.values) {
    if (numbers.dtype == DType::Int64 && std::abs(value) > 0x1p52) return std::nullopt;
    values.push_back(numbers.rounded(value));
  }
  const std::vector<int64_t> dims(numbers.dims.begin(), numbers.dims.end());
  return Item::tensor(ops.calls.constant(make_floats(numbers.dtype, dims, values), "constant"));
}

std::optional<Item> of_one(Operators& ops, const OpCall& call, Numbers self) {
  if ((call.op == "min" || call.op == "max") && !self.values.empty()) {
    const auto ends = std::minmax_element(self.values.begin(), self.values.end());
    return made_of(ops, {self.dtype, {}, {call.op == "min" ? *ends.first : *ends.second}});
  }
  const Unary unary = find_function(kUnary, kUnaryOfFloats, call.op, self.dtype == DType::Float32);
  if (unary == nullptr) return std::nullopt;
  for (double& value : self.values) value = unary(value);
  return made_of(ops, self);
}

std::optional<Item> as_type(Operators& ops, DType dtype, Numbers self) {
  if (!contains(kTypes, dtype)) return std::nullopt;
  if (dtype == DType::Int64) {
    for (double& value : self.values) {
      if (!std::isfinite(value)) return std::nullopt;
      value = std::trunc(value);
    }
  }
  self.dtype = dtype;
  return made_of(ops, self);
}

/// The second argument as numbers of the type of the first.
std::optional<Numbers> second_of(const Operators& ops, const OpCall& call, DType dtype) {
  const Item& given = call.args[1];
  if (is_known_size(given) || is_literal(ops, given)) {
    Numbers other = numbers_of(given);
    if (call.op == "div") make_floats_of(other);
    return other.dtype == dtype ? std::optional(other) : std::nullopt;
  }
  const bool is_taken = given.is_number() && given.is_constant() && (dtype == DType::Float32 || given.is(IKind::Int));
  if (!is_taken || call.op == "min" || call.op == "max") return std::nullopt;  // those are along a dimension
  return Numbers{dtype, {}, {real_of(given)}};
}

}  // namespace

bool is_known_tensor(const Item& item) {
  return item.is(IKind::Tensor) && item.value != nullptr && item.value->constant != nullptr &&
         item.value->producer == nullptr && !is_written(*item.value);
}

std::optional<Item> of_literals(Operators& ops, const OpCall& call) {
  const auto& args = call.args;
  const std::string_view op = call.op;
  if (ops.branches > 0 || args.empty() || args.size() > 2 || !call.arguments.keywords.empty() ||
      !(is_known_size(args[0]) || is_literal(ops, args[0])))
    return std::nullopt;
  Numbers self = numbers_of(args[0]);
  const bool has_float = args.size() == 2 && args[1].is(IKind::Float);
  if (gives_floats(op) && (op != "pow" || has_float)) make_floats_of(self);
  if (args.size() == 1) return of_one(ops, call, std::move(self));
  if (op == "to" && args[1].is(IKind::Int) && args[1].is_constant())
    return as_type(ops, dtype_of(args[1].integer), std::move(self));
  const auto other = second_of(ops, call, self.dtype);
  if (!other || (op == "pow" && !(has_float && is_exact_power(real_of(args[1]))))) return std::nullopt;
  const Binary binary = find_function(kBinary, kBinaryOfFloats, op, self.dtype == DType::Float32);
  if (binary == nullptr || (self.dims != other->dims && !self.dims.empty() && !other->dims.empty()))
    return std::nullopt;
  Numbers result{self.dtype, self.dims.empty() ? other->dims : self.dims, {}};
  const size_t count = std::max(self.values.size(), other->values.size());
  for (size_t i = 0; i < count; ++i) result.values.push_back(binary(self.at(i), other->at(i)));
  return made_of(ops, result);
}

}  // namespace tonnx::torchscript
