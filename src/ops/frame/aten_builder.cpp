// aten_builder.cpp - binds arguments to aten schemas and appends the nodes.
#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "ir/origins.h"
#include "ops/frame/conversion.h"
#include "ops/frame/onnx_to_aten.h"

namespace tonnx {
namespace {

constexpr size_t kMaxIntArgs = 1024;

}  // namespace

bool equals_default(const AttrValue& value, const AttrValue& otherwise, bool is_list) {
  if (value.is_none() || otherwise.is_none()) return value.is_none() && otherwise.is_none();
  if (value.get<Operand>()) return false;
  const auto number = [](const AttrValue& v) -> std::optional<double> {
    if (const auto* b = v.get<bool>()) return *b ? 1.0 : 0.0;
    if (const auto* i = v.get<int64_t>()) return static_cast<double>(*i);
    if (const auto* f = v.get<double>()) return *f;
    return std::nullopt;
  };
  // ONNX keeps floats in 32 bits, so that 1e-05 of a file is not quite that of a signature
  if (const auto a = number(value), b = number(otherwise); a && b)
    return static_cast<float>(*a) == static_cast<float>(*b);
  if (const auto *a = value.get<std::string>(), *b = otherwise.get<std::string>(); a && b) return *a == *b;
  if (is_list) {
    const auto* list = value.get<std::vector<int64_t>>();
    if (list == nullptr) return false;
    if (const auto* all = otherwise.get<std::vector<int64_t>>()) return *list == *all;
    if (const auto* one = otherwise.get<int64_t>()) {
      return std::all_of(list->begin(), list->end(), [&](int64_t v) { return v == *one; });
    }
  }
  return false;
}

namespace {

Type type_of_result(const Param& param) {
  if (param.type == "list") return Type::sequence({});
  if (param.type == "SymInt" || param.type == "int")
    return Type::number(param.is_list ? Type::Kind::IntList : Type::Kind::Int);
  if (param.type == "float") return Type::number(Type::Kind::Float);
  if (param.type == "bool") return Type::number(Type::Kind::Bool);
  return Type::tensor(DType::Undefined);
}

}  // namespace

Arg::Arg(std::nullptr_t) {}
Arg::Arg(Value* value) : value_(value), is_value_(value != nullptr) {}
Arg::Arg(bool v) : constant_(v) {}
Arg::Arg(int v) : constant_(static_cast<int64_t>(v)) {}
Arg::Arg(int64_t v) : constant_(v) {}
Arg::Arg(double v) : constant_(v) {}
Arg::Arg(const char* v) : constant_(std::string(v)) {}
Arg::Arg(std::string v) : constant_(std::move(v)) {}
Arg::Arg(DType v) : constant_(v) {}
Arg::Arg(std::vector<int64_t> v) : constant_(std::move(v)) {}
Arg::Arg(std::vector<double> v) : constant_(std::move(v)) {}
Arg::Arg(const IntArg& v) : constant_(v.number), value_(v.value), is_value_(v.value != nullptr) {}
Arg::Arg(const IntArgs& v) : list_(v), is_list_(true) {}
Arg::Arg(std::initializer_list<IntArg> v) : list_(v), is_list_(true) {}
Arg::Arg(const std::vector<Value*>& v) : values_(v), is_values_(true) {}
Arg::Arg(const Arg& other) = default;
Arg::Arg(Arg&& other) noexcept = default;
Arg& Arg::operator=(const Arg& other) = default;
Arg& Arg::operator=(Arg&& other) noexcept = default;
Arg::~Arg() = default;

AttrValue AtenBuilder::attr_of(Node& node, const Arg& arg) {
  const auto operand = [&](Value* value) {
    const auto index = static_cast<uint32_t>(node.inputs().size());
    node.add_input(value);
    return AttrValue(Operand{index});
  };
  if (arg.is_value_) return operand(arg.value_);
  if (arg.is_values_) {
    AttrList list;
    for (Value* value : arg.values_) list.push_back(value ? operand(value) : AttrValue());
    return list;
  }
  if (arg.is_list_) {
    if (std::all_of(arg.list_.begin(), arg.list_.end(), [](const IntArg& i) { return i.value == nullptr; })) {
      std::vector<int64_t> numbers;
      for (const IntArg& i : arg.list_) numbers.push_back(i.number);
      return numbers;
    }
    AttrList list;
    for (const IntArg& i : arg.list_) list.push_back(i.value ? operand(i.value) : AttrValue(i.number));
    return list;
  }
  return arg.constant_;
}

void AtenBuilder::bind(Node& node, const ParsedSignature& signature, NamedArgs args) {
  std::vector<const Arg*> bound(signature.inputs.size(), nullptr);
  size_t position = 0;
  for (const NamedArg& arg : args) {
    int at = arg.name ? signature.find_input(arg.name) : static_cast<int>(position++);
    if (at < 0 || at >= static_cast<int>(bound.size()) || bound[static_cast<size_t>(at)] != nullptr) {
      throw Error(ErrorKind::Internal, fmt::format("{}::{} has no argument '{}'", signature.domain, signature.name,
                                                   arg.name ? arg.name : std::to_string(at)));
    }
    bound[static_cast<size_t>(at)] = &arg.value;
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    const Param& param = signature.inputs[i];
    if (bound[i] == nullptr) {
      if (!param.has_default)
        throw Error(ErrorKind::Internal,
                    fmt::format("{}::{} needs its argument '{}'", signature.domain, signature.name, param.name));
      continue;
    }
    AttrValue value = attr_of(node, *bound[i]);
    if (param.has_default && equals_default(value, param.default_value, param.is_list)) continue;
    node.attributes.push_back({param.name, std::move(value), AttrType::None, {}, {}});
  }
}

Node* AtenBuilder::call(std::string_view name, NamedArgs args) {
  const std::string full =
      name.find("::") == std::string_view::npos ? fmt::format("aten::{}", name) : std::string(name);
  const AtenOpEntry* entry = find_aten_op(full);
  if (entry == nullptr) throw Error(ErrorKind::Internal, fmt::format("the tables have no {}", full));
  const ParsedSignature& signature = entry->signature;
  Graph& graph = lowering_->aten();
  Node* node = graph.add_node(signature.domain, signature.name);
  node->overload = signature.overload;
  const Node* source = lowering_->current();
  if (source != nullptr) {
    node->name = source->name;
    budget().take(Resource::Text, static_cast<int64_t>(node->name.size()));
  }
  bind(*node, signature, args);
  const bool returns_list =
      signature.outputs.size() == 1 && signature.outputs[0].is_list && signature.outputs[0].type == "Tensor";
  if (!returns_list) {
    const std::string base = source != nullptr && source->output(0) ? source->output(0)->name : signature.name;
    for (const Param& output : signature.outputs) {
      const Type type = type_of_result(output);
      const bool is_tensor = type.is_tensor();
      const char* number = type.kind == Type::Kind::IntList ? "ints" : "n";
      graph.add_output_to(node, graph.unique_name(is_tensor ? base : number), type);
    }
  }
  return node;
}

Value* AtenBuilder::call_first(std::string_view name, NamedArgs args) { return call(name, args)->output(0); }

Values AtenBuilder::call_all(std::string_view name, NamedArgs args) { return Values(call(name, args)->outputs()); }

Values AtenBuilder::call_list(size_t count, std::string_view name, NamedArgs args) {
  Node* node = call(name, args);
  Graph& graph = lowering_->aten();
  for (size_t i = 0; i < count; ++i)
    graph.add_output_to(node, graph.unique_name(node->op.str()), Type::tensor(DType::Undefined));
  return Values(node->outputs());
}

void AtenBuilder::add_body(Node& owner, const char* attribute, const Graph& onnx, const Body& body) {
  lowering_->in_graph(owner, attribute, [&](Graph& graph) {
    if (body.counter != nullptr) {
      Value* counter = graph.add_input(graph.unique_name("i"), Type::number(Type::Kind::Int));
      lowering_->define_int(body.counter->known_ints->at(0), counter);
    }
    for (const Value* input : body.inputs) {
      Value* made = graph.add_input(graph.unique_name(input->name), input->type);
      made->type.dtype = widened(made->type.dtype);
      lowering_->define(input, made);
    }
    lowering_->lower_nodes(onnx);
    for (const Value* output : body.outputs) graph.add_output(lowering_->tensor_of(output));
  });
}

Values AtenBuilder::add_outputs(Node& node, const Node& onnx, const std::function<bool(size_t)>& wanted) {
  Graph& graph = lowering_->aten();
  Values result({});
  for (size_t i = 0; i < onnx.outputs().size(); ++i) {
    const Value* output = onnx.output(i);
    if (wanted && !wanted(i)) continue;
    Type type = output ? output->type : Type{};
    type.dtype = widened(type.dtype);
    result.push_back(graph.add_output_to(&node, graph.unique_name(output ? output->name : "unused"), std::move(type)));
  }
  return result;
}

Value* AtenBuilder::constant(TensorPtr tensor, std::string_view hint) {
  budget().take(Resource::Memory, static_cast<int64_t>(tensor->data.size()));
  return lowering_->add_constant(std::string(hint), std::move(tensor));
}

Value* AtenBuilder::ints(const IntArgs& values) { return lowering_->tensor_of_ints(values, false, DType::Int64); }

Value* AtenBuilder::reshaped(Value* constant, std::vector<int64_t> dims) {
  return lowering_->reshaped(constant, std::move(dims));
}

IntArg AtenBuilder::number_op(const char* op, const IntArg& a, const IntArg& b) { return (*this)(op, a, b); }

IntArg AtenBuilder::add(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return checked_add(a.number, b.number);
  if (b.is(0)) return a;
  if (a.is(0)) return b;
  if (!b.value && b.number < 0) return number_op("_operator::sub", a, checked_sub(0, b.number));
  return number_op("_operator::add", a, b);
}

IntArg AtenBuilder::sub(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return checked_sub(a.number, b.number);
  return b.is(0) ? a : number_op("_operator::sub", a, b);
}

IntArg AtenBuilder::mul(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return checked_mul(a.number, b.number);
  if (a.is(1)) return b;
  return b.is(1) ? a : number_op("_operator::mul", a, b);
}

IntArg AtenBuilder::floor_div(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return *tonnx::floor_div(Dim(a.number), Dim(b.number)).constant();
  return b.is(1) ? a : number_op("_operator::floordiv", a, b);
}

IntArg AtenBuilder::mod(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return *tonnx::mod(Dim(a.number), Dim(b.number)).constant();
  return b.is(1) ? IntArg(0) : number_op("_operator::mod", a, b);
}

IntArg AtenBuilder::max(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return std::max(a.number, b.number);
  return number_op("torch::sym_max", a, b);
}

IntArg AtenBuilder::min(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return std::min(a.number, b.number);
  return number_op("torch::sym_min", a, b);
}

IntArg AtenBuilder::size(Value* x, int64_t dim) { return lowering_->size_of(x, dim); }

Value* OnnxNode::find_input(std::string_view name) const {
  const Value* found = value(name);
  return found ? lowering_->tensor_of(found) : nullptr;
}

Value* OnnxNode::input(std::string_view name) const {
  Value* found = find_input(name);
  require(found != nullptr, "input '{}' is missing", name);
  return found;
}

std::vector<Value*> OnnxNode::inputs(std::string_view variadic) const {
  std::vector<Value*> result;
  for (const Value* each : values(variadic)) result.push_back(each ? lowering_->tensor_of(each) : nullptr);
  return result;
}

const Value* find_shape_of_any_rank(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  if (node == nullptr || !node->domain.empty() || node->op != "Shape" || !node->attributes.empty()) return nullptr;
  const Value* of = node->input(0);
  return of && of->type.is_tensor() && !of->type.shape ? of : nullptr;
}

Value* tensor_of(AtenBuilder& aten, const Value* onnx) { return aten.lowering().tensor_of(onnx); }

IntArg OnnxNode::int_arg(const Dim& dim) const { return lowering_->int_of(dim); }

IntArg OnnxNode::size(std::string_view input_name, int64_t dim) const {
  if (const Shape* shape = find_shape(input_name)) {
    require(dim >= 0 && dim < static_cast<int64_t>(shape->size()),
            "input '{}' has {} dimensions, and size {} is needed", input_name, shape->size(), dim);
    if (const auto number = shape->at(static_cast<size_t>(dim)).constant()) return *number;
  }
  return lowering_->size_of(input(input_name), dim);
}

IntArgs OnnxNode::int_args(std::string_view name, std::optional<size_t> count) const {
  if (const auto dims = find_dims(name)) {
    IntArgs result;
    for (const Dim& dim : *dims) result.push_back(lowering_->int_of(dim));
    return result;
  }
  if (!count) {
    if (const Shape* shape = find_shape(name); shape && shape->size() == 1 && shape->at(0).is_constant()) {
      count = static_cast<size_t>(*shape->at(0).constant());
    }
  }
  if (!count) fail_unsupported("input '{}' is not constant, and how many elements it has is not known", name);
  require(*count <= kMaxIntArgs, "input '{}' has {} elements, and is to be a list of sizes or axes", name, *count);
  AtenBuilder aten(*lowering_);
  Value* list = aten("tonnx::tolist", input(name));
  IntArgs result;
  for (size_t i = 0; i < *count; ++i) result.push_back(aten("tonnx::list_item", list, static_cast<int64_t>(i)));
  return result;
}

Arg OnnxNode::int_list(std::string_view name) const {
  if (find_dims(name)) return int_args(name);
  return AtenBuilder(*lowering_)("tonnx::tolist", input(name));
}

IntArg OnnxNode::int_arg(std::string_view name) const {
  if (const auto dims = find_dims(name)) {
    require(dims->size() == 1, "input '{}' has {} elements where one is needed", name, dims->size());
    return lowering_->int_of((*dims)[0]);
  }
  return AtenBuilder(*lowering_)("tonnx::item", input(name));
}

std::optional<double> OnnxNode::find_scalar(std::string_view name) const {
  const TensorPtr constant = find_constant(name);
  if (!constant || constant->count() != 1) return std::nullopt;
  const auto values = floats_of(*constant);
  if (!values) return std::nullopt;
  note_number(node_->name, (*values)[0], constant);
  return (*values)[0];
}

void OnnxNode::require_all_used() const {
  const ParsedSignature& sig = entry_->signature;
  for (const Attribute& attribute : node_->attributes) {
    const int at = sig.find_attribute(attribute.name);
    if (at < 0 || (used_attributes_ >> (at & 63) & 1) != 0) continue;
    const Param& param = sig.attributes[static_cast<size_t>(at)];
    if (param.has_default && equals_default(attribute.value, param.default_value, true)) continue;
    fail_unsupported("attribute '{}' is not supported", attribute.name);
  }
  for (size_t i = 0; i < node_->inputs().size() && i < 64; ++i) {
    if (node_->inputs()[i] != nullptr && (used_inputs_ >> i & 1) == 0) {
      fail_unsupported("input '{}' is not supported", i < sig.inputs.size() ? sig.inputs[i].name : std::to_string(i));
    }
  }
}

}  // namespace tonnx
