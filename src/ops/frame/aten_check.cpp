// aten_check.cpp - holds calls against their schemas, so that no operator need doubt the kinds of its arguments.
#include "ops/frame/aten_check.h"

#include <algorithm>
#include <array>

#include "base/checked_int.h"
#include "base/error.h"
#include "ops/frame/node_view.h"

namespace tonnx {
namespace {

bool is_number_argument(const Type& type) {
  return type.kind == Type::Kind::Int || type.kind == Type::Kind::Float || type.kind == Type::Kind::Bool;
}

bool is_number_argument(const AttrValue& value) {
  return value.get<bool>() || value.get<int64_t>() || value.get<double>();
}

/// Whether the schema's word is one for numbers; a number may be given where another kind of number is due, as Python
/// itself has it.
bool means_number(std::string_view type) {
  constexpr std::array<std::string_view, 6> kNumbers = {"int", "SymInt", "float", "bool", "Scalar", "number"};
  return std::find(kNumbers.begin(), kNumbers.end(), type) != kNumbers.end();
}

bool is_text(std::string_view type) {
  return type == "str" || type == "Device" || type == "Layout" || type == "MemoryFormat";
}

class CallCheck {
 public:
  CallCheck(const Node& node, const ParsedSignature& signature, CallsOf calls)
      : node_(node),
        signature_(signature),
        is_code_(calls == CallsOf::Code),
        is_python_(signature.domain != "aten"),
        takes_graphs_(signature.domain == "higher_order") {}

  void run() const {
    for (const Param& param : signature_.inputs) check(param);
    for (const Value* input : node_.inputs()) {
      if (input != nullptr && !is_code_) check_type(*input);
    }
    check_results();
  }

 private:
  void check(const Param& param) const {
    const Attribute* given = node_.find_attribute(param.name);
    const bool may_be_none = param.optional || (param.has_default && param.default_value.is_none());
    if (given == nullptr) return require(param.has_default || may_be_none, "argument '{}' is missing", param.name);
    if (given->value.is_none()) return require(may_be_none, "argument '{}' is missing", param.name);
    if (param.is_list)
      check_list(param, given->value);
    else
      require(fits(param.type, given->value) || is_wrapped(param, given->value), "argument '{}' is not of the type {}",
              param.name, param.type);
  }

  /// PyTorch takes a number for a tensor where two meet: x + 2.
  bool is_wrapped(const Param& param, const AttrValue& item) const {
    const bool is_side = param.name == "other" || (param.name == "self" && signature_.find_input("other") >= 0);
    return param.type == "Tensor" && is_side && fits_number("Scalar", item, value_of(item));
  }

  const Value* value_of(const AttrValue& item) const {
    const auto* operand = item.get<Operand>();
    return operand ? node_.input(operand->index) : nullptr;
  }

  bool fits(std::string_view type, const AttrValue& item) const {
    const Value* value = value_of(item);
    if (is_code_ && value && !value->type.is_tensor()) return true;
    if (type == "Tensor")
      return (value && value->type.is_tensor()) || (takes_graphs_ && fits_number("Scalar", item, value));
    if (means_number(type)) return fits_number(type, item, value);
    if (is_text(type)) return item.get<std::string>() != nullptr;
    if (type == "ScalarType") return item.get<DType>() != nullptr;
    if (type == "Graph") return item.get<GraphPtr>() != nullptr && *item.get<GraphPtr>() != nullptr;
    return true;
  }

  bool fits_number(std::string_view type, const AttrValue& item, const Value* value) const {
    if (value != nullptr) {
      // PyTorch makes it a number before it exports; a script, or a model that was ONNX, may compute it
      if (type == "int" && !is_python_) return value->type.kind == Type::Kind::Int;
      const bool is_integer = value->type.kind == Type::Kind::Int || value->type.kind == Type::Kind::Bool;
      return is_python_ || type == "Scalar" || type == "float" ? is_number_argument(value->type) : is_integer;
    }
    if (type == "Scalar" && item.get<std::vector<double>>()) return item.get<std::vector<double>>()->size() == 2;
    if (is_python_ || type == "Scalar" || type == "float") return is_number_argument(item);
    return item.get<int64_t>() || (type != "int" && item.get<bool>());
  }

  void check_list(const Param& param, const AttrValue& given) const {
    const auto check_length = [&](size_t length) {
      // a size of 1 only says that a number may stand for the list
      const bool any = param.list_size <= 1 || length == param.list_size || length == 1;
      // an empty list stands for a default that only the operator knows
      require(any || (length == 0 && param.has_default), "argument '{}' has {} items, and {} are due", param.name,
              length, param.list_size);
    };
    if (const auto* ints = given.get<std::vector<int64_t>>(); ints && (means_number(param.type) || ints->empty()))
      return check_length(ints->size());
    if (const auto* floats = given.get<std::vector<double>>();
        floats && (param.type == "float" || param.type == "Scalar" || floats->empty()))
      return check_length(floats->size());
    if (const auto* items = given.get<AttrList>()) {
      for (const AttrValue& item : *items) {
        const bool may_be_none = item.is_none() && param.has_gaps;
        require(may_be_none || fits(param.type, item), "argument '{}' holds something that is not of the type {}",
                param.name, param.type);
      }
      return check_length(items->size());
    }
    // one number stands for a list of equal ones
    require(means_number(param.type) && fits(param.type, given), "argument '{}' is not a list of the type {}",
            param.name, param.type);
  }

  void check_results() const {
    const auto& results = node_.outputs();
    const auto& params = signature_.outputs;
    const bool is_open = std::any_of(params.begin(), params.end(), [](const Param& param) { return param.is_list; });
    require(is_open || results.size() == params.size(), "the node gives {} results, and {} are due", results.size(),
            params.size());
    require(is_open || results.empty() || results[0] != nullptr, "the first result of the node is missing");
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] == nullptr || is_code_) continue;
      check_type(*results[i]);
      if (takes_graphs_) continue;  // gives what its graphs give
      const bool is_tensor = results[i]->type.is_tensor();
      const Param& param = params.size() > i && !is_open ? params[i] : params.back();
      if (param.type == "Tensor") require(is_tensor, "result {} is not a tensor", i);
      if (means_number(param.type)) require(is_number_argument(results[i]->type), "result {} is not a number", i);
    }
  }

  const Node& node_;
  const ParsedSignature& signature_;
  bool is_code_;
  bool is_python_;     // a function of Python on numbers, which takes them all
  bool takes_graphs_;  // whose arguments may be numbers, as those of the graphs
};

}  // namespace

void check_call(const Node& node, const ParsedSignature& signature, CallsOf calls) {
  CallCheck(node, signature, calls).run();
}

void check_type(const Value& value) {
  if (!value.type.is_tensor()) return;
  require(value.type.dtype != DType::Undefined, "the element type of '{}' is not known", value.name);
  require(value.type.shape.has_value(), "the sizes of '{}' are not known", value.name);
  const auto rank = static_cast<int64_t>(value.type.shape->size());
  require(rank <= kMaxRank, "'{}' has {} dimensions, and {} is the most", value.name, rank, kMaxRank);
  int64_t count = 1;  // of those elements that are known of
  for (const Dim& dim : *value.type.shape) {
    const int64_t size = dim.constant().value_or(1);
    require(size >= 0, "'{}' has a size of {}", value.name, size);
    if (size != 0) count = checked_mul(count, size);
  }
}

}  // namespace tonnx
