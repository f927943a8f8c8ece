// calls.cpp - finds the row that a call means, and appends its node.
#include "formats/torchscript/run/calls.h"

#include <algorithm>
#include <unordered_map>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/run/item_facts.h"
#include "ops/frame/aten_names.h"

namespace tonnx::torchscript {
namespace {

using IKind = Item::Kind;
using Rows = std::vector<const AtenOpEntry*>;

/// All overloads of an operator, by its name without them.
const std::unordered_map<std::string, Rows>& rows_by_name() {
  static const std::unordered_map<std::string, Rows> all = [] {
    std::unordered_map<std::string, Rows> result;
    for (const OpFamily* family : op_families()) {
      for (const AtenOp& op : family->aten) {
        const AtenOpEntry* entry = find_aten_op(op.sig.name());
        if (entry == nullptr || entry->op != &op) continue;
        result[entry->signature.domain + "::" + entry->signature.name].push_back(entry);
      }
    }
    return result;
  }();
  return all;
}

const Rows* find_rows(std::string_view library, std::string_view op) {
  const auto at = rows_by_name().find(std::string(library) + "::" + std::string(op));
  return at == rows_by_name().end() ? nullptr : &at->second;
}

/// The operator by the name that the tables have: without the mark of one that writes, and not by another name.
std::string canonical_name(std::string_view op) {
  std::string name(op);
  Node probe;
  probe.domain = "aten";
  probe.op = name;
  if (writes_self(probe)) use_functional_name(probe);
  for (const char* const overload : {"", "Tensor"}) {
    if (find_rows("aten", probe.op.view()) != nullptr) break;
    probe.overload = overload;
    use_canonical_name(probe);
  }
  return std::string(probe.op.view());
}

std::string memory_format(int64_t number) {
  switch (number) {
    case 0: return "contiguous_format";
    case 1: return "preserve_format";
    case 2: return "channels_last";
    case 3: return "channels_last_3d";
    default: fail_invalid("the memory format {} is not known", number);
  }
}

Type::Kind number_kind(IKind kind) {
  return kind == IKind::Int ? Type::Kind::Int : kind == IKind::Float ? Type::Kind::Float : Type::Kind::Bool;
}

}  // namespace

const char* name_of(Item::Kind kind) {
  switch (kind) {
    case IKind::None: return "None";
    case IKind::Tensor: return "a tensor";
    case IKind::Int: return "an int";
    case IKind::Float: return "a float";
    case IKind::Bool: return "a bool";
    case IKind::Text: return "a str";
    case IKind::Device: return "a device";
    case IKind::List: return "a list";
    case IKind::Tuple: return "a tuple";
    case IKind::Dict: return "a dict";
    case IKind::Object: return "an object";
    case IKind::Callable: return "a function";
    case IKind::Unset: return "a variable without a value";
    case IKind::Refused: return "something that cannot be read";
  }
  return "";
}

Node& ScriptCalls::add_node(Symbol domain, Symbol op) {
  budget().take(Resource::Nodes, 1);
  Node& node = *place.graph->add_node(domain, op);
  if (!place.stack.empty()) node.metadata.emplace_back("nn_module_stack", place.stack);
  if (!place.trace.empty()) node.metadata.emplace_back("stack_trace", place.trace);
  node.name = place.path;
  return node;
}

Value* ScriptCalls::constant(TensorPtr tensor, std::string_view name) {
  return main_.add_initializer(std::string(name), std::move(tensor));
}

Dim ScriptCalls::dim_of(const Item& number) {
  if (number.is_constant()) return number.integer;
  return number.value->known_ints && number.value->known_ints->size() == 1 ? number.value->known_ints->front()
                                                                           : Dim::symbol("");
}

bool ScriptCalls::fits(const Param& param, const Item& item, bool loosely) {
  if (item.is(IKind::None)) return param.optional || param.type == "Generator" || param.has_gaps;
  const auto is_one = [&](const Item& each) {
    const std::string& type = param.type;
    if (type == "Tensor") return each.is(IKind::Tensor) || (param.has_gaps && each.is(IKind::None));
    const bool is_scalar = loosely && each.is(IKind::Tensor) && (each.number || each.value->type.rank() == 0);
    if (type == "Scalar" || type == "number") return each.is_number() || is_scalar;
    if (type == "int" || type == "SymInt") return each.is(IKind::Int) || is_scalar;
    if (type == "float") return each.is(IKind::Float) || each.is(IKind::Int);
    if (type == "bool") return each.is(IKind::Bool);
    if (type == "str") return each.is(IKind::Text);
    if (type == "ScalarType" || type == "Layout" || type == "MemoryFormat") return each.is(IKind::Int);
    if (type == "Device") return each.is(IKind::Device) || each.is(IKind::Text);
    return false;
  };
  if (!param.is_list) return is_one(item);
  if (item.is(IKind::List) && item.items == nullptr) return false;
  if (item.is(IKind::List) || item.is(IKind::Tuple)) return std::all_of(item.items->begin(), item.items->end(), is_one);
  return param.takes_one && is_one(item);
}

bool ScriptCalls::bind(const AtenOpEntry& entry, const Arguments& arguments, bool loosely,
                       std::vector<const Item*>& bound) {
  const std::vector<Param>& params = entry.signature.inputs;
  bound.assign(params.size(), nullptr);
  if (arguments.positional.size() > params.size()) return false;
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    if (params[i].keyword_only) return false;
    bound[i] = &arguments.positional[i];
  }
  for (const auto& [name, item] : arguments.keywords) {
    const int at = entry.signature.find_input(name);
    if (at < 0 || bound[static_cast<size_t>(at)] != nullptr) return false;
    bound[static_cast<size_t>(at)] = &item;
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (bound[i] == nullptr ? !params[i].has_default : !fits(params[i], *bound[i], loosely)) return false;
  }
  return true;
}

AttrValue ScriptCalls::element(Operands& operands, const std::string& type, const Item& item) {
  if (item.is(IKind::None)) return {};
  if (type == "ScalarType") return dtype_of(item.integer);
  if (type == "MemoryFormat") return memory_format(item.integer);
  if (type == "Layout") return std::string("strided");
  if (type == "Device") return std::string("cpu");
  if (item.is(IKind::Text) || item.is(IKind::Device)) return item.text;
  if (item.is(IKind::Tensor) && type != "Tensor") {
    const DType dtype = item.value ? item.value->type.dtype : DType::Int64;
    const Item number = number_of(item, is_float(dtype)        ? IKind::Float
                                        : dtype == DType::Bool ? IKind::Bool
                                                               : IKind::Int);
    return element(operands, type, number);
  }
  Value* value = item.is(IKind::Tensor)                    ? tensor(item)
                 : item.is_number() && !item.is_constant() ? plain(item).value
                                                           : item.value;
  if (value != nullptr) {
    if (item.is(IKind::Int) && dim_of(Item::of_value(IKind::Int, value)).is_constant())
      return *dim_of(Item::of_value(IKind::Int, value)).constant();
    operands.push_back(value);
    return Operand{static_cast<uint32_t>(operands.size() - 1)};
  }
  if (item.is(IKind::Bool)) return item.integer != 0;
  if (item.is(IKind::Float)) return item.real;
  if (type == "float") return static_cast<double>(item.integer);
  return item.integer;
}

AttrValue ScriptCalls::argument(Operands& operands, const Param& param, const Item& item) {
  if (!param.is_list || item.is(IKind::None)) return element(operands, param.type, item);
  const Item::Items one{item};
  const Item::Items& items = item.items ? *item.items : one;
  require_known_count(item);
  AttrList list;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  for (const Item& each : items) {
    list.push_back(element(operands, param.type, each));
    if (const auto* number = list.back().get<int64_t>()) ints.push_back(*number);
    if (const auto* number = list.back().get<double>()) floats.push_back(*number);
  }
  const bool is_ints = param.type == "int" || param.type == "SymInt";
  if (is_ints && ints.size() == list.size()) return ints;
  if (param.type == "float" && floats.size() == list.size()) return floats;
  return list;
}

/// How many tensors a list of results has.
size_t ScriptCalls::list_count(const AtenOpEntry& entry, const std::vector<const Item*>& bound) {
  const auto given = [&](std::string_view name) -> const Item* {
    const int at = entry.signature.find_input(name);
    return at < 0 ? nullptr : bound[static_cast<size_t>(at)];
  };
  const std::string& op = entry.signature.name;
  if (const Item* tensors = given("tensors")) return tensors->items ? tensors->items->size() : 0;
  if (const Item* sizes = given("split_sizes")) return sizes->items->size();
  const Item* self = given("self");
  require(self != nullptr && self->value != nullptr && self->value->type.shape,
          "the shape of what is split is not known");
  const auto rank = static_cast<int64_t>(self->value->type.shape->size());
  const Item* dim = given("dim");
  int64_t at = dim && dim->is(IKind::Int) ? dim->integer : 0;
  if (at < 0) at += rank;
  require(at >= 0 && at < rank, "dimension {} is out of range for rank {}", at, rank);
  const Dim size = (*self->value->type.shape)[static_cast<size_t>(at)];
  if (const Item* indices = given("indices"); indices && indices->items) return indices->items->size() + 1;
  const auto count = size.constant();
  const Item* part = given("split_size");
  if (part == nullptr) part = given("chunks");
  if (part == nullptr) part = given("sections");
  if (op == "tensor_split" && part) return static_cast<size_t>(std::max<int64_t>(part->integer, 0));
  if (op == "chunk" && !count && part) return static_cast<size_t>(std::max<int64_t>(part->integer, 0));
  if (!count) fail_unsupported("how many tensors {} gives follows from a size that is open", op);
  if (op == "unbind") return static_cast<size_t>(*count);
  require(part != nullptr && part->is(IKind::Int) && part->is_constant() && part->integer > 0,
          "how {} splits is not known", op);
  const int64_t each =
      op == "chunk" ? std::max<int64_t>((*count + part->integer - 1) / part->integer, 1) : part->integer;
  if (*count == 0) return op == "chunk" ? static_cast<size_t>(part->integer) : 1;
  return static_cast<size_t>((*count + each - 1) / each);
}

namespace {

bool splits_open_size(const Node& node) {
  const Shape& whole = *node.input(0)->type.shape;
  const Attribute* given = node.find_attribute("dim");
  const int64_t dim = given ? *given->value.get<int64_t>() : 0;
  return !whole.at(static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(whole.size()) : dim)).is_constant();
}

}  // namespace

Item ScriptCalls::results(Node& node, const AtenOpEntry& entry, size_t list_count) {
  Graph& graph = *place.graph;
  const std::vector<Param>& outputs = entry.signature.outputs;
  const bool is_list = outputs.size() == 1 && outputs[0].is_list;
  const size_t count = is_list ? list_count : outputs.size();
  constexpr size_t kMostResults = 65536;
  if (count > kMostResults) fail_unsupported("{} gives {} tensors", entry.signature.name, count);
  for (size_t i = 0; i < count; ++i) {
    const std::string& type = outputs[is_list ? 0 : i].type;
    Type made;
    if (type == "SymInt" || type == "int") made = Type::number(Type::Kind::Int);
    if (type == "float") made = Type::number(Type::Kind::Float);
    if (type == "bool") made = Type::number(Type::Kind::Bool);
    graph.add_output_to(&node, graph.unique_name(entry.signature.name), made);
  }
  TypeNode view(node, entry, sizes_);
  find_types(view, *entry.op);
  Item::Items items;
  for (size_t i = 0; i < count; ++i) {
    Value* output = node.output(i);
    if (output->type.kind == Type::Kind::Unknown) {
      output->type = view.found()[i];
      if (!output->type.is_tensor() || !output->type.shape || output->type.dtype == DType::Undefined)
        fail_unsupported("the shape of what {} gives is not known", full_name(node));
      for (Dim& dim : *output->type.shape) {
        if (dim.symbol_name() == "") dim = sizes_.next();
      }
      items.push_back(Item::tensor(output));
    } else {
      output->known_ints = {view.number() ? *view.number() : sizes_.next()};
      items.push_back(Item::of_value(output->type.kind == Type::Kind::Int     ? IKind::Int
                                     : output->type.kind == Type::Kind::Float ? IKind::Float
                                                                              : IKind::Bool,
                                     output));
    }
  }
  if (is_list) {
    Item list = Item::of_items(IKind::List, std::move(items));
    list.may_be_fewer = node.op == "chunk" && splits_open_size(node);
    return list;
  }
  if (items.size() == 1) return items[0];
  return items.empty() ? Item::none() : Item::of_items(IKind::Tuple, std::move(items));
}

/// The parts of a tensor along an axis of open size: a list that is the tensor itself, that axis first.
std::optional<Item> ScriptCalls::open_parts(const AtenOpEntry& entry, const std::vector<const Item*>& bound) {
  if (entry.signature.domain != "aten" || entry.signature.name != "unbind" || !bound[0]->is(IKind::Tensor))
    return std::nullopt;
  const Type& type = bound[0]->value->type;
  const int64_t dim = bound.size() > 1 && bound[1] != nullptr ? bound[1]->integer : 0;
  if (!type.shape) return std::nullopt;
  const auto rank = static_cast<int64_t>(type.shape->size());
  if (dim < -rank || dim >= rank || (*type.shape)[static_cast<size_t>(dim < 0 ? dim + rank : dim)].is_constant())
    return std::nullopt;
  const Item all =
      dim == 0 ? *bound[0]
               : call_row("aten::movedim.int",
                          {{"self", *bound[0]}, {"source", Item::of_int(dim)}, {"destination", Item::of_int(0)}});
  return Item::of_value(IKind::List, all.value);
}

Item ScriptCalls::build(const AtenOpEntry& entry, const std::vector<const Item*>& bound, bool writes) {
  const ParsedSignature& signature = entry.signature;
  if (auto parts = open_parts(entry, bound)) return *parts;
  const bool is_list = signature.outputs.size() == 1 && signature.outputs[0].is_list;
  const size_t count = is_list ? list_count(entry, bound) : 0;
  Operands operands;  // before the node: some are made by nodes of their own
  std::vector<Attribute> attributes;
  for (size_t i = 0; i < bound.size(); ++i) {
    const Param& param = signature.inputs[i];
    if (bound[i] == nullptr) continue;
    AttrValue value = argument(operands, param, *bound[i]);
    if (param.type == "int" && !param.is_list && signature.domain == "aten" && value.get<Operand>() != nullptr)
      fail_unsupported("'{}' of {} follows from data or from a size that is open", param.name, signature.name);
    if (param.has_default && equals_default(value, param.default_value, param.is_list)) continue;
    attributes.push_back({param.name, std::move(value), AttrType::None, {}, {}});
  }
  Node& node = add_node(signature.domain, signature.name);
  node.overload = signature.overload;
  node.attributes = std::move(attributes);
  for (Value* operand : operands) node.add_input(operand);
  if (!writes) return results(node, entry, count);
  require(!operands.empty() && bound[0]->is(IKind::Tensor), "what is written to is no tensor");
  node.op = signature.name + "_";
  return Item::tensor(place.graph->add_output_to(&node, place.graph->unique_name(signature.name), operands[0]->type));
}

/// What has no row, since it leaves the graph once nothing writes any more.
Item ScriptCalls::copy(const Item& self, const Item& source) {
  require(self.is(IKind::Tensor) && source.is(IKind::Tensor), "a tensor is copied to {}", name_of(self.kind));
  Value *const to = tensor(self), *const from = tensor(source);
  Node& node = add_node("aten", "copy_");
  node.add_input(to);
  node.add_input(from);
  node.set_attribute("self", Operand{0});
  node.set_attribute("src", Operand{1});
  return Item::tensor(place.graph->add_output_to(&node, place.graph->unique_name("copy"), to->type));
}

std::string no_operator(std::string_view library, std::string_view op) {
  std::string text = error_text("there is no operator {}::{}", library, op);
  if (library == "quantized") text += std::string(", which computes with what PyTorch has quantised; ") + kInFloats;
  return text;
}

bool ScriptCalls::is_known(std::string_view library, std::string_view op) {
  const Rows* const rows = find_rows(library, library == "aten" ? canonical_name(op) : std::string(op));
  return rows != nullptr && std::any_of(rows->begin(), rows->end(), [](const AtenOpEntry* entry) {
           return entry->op->types != nullptr || entry->op->raise != nullptr ||
                  entry->op->elementwise != Elementwise::No;
         });
}

Item ScriptCalls::call(std::string_view library, std::string_view op, const Arguments& arguments) {
  if (library == "aten" && op == "copy_" && arguments.positional.size() >= 2)
    return copy(arguments.positional[0], arguments.positional[1]);
  const std::string name = library == "aten" ? canonical_name(op) : std::string(op);
  const bool writes = library == "aten" && name != op && op.ends_with('_') && !op.ends_with("__");
  const Rows* rows = find_rows(library, name);
  if (rows == nullptr || !is_known(library, op)) throw Error(ErrorKind::Unsupported, no_operator(library, op));
  if (library == "aten" && op == name + "_copy") {  // of what is a view otherwise
    const auto copied = [&](const Item& view) { return call("aten", "clone", {{view}, {}}); };
    Item views = call(library, name, arguments);
    if (!views.items) return copied(views);
    std::transform(views.items->begin(), views.items->end(), views.items->begin(), copied);
    return views;
  }
  // overloads that the tables have under another name come behind those that take the arguments as they are, and before
  // those that take a tensor as a number: max of two tensors is maximum, and not along a dimension
  std::vector<const Rows*> renamed;
  for (const char* const overload : {"other", "sizes", "dtype"}) {
    Node probe;
    probe.domain = "aten";
    probe.op = name;
    probe.overload = overload;
    use_canonical_name(probe);
    const Rows* others = probe.op == Symbol(name) ? nullptr : find_rows("aten", probe.op.view());
    if (others != nullptr && library == "aten") renamed.push_back(others);
  }
  std::vector<const Item*> bound;
  for (const bool loosely : {false, true}) {
    for (const AtenOpEntry* entry : *rows) {
      if (bind(*entry, arguments, loosely, bound)) return build(*entry, bound, writes);
    }
    for (const Rows* others : renamed) {
      for (const AtenOpEntry* entry : *others) {
        if (bind(*entry, arguments, loosely, bound)) return build(*entry, bound, writes);
      }
    }
  }
  std::vector<std::string> kinds;
  for (const Item& item : arguments.positional) kinds.emplace_back(name_of(item.kind));
  for (const auto& [key, item] : arguments.keywords) kinds.push_back(key + "=" + name_of(item.kind));
  fail_unsupported("{}::{} does not take ({})", library, op, joined(kinds));
}

Item ScriptCalls::call_row(std::string_view full_name, std::vector<std::pair<std::string, Item>> arguments) {
  const AtenOpEntry* entry = find_aten_op(full_name);
  if (entry == nullptr) fail_unsupported("there is no operator {}", full_name);
  Arguments given;
  given.keywords = std::move(arguments);
  std::vector<const Item*> bound;
  require(bind(*entry, given, true, bound), "{} does not take its arguments", full_name);
  return build(*entry, bound, false);
}

Item ScriptCalls::plain(const Item& number) {
  if (number.is_constant() || !number.value->type.is_tensor()) return number;
  return number_of(Item::tensor(number.value), number.kind);
}

Item ScriptCalls::number_of(const Item& tensor, Item::Kind kind) {
  if (tensor.number) return *tensor.number;
  Node& node = add_node("aten", "item");
  node.add_input(tensor.value);
  node.set_attribute("self", Operand{0});
  Value* made = place.graph->add_output_to(&node, place.graph->unique_name("item"), Type::number(number_kind(kind)));
  if (kind == IKind::Int) made->known_ints = {sizes_.next()};
  return Item::of_value(kind, made);
}

Value* ScriptCalls::as_tensor(const Item& number) {
  const DType dtype = number.is(IKind::Int) ? DType::Int64 : number.is(IKind::Bool) ? DType::Bool : DType::Float32;
  if (!number.is_constant() && number.value->type.is_tensor()) return number.value;
  Operands operands;
  AttrValue value = element(operands, "number", number);
  Node& node = add_node("aten", "scalar_tensor");
  for (Value* operand : operands) node.add_input(operand);
  node.set_attribute("s", std::move(value));
  node.set_attribute("dtype", dtype);
  return place.graph->add_output_to(&node, place.graph->unique_name("number"), Type::tensor(dtype, Shape()));
}

Item ScriptCalls::number(std::string_view op, const std::vector<Item>& operands, Item::Kind kind) {
  const bool of_floats =
      std::any_of(operands.begin(), operands.end(), [](const Item& i) { return i.is(IKind::Float); });
  const std::string library = op.starts_with("sym_")                           ? "torch"
                              : op == "floor" || op == "ceil" || op == "trunc" ? "math"
                                                                               : "_operator";
  const std::string overload = of_floats && find_aten_op(library + "::" + std::string(op) + ".float") ? ".float" : "";
  const AtenOpEntry* entry = find_aten_op(library + "::" + std::string(op) + overload);
  if (entry == nullptr) fail_unsupported("{} of numbers that only the run tells is not supported", op);
  Operands inputs;
  std::vector<AttrValue> values;
  for (const Item& operand : operands) values.push_back(element(inputs, "number", operand));
  Node& node = add_node(library, op);
  node.overload = entry->signature.overload;
  for (size_t i = 0; i < values.size(); ++i)
    node.set_attribute(entry->signature.inputs.at(i).name, std::move(values[i]));
  for (Value* input : inputs) node.add_input(input);
  Value* made = place.graph->add_output_to(&node, place.graph->unique_name(op), Type::number(number_kind(kind)));
  TypeNode view(node, *entry, sizes_);
  find_types(view, *entry->op);
  if (kind == IKind::Int) made->known_ints = {view.number() ? *view.number() : sizes_.next()};
  if (kind == IKind::Int && made->known_ints->front().is_constant()) {
    const int64_t known = *made->known_ints->front().constant();
    place.graph->erase(&node);
    return Item::of_int(known);
  }
  return Item::of_value(kind, made);
}

Item ScriptCalls::size(const Item& tensor, int64_t dim) {
  const Shape& shape = *tensor.value->type.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  require(dim >= -rank && dim < rank, "dimension {} is out of range for rank {}", dim, rank);
  if (dim < 0) dim += rank;
  if (const auto known = shape[static_cast<size_t>(dim)].constant()) return Item::of_int(*known);
  return call_row("aten::sym_size.int", {{"self", tensor}, {"dim", Item::of_int(dim)}});
}

}  // namespace tonnx::torchscript
