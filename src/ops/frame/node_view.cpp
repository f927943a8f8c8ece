// node_view.cpp - access to the arguments of an ONNX node by the names of its signature.
#include "ops/frame/node_view.h"

#include "base/error.h"

namespace tonnx {
namespace {

constexpr int64_t kKnownIntsLimit = 1024;  // a shape is small; larger tensors are data

AttrType expected_type(const std::string& type) {
  if (type == "int" || type == "bool") return AttrType::Int;
  if (type == "float") return AttrType::Float;
  if (type == "str") return AttrType::String;
  if (type == "ints") return AttrType::Ints;
  if (type == "floats") return AttrType::Floats;
  if (type == "strs") return AttrType::Strings;
  if (type == "tensor") return AttrType::Tensor;
  if (type == "tensors") return AttrType::Tensors;
  if (type == "sparse") return AttrType::SparseTensor;
  if (type == "graph") return AttrType::Graph;
  if (type == "graphs") return AttrType::Graphs;
  if (type == "type") return AttrType::Type;
  return AttrType::None;
}

}  // namespace

void check_against_signature(const Node& node, const OnnxOpEntry& entry) {
  const ParsedSignature& sig = entry.signature;
  const bool variadic = !sig.inputs.empty() && sig.inputs.back().variadic;
  require(variadic || node.inputs().size() <= sig.inputs.size(), "{} inputs where {} has at most {}",
          node.inputs().size(), sig.name, sig.inputs.size());
  for (size_t i = 0; i < sig.inputs.size(); ++i) {
    const Param& param = sig.inputs[i];
    require(param.optional || param.variadic || node.input(i) != nullptr, "input '{}' is missing", param.name);
  }
  for (size_t i = sig.inputs.size() - 1; variadic && i < node.inputs().size(); ++i)
    require(node.input(i) != nullptr, "input {} of {}, one of '{}', is absent", i, sig.name, sig.inputs.back().name);
  const bool variadic_outputs = !sig.outputs.empty() && sig.outputs.back().variadic;
  require(variadic_outputs || node.outputs().size() <= sig.outputs.size(), "{} outputs where {} has at most {}",
          node.outputs().size(), sig.name, sig.outputs.size());
  for (const Attribute& attribute : node.attributes) {
    const int at = sig.find_attribute(attribute.name);
    require(at >= 0, "{} has no attribute '{}'", sig.name, attribute.name);
    const AttrType wanted = expected_type(sig.attributes[static_cast<size_t>(at)].type);
    require(attribute.type == wanted || (attribute.type == AttrType::None && attr_type_of(attribute.value) == wanted),
            "attribute '{}' is not of type {}", attribute.name, sig.attributes[static_cast<size_t>(at)].type);
  }
  for (const Param& param : sig.attributes) {
    require(param.optional || param.has_default || node.find_attribute(param.name) != nullptr,
            "attribute '{}' is missing", param.name);
  }
}

TensorPtr find_tensor_of_constant(const Node& node) {
  for (const Attribute& attribute : node.attributes) {
    const AttrValue& value = attribute.value;
    if (const auto* tensor = value.get<TensorPtr>()) return *tensor;
    if (const auto* sparse = value.get<SparseTensorPtr>()) return densified(**sparse);
    if (const auto* i = value.get<int64_t>()) {
      auto scalar = std::make_shared<Tensor>(*make_ints({*i}));
      scalar->dims.clear();
      return scalar;
    }
    if (const auto* f = value.get<double>()) return make_scalar(DType::Float32, *f);
    if (const auto* floats = value.get<std::vector<double>>()) {
      return make_floats(DType::Float32, {static_cast<int64_t>(floats->size())}, *floats);
    }
    if (const auto* ints = value.get<std::vector<int64_t>>()) return make_ints(*ints);
  }
  return nullptr;
}

std::optional<Dims> find_dims(const Value& value) {
  if (value.known_ints) return value.known_ints;
  if (!value.constant || value.constant->dims.size() > 1) return std::nullopt;
  if (value.constant->dtype == DType::UInt64) return std::nullopt;  // past the numbers that a size can be
  const auto ints = ints_of(*value.constant, kKnownIntsLimit);
  if (!ints) return std::nullopt;
  return Dims(ints->begin(), ints->end());
}

int NodeView::input_index(std::string_view name) const {
  const int at = entry_->signature.find_input(name);
  if (at < 0) throw Error(ErrorKind::Internal, fmt::format("{} has no input '{}'", entry_->signature.name, name));
  mark_used_input(at);
  return at;
}

const Attribute* NodeView::attribute(std::string_view name, AttrType type) const {
  const int at = entry_->signature.find_attribute(name);
  if (at < 0) throw Error(ErrorKind::Internal, fmt::format("{} has no attribute '{}'", entry_->signature.name, name));
  used_attributes_ |= uint64_t{1} << (at & 63);
  const Attribute* found = node_->find_attribute(name);
  if (found == nullptr) return nullptr;
  const AttrType given = found->type == AttrType::None ? attr_type_of(found->value) : found->type;
  require(given == type, "attribute '{}' is of the wrong type", name);
  return found;
}

const AttrValue* NodeView::attribute_or_default(std::string_view name, AttrType type) const {
  if (const Attribute* given = attribute(name, type)) return &given->value;
  const Param& param = entry_->signature.attributes[static_cast<size_t>(entry_->signature.find_attribute(name))];
  return param.has_default && !param.default_value.is_none() ? &param.default_value : nullptr;
}

bool NodeView::has(std::string_view name) const {
  const int at = entry_->signature.find_input(name);
  if (at >= 0) return node_->input(static_cast<size_t>(at)) != nullptr;
  return node_->find_attribute(name) != nullptr;
}

const Value* NodeView::value(std::string_view input) const {
  return node_->input(static_cast<size_t>(input_index(input)));
}

std::vector<const Value*> NodeView::values(std::string_view input) const {
  std::vector<const Value*> result;
  for (size_t i = static_cast<size_t>(input_index(input)); i < node_->inputs().size(); ++i) {
    mark_used_input(static_cast<int>(i));
    result.push_back(node_->inputs()[i]);
  }
  return result;
}

const Type& NodeView::type(std::string_view input) const {
  static const Type unknown;
  const Value* found = value(input);
  return found ? found->type : unknown;
}

DType NodeView::dtype(std::string_view input) const { return type(input).dtype; }
std::optional<int64_t> NodeView::find_rank(std::string_view input) const { return type(input).rank(); }

const Shape* NodeView::find_shape(std::string_view input) const {
  const Type& found = type(input);
  return found.shape ? &*found.shape : nullptr;
}

int64_t NodeView::rank(std::string_view input) const {
  const auto found = find_rank(input);
  if (!found) fail_unsupported("the rank of '{}' is not known", input);
  return *found;
}

std::optional<int64_t> NodeView::find_i(std::string_view name) const {
  const AttrValue* found = attribute_or_default(name, AttrType::Int);
  if (found == nullptr) return std::nullopt;
  if (const auto* b = found->get<bool>()) return *b;
  return *found->get<int64_t>();
}

std::optional<double> NodeView::find_f(std::string_view name) const {
  const AttrValue* found = attribute_or_default(name, AttrType::Float);
  return found ? std::optional(*found->get<double>()) : std::nullopt;
}

std::optional<Ints> NodeView::find_ints(std::string_view name) const {
  const AttrValue* found = attribute_or_default(name, AttrType::Ints);
  return found ? std::optional(*found->get<std::vector<int64_t>>()) : std::nullopt;
}

std::optional<std::vector<double>> NodeView::find_floats(std::string_view name) const {
  const AttrValue* found = attribute_or_default(name, AttrType::Floats);
  return found ? std::optional(*found->get<std::vector<double>>()) : std::nullopt;
}

std::optional<std::vector<std::string>> NodeView::find_strings(std::string_view name) const {
  const AttrValue* found = attribute_or_default(name, AttrType::Strings);
  return found ? std::optional(*found->get<std::vector<std::string>>()) : std::nullopt;
}

TensorPtr NodeView::find_tensor(std::string_view name) const {
  const AttrValue* found = attribute_or_default(name, AttrType::Tensor);
  return found ? *found->get<TensorPtr>() : nullptr;
}

std::optional<Type> NodeView::find_type(std::string_view name) const {
  const Attribute* found = attribute(name, AttrType::Type);
  const auto* type = found ? found->value.get<Type>() : nullptr;
  return type ? std::optional(*type) : std::nullopt;
}

GraphPtr NodeView::find_graph(std::string_view name) const {
  const AttrValue* found = attribute_or_default(name, AttrType::Graph);
  return found ? *found->get<GraphPtr>() : nullptr;
}

std::optional<DType> NodeView::find_dtype(std::string_view name) const {
  const auto number = find_i(name);
  if (!number) return std::nullopt;
  const auto dtype = tonnx::find_dtype(*number);
  require(dtype.has_value(), "{} is not the number of an element type", *number);
  return dtype;
}

int64_t NodeView::i(std::string_view name) const {
  const auto found = find_i(name);
  require(found.has_value(), "attribute '{}' is missing", name);
  return *found;
}

double NodeView::f(std::string_view name) const {
  const auto found = find_f(name);
  require(found.has_value(), "attribute '{}' is missing", name);
  return *found;
}

std::string NodeView::s(std::string_view name) const {
  const AttrValue* found = attribute_or_default(name, AttrType::String);
  require(found != nullptr, "attribute '{}' is missing", name);
  return *found->get<std::string>();
}

Ints NodeView::ints(std::string_view name) const {
  const auto found = find_ints(name);
  require(found.has_value(), "attribute '{}' is missing", name);
  return *found;
}

TensorPtr NodeView::find_constant(std::string_view input) const {
  const Value* found = value(input);
  return found ? found->constant : nullptr;
}

std::optional<Dims> NodeView::find_dims(std::string_view input) const {
  const Value* found = value(input);
  return found ? tonnx::find_dims(*found) : std::nullopt;
}

std::optional<Ints> NodeView::find_const_ints(std::string_view input) const {
  if (const TensorPtr constant = find_constant(input)) return ints_of(*constant, INT64_MAX);
  const auto dims = find_dims(input);
  if (!dims) return std::nullopt;
  std::vector<int64_t> result;
  for (const Dim& dim : *dims) {
    if (!dim.is_constant()) return std::nullopt;
    result.push_back(*dim.constant());
  }
  return result;
}

std::optional<std::vector<double>> NodeView::find_const_floats(std::string_view input) const {
  if (const TensorPtr constant = find_constant(input)) return floats_of(*constant);
  return std::nullopt;
}

Ints NodeView::const_ints(std::string_view input) const {
  const auto found = find_const_ints(input);
  if (!found) fail_unsupported("input '{}' is not constant", input);
  return *found;
}

int64_t NodeView::const_int(std::string_view input) const {
  const std::vector<int64_t> found = const_ints(input);
  require(found.size() == 1, "input '{}' has {} elements where one is needed", input, found.size());
  return found[0];
}

int64_t NodeView::normalized(int64_t axis, int64_t rank) {
  require(axis >= -rank && axis < rank, "axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

int64_t NodeView::axis(std::string_view name, std::string_view of) const {
  const int64_t given = entry_->signature.find_attribute(name) >= 0 ? i(name) : const_int(name);
  return normalized(given, rank(of));
}

int64_t NodeView::axis_of_any_rank(std::string_view name, std::string_view of) const {
  if (find_rank(of)) return axis(name, of);
  const int64_t given = i(name);
  require(given >= -kMaxRank && given < kMaxRank, "axis {} is out of range", given);
  return given;
}

}  // namespace tonnx
