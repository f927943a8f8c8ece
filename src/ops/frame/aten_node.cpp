// aten_node.cpp - access to the arguments of an aten node by the names of its schema, and raisings that many share.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/conversion.h"

namespace tonnx {
namespace {

[[noreturn]] void fail_kind(std::string_view name, const char* wanted) {
  fail_unsupported("argument '{}' is not {}", name, wanted);
}

/// The two parts of a complex number; null where the argument is none.
const std::vector<double>* complex_number(const AttrValue& value) {
  const auto* parts = value.get<std::vector<double>>();
  return parts && parts->size() == 2 ? parts : nullptr;
}

/// The element type that PyTorch gives a number.
DType dtype_of_number(const AttrValue& value) {
  if (value.get<bool>()) return DType::Bool;
  if (complex_number(value)) return DType::Complex64;
  return value.get<double>() ? DType::Float32 : DType::Int64;
}

DType dtype_of_kind(const Type& type) {
  switch (type.kind) {
    case Type::Kind::Float: return DType::Float32;
    case Type::Kind::Bool: return DType::Bool;
    default: return DType::Int64;
  }
}

std::optional<double> number_of(const AttrValue& value) {
  if (const auto* b = value.get<bool>()) return *b ? 1.0 : 0.0;
  if (const auto* i = value.get<int64_t>()) return static_cast<double>(*i);
  if (const auto* f = value.get<double>()) return *f;
  return std::nullopt;
}

/// What counts or measures is far from the ends of its type, so that sums of it do not leave it.
int64_t in_bounds(int64_t number, std::string_view name) {
  constexpr int64_t kMost = int64_t{1} << 48;
  require(number > -kMost && number < kMost, "argument '{}' is {}", name, number);
  return number;
}

}  // namespace

const AttrValue& AtenNode::value(std::string_view name) const {
  const int at = entry_->signature.find_input(name);
  if (at < 0) throw Error(ErrorKind::Internal, fmt::format("{} has no argument '{}'", entry_->op->sig.name(), name));
  used_ |= uint64_t{1} << (at & 63);
  if (const Attribute* given = node_->find_attribute(name)) return given->value;
  const Param& param = entry_->signature.inputs[static_cast<size_t>(at)];
  require(param.has_default || param.optional, "argument '{}' is missing", name);
  return param.default_value;
}

const Value* AtenNode::aten_value(const AttrValue& argument) const {
  const auto* operand = argument.get<Operand>();
  return operand ? node_->input(operand->index) : nullptr;
}

bool AtenNode::has(std::string_view name) const { return !value(name).is_none(); }

bool AtenNode::is_tensor(std::string_view name) const {
  const Value* found = aten_value(value(name));
  return found != nullptr && found->type.is_tensor();
}

Value* AtenNode::raised(const AttrValue& argument) const {
  OnnxBuilder onnx(*raising_);
  if (const Value* found = aten_value(argument)) {
    Value* made = raising_->value_of(found);
    return found->type.kind == Type::Kind::Int ? onnx.scalar(made) : made;
  }
  if (const auto* i = argument.get<int64_t>()) return onnx.integer(DType::Int64, *i);
  if (const auto number = number_of(argument)) return onnx.number(dtype_of_number(argument), *number);
  if (const auto* parts = complex_number(argument)) return onnx.numbers(DType::Float64, {2}, *parts);
  return nullptr;
}

Value* AtenNode::find_input(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (argument.is_none()) return nullptr;
  Value* found = raised(argument);
  if (found == nullptr) fail_kind(name, "a tensor");
  return found;
}

Value* AtenNode::input(std::string_view name) const {
  Value* found = find_input(name);
  require(found != nullptr, "argument '{}' is missing", name);
  return found;
}

CheckedList<Value*> AtenNode::inputs(std::string_view name) const {
  const AttrValue& argument = value(name);
  CheckedList<Value*> result;
  if (const auto* none = argument.get<std::vector<int64_t>>(); none != nullptr && none->empty()) return result;
  const auto* list = argument.get<AttrList>();
  if (list == nullptr) fail_kind(name, "a list of tensors");
  for (const AttrValue& item : *list) result.push_back(item.is_none() ? nullptr : raised(item));
  return result;
}

CheckedList<Value*> AtenNode::operands(std::string_view name) const {
  CheckedList<Value*> result = inputs(name);
  OnnxBuilder onnx(*raising_);
  const auto* list = value(name).get<AttrList>();
  for (size_t i = 0; i < result.size(); ++i) {
    const AttrValue& item = (*list)[i];
    const Value* aten = aten_value(item);
    if (aten != nullptr && aten->type.kind == Type::Kind::Int) {
      result[i] = raising_->value_of(aten);
    } else if (const auto* number = item.get<int64_t>()) {
      result[i] = onnx.ints({*number});
    }
    require(result[i] != nullptr, "an item of argument '{}' is None", name);
  }
  return result;
}

Value* AtenNode::input_as(std::string_view name, DType dtype) const {
  const AttrValue& argument = value(name);
  OnnxBuilder onnx(*raising_);
  if (const auto* i = argument.get<int64_t>()) return onnx.integer(dtype, *i);
  if (const auto number = number_of(argument)) return onnx.number(dtype, *number);
  // whoever knows that they are pairs asks for them as they are
  if (const Value* found = aten_value(argument);
      info(dtype).kind == 'c' || (found && info(found->type.dtype).kind == 'c'))
    fail_unsupported("'{}' is a tensor of complex numbers", name);
  return onnx.cast(input(name), dtype);
}

const Type& AtenNode::type(std::string_view name) const {
  const Value* found = aten_value(value(name));
  if (found == nullptr || !found->type.is_tensor()) fail_kind(name, "a tensor");
  return found->type;
}

DType AtenNode::dtype(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (const Value* found = aten_value(argument))
    return found->type.is_tensor() ? found->type.dtype : dtype_of_kind(found->type);
  return dtype_of_number(argument);
}

int64_t AtenNode::rank(std::string_view name) const {
  return is_tensor(name) ? static_cast<int64_t>(shape(name).size()) : 0;
}

const Shape& AtenNode::shape(std::string_view name) const {
  const Type& found = type(name);
  require(found.shape.has_value(), "the sizes of argument '{}' are not known", name);
  return *found.shape;
}

const Type& AtenNode::output_type(size_t i) const {
  const Value* output = node_->output(i);
  require(output != nullptr, "output {} is missing", i);
  return output->type;
}

const Shape& AtenNode::output_shape(size_t i) const {
  const Type& found = output_type(i);
  require(found.is_tensor() && found.shape.has_value(), "the sizes of output {} are not known", i);
  return *found.shape;
}

DType AtenNode::promoted(std::initializer_list<std::string_view> names) const {
  // tensors with dimensions count before those without, and these before numbers, unless the kind is a higher one
  DType by_rank[3] = {DType::Undefined, DType::Undefined, DType::Undefined};
  for (const std::string_view name : names) {
    if (!has(name)) continue;
    const size_t level = !is_tensor(name) ? 2 : rank(name) == 0 ? 1 : 0;
    by_rank[level] = promote(by_rank[level], dtype(name));
  }
  return promote_number(promote_number(by_rank[0], by_rank[1]), by_rank[2]);
}

int64_t AtenNode::i(std::string_view name) const {
  const auto found = find_i(name);
  require(found.has_value(), "argument '{}' is missing", name);
  return *found;
}

int64_t AtenNode::positive(std::string_view name) const {
  const int64_t found = i(name);
  require(found >= 1, "argument '{}' is {}", name, found);
  return found;
}

Ints AtenNode::positives(std::string_view name) const {
  Ints found = ints(name);
  for (const int64_t number : found) require(number >= 1, "argument '{}' holds {}", name, number);
  return found;
}

std::optional<int64_t> AtenNode::find_i(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (argument.is_none()) return std::nullopt;
  if (const auto* b = argument.get<bool>()) return *b ? 1 : 0;
  if (const auto* i = argument.get<int64_t>()) return in_bounds(*i, name);
  if (const auto* list = argument.get<std::vector<int64_t>>(); list && list->size() == 1)
    return in_bounds(list->front(), name);
  const Value* symbolic = aten_value(argument);
  if (symbolic != nullptr && symbolic->known_ints && symbolic->known_ints->front().is_constant())
    return in_bounds(*symbolic->known_ints->front().constant(), name);
  fail_kind(name, "a fixed integer");
}

double AtenNode::f(std::string_view name) const {
  const auto found = find_f(name);
  require(found.has_value(), "argument '{}' is missing", name);
  return *found;
}

std::optional<double> AtenNode::find_f(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (argument.is_none()) return std::nullopt;
  if (const auto number = number_of(argument)) return number;
  fail_kind(name, "a fixed number");
}

bool AtenNode::flag(std::string_view name) const { return i(name) != 0; }

std::optional<bool> AtenNode::find_flag(std::string_view name) const {
  const auto found = find_i(name);
  return found ? std::optional(*found != 0) : std::nullopt;
}

std::string AtenNode::s(std::string_view name) const {
  const auto found = find_s(name);
  require(found.has_value(), "argument '{}' is missing", name);
  return *found;
}

std::optional<std::string> AtenNode::find_s(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (argument.is_none()) return std::nullopt;
  const auto* text = argument.get<std::string>();
  if (text == nullptr) fail_kind(name, "a text");
  return *text;
}

Ints AtenNode::ints(std::string_view name) const {
  const auto found = find_ints(name);
  require(found.has_value(), "argument '{}' is missing", name);
  return *found;
}

std::optional<Ints> AtenNode::find_ints(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (argument.is_none()) return std::nullopt;
  Ints result;
  const auto add = [&](int64_t number) { result.push_back(in_bounds(number, name)); };
  if (const auto* list = argument.get<std::vector<int64_t>>()) {
    for (const int64_t number : *list) add(number);
    return result;
  }
  if (const auto* one = argument.get<int64_t>()) {
    add(*one);
    return result;
  }
  const auto* mixed = argument.get<AttrList>();
  if (mixed == nullptr) fail_kind(name, "a list of integers");
  for (const AttrValue& item : *mixed) {
    const Value* symbolic = aten_value(item);
    if (const auto* number = item.get<int64_t>()) {
      add(*number);
    } else if (const auto* flag = item.get<bool>()) {
      add(*flag ? 1 : 0);
    } else if (symbolic && symbolic->known_ints && symbolic->known_ints->front().is_constant()) {
      add(*symbolic->known_ints->front().constant());
    } else {
      fail_kind(name, "a list of fixed integers");
    }
  }
  return result;
}

std::optional<std::vector<double>> AtenNode::find_floats(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (argument.is_none()) return std::nullopt;
  if (const auto* list = argument.get<std::vector<double>>()) return *list;
  if (const auto* whole = argument.get<std::vector<int64_t>>())
    return std::vector<double>(whole->begin(), whole->end());
  if (const auto number = number_of(argument)) return std::vector{*number};
  fail_kind(name, "a list of fixed numbers");
}

std::optional<DType> AtenNode::find_dtype(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (argument.is_none()) return std::nullopt;
  const auto* dtype = argument.get<DType>();
  if (dtype == nullptr) fail_kind(name, "an element type");
  return *dtype;
}

GraphPtr AtenNode::graph(std::string_view name) const {
  const auto* graph = value(name).get<GraphPtr>();
  require(graph != nullptr, "argument '{}' is not a graph", name);
  return *graph;
}

void AtenNode::ignore(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    // what the schema does not have is reported with all that was not asked for
    if (entry_->signature.find_input(name) >= 0) value(name);
  }
}

std::optional<IntArg> AtenNode::find_int_arg(std::string_view name) const {
  const AttrValue& argument = value(name);
  if (argument.is_none()) return std::nullopt;
  const Value* symbolic = aten_value(argument);
  // an end may lie beyond everything
  if (const auto* number = argument.get<int64_t>()) return IntArg(*number);
  if (symbolic == nullptr) return IntArg(*find_i(name));
  if (symbolic->known_ints && raising_->can_make(symbolic->known_ints->front()))
    return raising_->int_of(symbolic->known_ints->front());
  return IntArg(raising_->value_of(symbolic));
}

IntArg AtenNode::int_arg(std::string_view name) const {
  const auto found = find_int_arg(name);
  require(found.has_value(), "argument '{}' is missing", name);
  return *found;
}

IntArgs AtenNode::int_args(std::string_view name) const {
  const AttrValue& argument = value(name);
  IntArgs result;
  const auto* mixed = argument.get<AttrList>();
  if (mixed == nullptr) {
    for (const int64_t number : ints(name)) result.emplace_back(number);
    return result;
  }
  for (const AttrValue& item : *mixed) {
    if (const auto* number = item.get<int64_t>()) {
      result.emplace_back(in_bounds(*number, name));
      continue;
    }
    const Value* symbolic = aten_value(item);
    if (symbolic == nullptr) fail_kind(name, "a list of integers");
    const bool is_size = symbolic->known_ints && raising_->can_make(symbolic->known_ints->front());
    result.push_back(is_size ? raising_->int_of(symbolic->known_ints->front()) : IntArg(raising_->value_of(symbolic)));
  }
  return result;
}

int64_t AtenNode::normalized(int64_t dim, int64_t rank) {
  const int64_t range = std::max<int64_t>(rank, 1);
  require(dim >= -range && dim < range, "dimension {} is out of range for rank {}", dim, rank);
  return dim < 0 ? dim + range : dim;
}

int64_t AtenNode::dim(std::string_view name, std::string_view of) const { return normalized(i(name), rank(of)); }

Ints AtenNode::dims(std::string_view name, std::string_view of) const {
  std::vector<int64_t> result = find_ints(name).value_or(std::vector<int64_t>());
  for (int64_t& dim : result) dim = normalized(dim, rank(of));
  return result;
}

void AtenNode::require_all_used() const {
  const ParsedSignature& signature = entry_->signature;
  for (const Attribute& attribute : node_->attributes) {
    const int at = signature.find_input(attribute.name);
    if (at < 0) fail_unsupported("argument '{}' is not known", attribute.name);
    if ((used_ >> (at & 63) & 1) != 0 || attribute.value.is_none()) continue;
    const Param& param = signature.inputs[static_cast<size_t>(at)];
    const bool is_placement = param.type == "Device" || param.type == "Layout" || param.type == "MemoryFormat" ||
                              param.name == "pin_memory" || param.type == "Generator";
    if (is_placement || (param.has_default && equals_default(attribute.value, param.default_value, param.is_list)))
      continue;
    fail_unsupported("argument '{}' is not supported", attribute.name);
  }
}

DType promote(DType a, DType b) {
  if (a == b || b == DType::Undefined) return a;
  if (a == DType::Undefined || a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  const char x = info(a).kind, y = info(b).kind;
  if (x == 'c' || y == 'c') {
    const bool is_double =
        a == DType::Complex128 || b == DType::Complex128 || a == DType::Float64 || b == DType::Float64;
    return is_double ? DType::Complex128 : DType::Complex64;
  }
  if (x == 'f' || y == 'f') {
    if (x != 'f') return b;
    if (y != 'f') return a;
    if (info(a).bits == info(b).bits) return DType::Float32;  // float16 and bfloat16
    return info(a).bits > info(b).bits ? a : b;
  }
  if (x == y) return info(a).bits > info(b).bits ? a : b;
  // signed and unsigned: the signed type that holds both
  const DType is_unsigned = x == 'u' ? a : b, is_signed = x == 'u' ? b : a;
  if (info(is_signed).bits > info(is_unsigned).bits) return is_signed;
  switch (info(is_unsigned).bits) {
    case 8: return DType::Int16;
    case 16: return DType::Int32;
    default: return DType::Int64;
  }
}

DType promote_number(DType tensor, DType number) {
  if (tensor == DType::Undefined) return number;
  if (number == DType::Undefined) return tensor;
  const auto rank_of = [](DType dtype) {
    switch (info(dtype).kind) {
      case 'b': return 0;
      case 'i':
      case 'u': return 1;
      case 'f': return 2;
      default: return 3;
    }
  };
  if (rank_of(number) <= rank_of(tensor)) return tensor;
  return number;
}

Values raise_elementwise(const AtenNode& n, OnnxBuilder& onnx, std::string_view op) {
  return onnx(op, {n.input_as("self", n.output_dtype())});
}

Values raise_nothing(const AtenNode& n, OnnxBuilder&) {
  for (const char* ignored : {"memory_format"}) {
    if (n.node().find_attribute(ignored)) n.ignore({ignored});
  }
  return n.input("self");
}

}  // namespace tonnx
