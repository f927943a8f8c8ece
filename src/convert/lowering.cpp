// lowering.cpp - walks an ONNX graph and calls each operator's own lowering.
#include "convert/lowering.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/checked_int.h"
#include "base/computed.h"
#include "base/error.h"
#include "convert/evaluate.h"
#include "convert/support.h"
#include "ir/origins.h"
#include "ops/frame/trained_scalar.h"

namespace tonnx {
namespace {

template <class Bits>
bool holds(const Tensor& tensor, Bits wanted) {
  for (size_t at = 0; at + sizeof(Bits) <= tensor.data.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, tensor.data.data() + at, sizeof(Bits));
    if (bits == wanted) return true;
  }
  return false;
}

/// Minus infinity is what hides an element from a softmax. No training gives it, and training does not leave it. Every
/// weight is asked, so that its bits are looked at where they lie.
bool is_mask(const Tensor& tensor) {
  constexpr int64_t kLargest = int64_t{1} << 16;  // a larger one is not read
  if (tensor.count() > kLargest || is_computed(tensor.data)) return false;
  switch (tensor.dtype) {
    case DType::Float64: return holds(tensor, uint64_t{0xfff0000000000000});
    case DType::Float32: return holds(tensor, uint32_t{0xff800000});
    case DType::Float16: return holds(tensor, uint16_t{0xfc00});
    case DType::BFloat16: return holds(tensor, uint16_t{0xff80});
    default: return false;
  }
}

/// Whether they are the same elements in the same order, maybe in other sizes.
bool is_same_data(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.data.data() == b.data.data() && a.count() == b.count();
}

}  // namespace

void ModelLowering::define(const Value* onnx, Value* aten) {
  values_.set(onnx, aten);
  if (aten->type.kind == Type::Kind::Unknown || (aten->type.is_tensor() && aten->type.dtype == DType::Undefined)) {
    aten->type = onnx->type;
  }
  if (!onnx->type.is_tensor() || !onnx->type.shape || aten->constant) return;
  for (size_t i = 0; i < onnx->type.shape->size(); ++i) {
    const Dim& dim = (*onnx->type.shape)[i];
    if (!dim.is_constant()) where_.set(dim.text(), {aten, static_cast<int64_t>(i)});
  }
}

Value* ModelLowering::constant_of(const Value* value) {
  TensorPtr tensor = value->constant;
  if (!tensor) tensor = densified(*value->sparse);
  if (tensor->dtype == DType::String) fail_unsupported("PyTorch has no tensors of strings");
  const Value* origin = origin_of_weight(value);
  const TensorPtr wide = widened(tensor);
  note_cast(wide, tensor);
  Value* made = add_constant(origin->name, wide);
  if (origin->constant && is_same_data(*origin->constant, *tensor) && origin->constant->dims != tensor->dims)
    made->file_dims = origin->constant->dims;
  const bool is_trained = value->producer == nullptr || value->trainable;
  made->trainable = is_trained && is_float(tensor->dtype) && !is_result_name(origin->name) &&
                    (!tensor->dims.empty() || is_trained_scalar(*origin)) && !is_mask(*tensor);
  return made;
}

Value* ModelLowering::reshaped(Value* constant, std::vector<int64_t> dims) {
  if (constant->constant->dims == dims) return constant;
  auto [at, fresh] = reshaped_.try_emplace({constant, dims}, nullptr);
  if (fresh) {
    auto tensor = std::make_shared<Tensor>(*constant->constant);
    tensor->dims = std::move(dims);
    at->second = add_constant(constant->name, std::move(tensor));
    at->second->trainable = constant->trainable;
    at->second->file_dims = constant->file_dims.empty() ? constant->constant->dims : constant->file_dims;
    std::swap(at->second->name, constant->name);  // mostly nobody wants the old form
  }
  return at->second;
}

Value* ModelLowering::tensor_of(const Value* value) {
  if (Value* const* at = values_.find(value)) return *at;
  if (value->constant || value->sparse) {
    Value*& made = constants_[value];
    if (made == nullptr) made = constant_of(value);
    return made;
  }
  ensure(value->known_ints.has_value(), "a value is used that was never lowered");
  IntArgs ints;
  for (const Dim& dim : *value->known_ints) ints.push_back(int_of(dim));
  Value* made = tensor_of_ints(ints, value->type.rank() == 0, value->type.dtype);
  if (made->constant) {
    constants_[value] = made;
  } else {
    if (made->type.dtype == DType::Undefined) made->type = value->type;
    values_.set(value, made);
  }
  return made;
}

Value* ModelLowering::tensor_of_ints(const IntArgs& ints, bool is_scalar, DType dtype) {
  const bool all_numbers = std::all_of(ints.begin(), ints.end(), [](const IntArg& i) { return i.value == nullptr; });
  if (all_numbers) {
    std::vector<double> numbers;
    std::vector<int64_t> exact;
    for (const IntArg& i : ints) {
      numbers.push_back(static_cast<double>(i.number));
      exact.push_back(i.number);
    }
    if (dtype == DType::Int64) {
      auto tensor = std::make_shared<Tensor>(*make_ints(std::move(exact)));
      if (is_scalar) tensor->dims.clear();
      return add_constant("shape", tensor);
    }
    std::vector<int64_t> dims;
    if (!is_scalar) dims.push_back(static_cast<int64_t>(ints.size()));
    return add_constant("shape", make_floats(dtype, dims, numbers));
  }
  AtenBuilder aten(*this);
  if (is_scalar) return aten("tonnx::int_scalar", ints.at(0), Kw{"dtype", dtype});
  return aten("tonnx::int_tensor", ints, Kw{"dtype", dtype});
}

IntArg ModelLowering::size_of(Value* aten, int64_t dim) {
  if (aten->type.shape) {
    if (const auto number = aten->type.shape->at(static_cast<size_t>(dim)).constant()) return *number;
  }
  if (Value* const* known = size_values_.find({aten, dim})) return *known;
  const Node* producer = aten->producer;
  const bool is_shape =
      producer && producer->domain == "tonnx" && producer->op == "shape" && producer->attributes.size() == 1;
  Value* made =
      is_shape ? AtenBuilder(*this)("dim", producer->input(0)) : AtenBuilder(*this)("sym_size.int", aten, dim);
  size_values_.set({aten, dim}, made);
  return made;
}

IntArg ModelLowering::int_of(const Dim& dim) {
  if (const auto number = dim.constant()) return *number;
  const std::string text = dim.text();
  if (Value* const* known = sizes_.find(text)) return *known;
  const auto remember = [&](const IntArg& arg) {
    if (arg.value != nullptr && sizes_.find(text) == nullptr) {
      sizes_.set(text, arg.value);
      if (const auto symbol = dim.symbol_name()) arg.value->name = aten_->unique_name(*symbol);
    }
    return arg;
  };
  if (current_ != nullptr) {
    for (const Value* input : current_->inputs()) {
      Value* const* made = input && input->type.is_tensor() && input->type.shape ? values_.find(input) : nullptr;
      if (made == nullptr) continue;
      const auto at = std::find(input->type.shape->begin(), input->type.shape->end(), dim);
      if (at != input->type.shape->end()) return remember(size_of(*made, at - input->type.shape->begin()));
    }
  }
  if (const auto* at = where_.find(text)) return remember(size_of(at->first, at->second));
  AtenBuilder aten(*this);
  IntArg sum = dim.constant_term();
  bool first = true;
  for (const auto& [product, coefficient] : dim.terms()) {
    IntArg term = int_of_atom(*product[0]);
    for (size_t i = 1; i < product.size(); ++i) term = aten.mul(term, int_of_atom(*product[i]));
    if (coefficient != 1 && coefficient != -1)
      term = aten.mul(term, coefficient < 0 ? checked_sub(0, coefficient) : coefficient);
    if (coefficient > 0) {
      sum = first && sum.is(0) ? term : first ? term : aten.add(sum, term);
      if (first && dim.constant_term() != 0) sum = aten.add(sum, dim.constant_term());
    } else {
      sum = aten.sub(sum, term);
    }
    first = false;
  }
  return remember(sum);
}

IntArg ModelLowering::int_of_atom(const Dim::Atom& atom) {
  AtenBuilder aten(*this);
  switch (atom.kind) {
    case '/': return aten.floor_div(int_of(atom.a), int_of(atom.b));
    case '>': return aten.max(int_of(atom.a), int_of(atom.b));
    case '<': return aten.min(int_of(atom.a), int_of(atom.b));
    case '%': return aten.mod(int_of(atom.a), int_of(atom.b));
    default: break;
  }
  if (where_.find(atom.text) == nullptr && sizes_.find(atom.text) == nullptr) {
    fail_unsupported("no tensor at hand has the size '{}'", atom.text);
  }
  return int_of(Dim::symbol(atom.text));
}

bool is_external(const Node& node, const LoweringOptions& options) {
  const int schema = node.domain.empty() ? schema_version(node.op.view(), node.version) : 0;
  const int64_t version = schema > 0 ? schema : node.version;
  if (options.custom && options.custom->find_onnx(node) != nullptr) return true;
  return std::any_of(options.external.begin(), options.external.end(), [&](const ExternalNode& e) {
    return e.op == node.op.view() && e.domain == node.domain.view() && e.version == version;
  });
}

namespace {

void find_external(const Graph& graph, const LoweringOptions& options, std::vector<const Node*>& result) {
  for (const Node& node : graph) {
    if (is_external(node, options)) {
      result.push_back(&node);
    } else {
      for (const GraphPtr& subgraph : subgraphs_of(node)) find_external(*subgraph, options, result);
    }
  }
}

}  // namespace

/// An integer that has a symbol of its own, as the length of a sequence: only its node can make it.
bool ModelLowering::is_new_symbol(const Value& value) const {
  if (value.known_ints->size() != 1) return false;
  const auto symbol = value.known_ints->front().symbol_name();
  return symbol && where_.find(*symbol) == nullptr && sizes_.find(*symbol) == nullptr;
}

void ModelLowering::lower_node(const Node& node) {
  // what follows from shapes, and constants, are made where they are needed, in the form that is needed
  if (std::all_of(node.outputs().begin(), node.outputs().end(), [this](const Value* output) {
        return output == nullptr || output->constant || (output->known_ints && !is_new_symbol(*output));
      })) {
    return hand_on_weights(node);
  }
  const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
  if (entry->op->lower == nullptr) fail_unsupported("this form of the operator cannot be converted");
  OnnxNode view(node, *entry, *this);
  AtenBuilder aten(*this);
  const Values outputs = entry->op->lower(view, aten);
  view.require_all_used();
  define_outputs(node, outputs);
}

/// By a function of the user's own, which may leave arguments alone.
void ModelLowering::lower_custom(const Node& node, const CustomOnnxOp& op) {
  check_against_signature(node, op.entry);
  OnnxNode view(node, op.entry, *this);
  AtenBuilder aten(*this);
  define_outputs(node, op.lower(view, aten));
}

void ModelLowering::define_outputs(const Node& node, const Values& outputs) {
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    if (node.output(i) == nullptr) continue;
    if (i < outputs.size() && outputs[i] != nullptr) {
      if (outputs[i]->type.kind == Type::Kind::Int) {
        define_int(node.output(i)->known_ints.value().at(0), outputs[i]);
      } else {
        define(node.output(i), outputs[i]);
      }
    } else if (!node.output(i)->uses.empty() && !node.output(i)->known_ints) {
      fail_unsupported("output {} cannot be given", i);
    }
  }
}

/// A weight that a node hands on, maybe in another shape, stays one weight, and keeps its name.
void ModelLowering::hand_on_weights(const Node& node) {
  const Value* output = node.output(0);
  if (output == nullptr || !output->constant || !is_float(output->constant->dtype)) return;
  for (const Value* input : node.inputs()) {
    if (input == nullptr || !input->constant) continue;
    const Tensor &from = *input->constant, &to = *output->constant;
    if (&from == &to) return define(output, tensor_of(input));
    if (is_same_data(from, to)) {
      return define(output, reshaped(tensor_of(input), to.dims));
    }
  }
}

void ModelLowering::lower_external(const Node& node) {
  const size_t index = external_count_++;
  const auto find = [&](const std::vector<Value*>& values, const std::string& name) {
    const auto at =
        std::find_if(values.begin(), values.end(), [&](const Value* value) { return value && value->name == name; });
    require(at != values.end(), "the converter maps '{}', which is not a value of the node", name);
    return *at;
  };
  ExternalMapping mapping;
  if (index < options_->mappings.size()) {
    mapping = options_->mappings[index];
  } else {
    for (const Value* value : node.inputs()) mapping.inputs.push_back(value ? value->name : "");
    for (const Value* value : node.outputs()) mapping.outputs.push_back(value ? value->name : "");
  }
  Node* call = aten_->add_node("tonnx", "call_module");
  call->name = node.name;
  AttrList arguments;
  for (const std::string& name : mapping.inputs) {
    if (name.empty()) {
      arguments.emplace_back();
      continue;
    }
    arguments.emplace_back(Operand{static_cast<uint32_t>(call->inputs().size())});
    call->add_input(tensor_of(find(node.inputs(), name)));
  }
  call->attributes.push_back({"index", static_cast<int64_t>(index), AttrType::None, {}, {}});
  call->attributes.push_back({"arguments", std::move(arguments), AttrType::None, {}, {}});
  for (const std::string& name : mapping.outputs) {
    const Value* output = name.empty() ? nullptr : find(node.outputs(), name);
    Value* made = aten_->add_output_to(call, aten_->unique_name(output ? output->name : "unused"),
                                       output ? output->type : Type{});
    if (output != nullptr) define(output, made);
  }
}

void ModelLowering::lower_nodes(const Graph& source) {
  const Node* around = current_;
  for (const Node& node : source) {
    in_context([&] { return fmt::format("lowering node '{}' ({})", node.name, label_of(node)); },
               [&] {
                 current_ = &node;
                 const CustomOnnxOp* custom = options_->custom ? options_->custom->find_onnx(node) : nullptr;
                 if (custom != nullptr) {
                   lower_custom(node, *custom);
                 } else if (is_external(node, *options_)) {
                   lower_external(node);
                 } else {
                   lower_node(node);
                 }
               });
  }
  current_ = around;
}

void ModelLowering::in_graph(Node& owner, std::string_view attribute, const std::function<void(Graph&)>& fill) {
  auto graph = std::make_shared<Graph>();
  owner.set_attribute(attribute, graph);
  Graph* around = aten_;
  aten_ = graph.get();
  values_.enter();
  where_.enter();
  sizes_.enter();
  size_values_.enter();
  fill(*graph);
  values_.leave();
  where_.leave();
  sizes_.leave();
  size_values_.leave();
  aten_ = around;
}

std::vector<const Node*> external_nodes(const Model& model, const LoweringOptions& options) {
  std::vector<const Node*> result;
  find_external(*model.graph, options, result);
  return result;
}

GraphPtr lower(const Model& model, const LoweringOptions& options) {
  const Graph& source = *model.graph;
  require_supported(source, options);
  auto result = std::make_shared<Graph>();
  result->name = source.name;
  result->metadata = source.metadata;
  ModelLowering lowering(*result, options);
  std::vector<std::pair<const Value*, Value*>> inputs;
  for (const Value* input : source.inputs()) {
    if (input->constant || input->sparse) continue;  // a weight that may be overridden: nobody does
    Value* made = result->add_input(input->name, input->type);
    made->type.dtype = widened(made->type.dtype);
    inputs.emplace_back(input, made);
  }
  // sizes that files call by one name and that differ nevertheless are those of the first input that has them
  for (auto at = inputs.rbegin(); at != inputs.rend(); ++at) lowering.define(at->first, at->second);
  lowering.lower_nodes(source);
  for (const Value* output : source.outputs()) result->add_output(lowering.tensor_of(output));
  return result;
}

}  // namespace tonnx
