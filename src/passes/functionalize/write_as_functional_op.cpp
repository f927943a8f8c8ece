// write_as_functional_op.cpp - what each kind of writing operator leaves in memory.
#include "passes/functionalize/write_as_functional_op.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ops/frame/aten_names.h"
#include "ops/frame/op_def.h"
#include "ops/frame/result_dtype.h"
#include "passes/frame/aten_match.h"

namespace tonnx {
namespace {

bool is_constant(const Type& type) {
  return type.shape &&
         std::all_of(type.shape->begin(), type.shape->end(), [](const Dim& d) { return d.is_constant(); });
}

/// Whether the out= variant of the node computes in the type of the result.
bool computes_in_out_type(const Node& node) {
  const AtenOpEntry* entry = find_aten_op(node);
  return entry != nullptr && entry->op->out_dtype;
}

/// These change a tensor itself, not its elements, and have no functional form that could have a row.
void require_supported(const Node& node) {
  static const std::unordered_set<std::string_view> names = {"resize_", "resize_as_",     "set_",           "set_data",
                                                             "rename_", "sparse_resize_", "_resize_output_"};
  if (names.contains(node.op.view()) || node.op.view().starts_with("_foreach_"))
    fail_unsupported("{} is not supported", node.op.view());
}

/// A copy of the node in front of it, without some arguments, that reads what is in memory now.
Node* copy_without(Graph& graph, TensorMemory& memory, Node& node, const std::vector<std::string_view>& names) {
  std::vector<Value*> inputs;
  std::unordered_map<uint32_t, uint32_t> places;
  const auto renumber = [&](AttrValue& value, auto& self) -> void {
    if (auto* at = value.get<Operand>()) {
      const auto [place, is_new] = places.try_emplace(at->index, static_cast<uint32_t>(inputs.size()));
      if (is_new) {
        Value* input = node.input(at->index);
        Place* known = input ? memory.find(input) : nullptr;
        inputs.push_back(known ? memory.read(*known, &node) : input);
      }
      at->index = place->second;
    } else if (auto* list = value.get<AttrList>()) {
      for (AttrValue& item : *list) self(item, self);
    }
  };
  std::vector<Attribute> attributes;
  for (const Attribute& attribute : node.attributes) {
    if (std::find(names.begin(), names.end(), attribute.name) != names.end()) continue;
    renumber(attributes.emplace_back(attribute).value, renumber);
  }
  Node* made = graph.add_node(node.domain, node.op, &node);
  made->overload = node.overload;
  made->name = node.name;
  made->metadata = node.metadata;
  made->doc = node.doc;
  made->attributes = std::move(attributes);
  for (Value* input : inputs) made->add_input(input);
  return made;
}

}  // namespace

bool gives_new_tensor(const Node& node) {
  // what FunctionalWrite::fill writes; none has a functional form that could have a row
  static const std::unordered_set<std::string_view> names = {"copy_", "fill_", "zero_", "fill_diagonal_"};
  return !names.contains(node.op.view()) && out_arguments(node).empty();
}

FunctionalWrite::FunctionalWrite(Graph& graph, TensorMemory& memory, Node& node)
    : graph_(graph), memory_(memory), node_(node) {
  require_supported(node_);
  const std::vector<std::string_view> names = out_arguments(node_);
  if (names.empty()) {
    in_place();
  } else {
    to_arguments(names);
  }
}

void FunctionalWrite::finish(Place& place, Value* content) {
  memory_.write(place, content, &node_);
  for (const Value* output : node_.outputs()) {
    if (output != nullptr) memory_.set(output, place);
  }
}

Value* FunctionalWrite::converted(Value* value, DType dtype) {
  if (value->type.dtype == dtype || value->type.dtype == DType::Undefined || dtype == DType::Undefined) return value;
  AtenCall call("to", "dtype", &node_);
  call.with("self", value).with("dtype", AttrValue(dtype));
  return memory_.writer().add(call, Type::tensor(dtype, value->type.shape), "to");
}

Value* FunctionalWrite::stored(Node& made, size_t index, const Type& type, DType given) {
  Value* result = made.output(index);
  result->type = type;
  if (given == type.dtype || given == DType::Undefined) return result;
  Value* raw = graph_.new_value(graph_.unique_name(made.op.view()), Type::tensor(given, type.shape));
  Node* conversion = graph_.add_node("aten", "to", made.next);
  conversion->overload = "dtype";
  conversion->name = made.name;
  conversion->metadata = made.metadata;
  graph_.move_output(result, conversion, 0);
  graph_.move_output(raw, &made, index);
  conversion->set_attribute("self", Operand{0});
  conversion->set_attribute("dtype", type.dtype);
  conversion->add_input(raw);
  return result;
}

void FunctionalWrite::in_place() {
  Value* self = operand(node_, "self");
  require(self != nullptr && self->type.is_tensor(), "the node writes to no tensor");
  Place& place = memory_.get(self);
  if (fill(place)) return;
  memory_.read(place, &node_);
  use_functional_name(node_);
  if (node_.output(0) == nullptr) {
    require(node_.outputs().empty(), "the node gives nothing");
    graph_.add_output_to(&node_, graph_.unique_name(node_.op.view()), place.type);
  }
  Value* result = stored(node_, 0, place.type, result_dtype(node_, place.type.dtype));
  memory_.set(result, place);
  finish(place, result);
}

bool FunctionalWrite::fill(Place& place) {
  const std::string_view op = node_.op.view();
  if (op == "copy_") {
    copy(place, "src");
  } else if (op == "fill_" && operand(node_, "value") && operand(node_, "value")->type.is_tensor()) {
    copy(place, "value");
  } else if (op == "fill_" || op == "zero_") {
    const Attribute* value = node_.find_attribute("value");
    require(value != nullptr || op == "zero_", "the node has no value to fill with");
    Value* like = is_constant(place.type) ? nullptr : memory_.any(place, &node_);
    memory_.writer().write_before(&node_);
    finish(place, filled(like, place.type, value ? value->value : AttrValue(int64_t{0}), operand(node_, "value")));
  } else if (op == "fill_diagonal_") {
    fill_diagonal(place);
  } else {
    return false;
  }
  return true;
}

Value* FunctionalWrite::filled(Value* like, const Type& type, const AttrValue& value, Value* number) {
  AtenWriter& writer = memory_.writer();
  AtenCall call(like ? "full_like" : "full", "", &node_);
  if (like != nullptr) {
    call.with("self", like);
  } else {
    call.with("size", writer.sizes(nullptr, type, &node_));
  }
  number ? call.with("fill_value", number) : call.with("fill_value", value);
  if (like == nullptr) call.with("dtype", AttrValue(type.dtype));
  return writer.add(call, type, "full");
}

void FunctionalWrite::copy(Place& place, std::string_view source) {
  Value* given = operand(node_, source);
  require(given != nullptr && given->type.is_tensor(), "the node copies no tensor");
  Place* from = memory_.find(given);
  if (from == &place) {  // x[1:] += 1 ends in a copy of x[1:] to itself
    for (const Value* output : node_.outputs()) {
      if (output != nullptr) memory_.set(output, place);
    }
    return;
  }
  const Type type = from ? from->type : given->type;
  Value* content = from ? memory_.read(*from, &node_) : given;
  require(type.shape && place.type.shape && type.shape->size() <= place.type.shape->size(),
          "a tensor is copied to one of another shape");
  const Shape& shape = *place.type.shape;
  Value* like = nullptr;
  if (*type.shape != shape && !is_constant(place.type)) like = memory_.any(place, &node_);
  AtenWriter& writer = memory_.writer();
  writer.write_before(&node_);
  content = converted(content, place.type.dtype);
  if (*type.shape != shape) {
    const size_t added = shape.size() - type.shape->size();
    IntArgs sizes;
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool stays = i >= added && (*type.shape)[i - added] == shape[i];
      sizes.push_back(stays && !shape[i].is_constant() ? IntArg(-1) : writer.size(like, place.type, i, &node_));
    }
    AtenCall call("expand", "", &node_);
    call.with("self", content).with("size", sizes);
    content = writer.add(call, place.type, "expand");
  }
  finish(place, content);
}

void FunctionalWrite::fill_diagonal(Place& place) {
  const Attribute* value = node_.find_attribute("fill_value");
  const Attribute* wrap = node_.find_attribute("wrap");
  require(value != nullptr && place.type.shape, "the node has no value to fill with");
  const Shape& shape = *place.type.shape;
  const bool wraps = wrap != nullptr && wrap->value.get<bool>() && *wrap->value.get<bool>();
  if (shape.size() != 2 || wraps) fail_unsupported("fill_diagonal_ of other than a matrix, or with wrap");
  Value* content = memory_.read(place, &node_);
  AtenWriter& writer = memory_.writer();
  writer.write_before(&node_);
  const Type type = Type::tensor(place.type.dtype, Shape{min(shape[0], shape[1])});
  Value* diagonal = nullptr;
  if (!is_constant(type)) {
    AtenCall call("diagonal", "", &node_);
    call.with("self", content);
    diagonal = writer.add(call, type, "diagonal");
  }
  AtenCall call("diagonal_scatter", "", &node_);
  Value* number = operand(node_, "fill_value");
  call.with("self", content).with("src", filled(diagonal, type, value->value, number));
  finish(place, writer.add(call, place.type, "diagonal_scatter"));
}

void FunctionalWrite::to_arguments(const std::vector<std::string_view>& names) {
  std::vector<Place*> places;
  for (const std::string_view name : names) {
    Value* out = operand(node_, name);
    require(out != nullptr && out->type.is_tensor(), "the node writes to no tensor '{}'", name);
    places.push_back(&memory_.get(out));
  }
  use_functional_name(node_);
  Node* made = copy_without(graph_, memory_, node_, names);
  if (computes_in_out_type(*made) && made->find_attribute("dtype") == nullptr) {
    const Value* self = operand(*made, "self");
    if (self == nullptr || self->type.dtype != places[0]->type.dtype)
      made->set_attribute("dtype", places[0]->type.dtype);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    Place& place = *places[i];
    Value* result = i < node_.outputs().size() ? node_.output(i) : nullptr;
    Type type = result ? result->type : place.type;
    type.dtype = place.type.dtype;
    if (result != nullptr) {
      graph_.move_output(result, made, i);
    } else {
      result = graph_.add_output_to(made, graph_.unique_name(made->op.view()), type);
    }
    const DType given = places.size() == 1 ? result_dtype(*made, type.dtype) : type.dtype;
    const bool fits = type.shape && place.type.shape && type.shape->size() == place.type.shape->size();
    if (place.parent == nullptr) {
      if (!(place.type == type)) place.has_strides = false;  // PyTorch resizes what does not fit
      place.type = type;
    } else if (!fits) {
      fail_unsupported("an out= argument that is a view has another shape than the result");
    }
    memory_.write(place, stored(*made, i, type, given), &node_);
    memory_.set(result, place);
  }
}

}  // namespace tonnx
