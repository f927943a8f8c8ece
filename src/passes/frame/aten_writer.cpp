// aten_writer.cpp - appends aten nodes to a graph whose types are known.
#include "passes/frame/aten_writer.h"

#include <algorithm>

#include "base/error.h"

namespace tonnx {
namespace {

constexpr size_t kMaxAdded = 500000;  // views of views, written by turns, can grow without end

/// Whether it is more than "some size".
bool is_known(const Dim& dim) { return dim.symbol_name() != ""; }

}  // namespace

IntArg size_argument(const Node& node, const AttrValue& argument) {
  if (const auto* operand = argument.get<Operand>()) return node.input(operand->index);
  const auto* number = argument.get<int64_t>();
  return number ? *number : 0;
}

AtenCall& AtenCall::with(std::string_view argument, Value* value) {
  const auto index = static_cast<uint32_t>(inputs.size());
  inputs.push_back(value);
  return with(argument, AttrValue(Operand{index}));
}

AtenCall& AtenCall::with(std::string_view argument, const IntArg& number) {
  return number.value ? with(argument, number.value) : with(argument, AttrValue(number.number));
}

AtenCall& AtenCall::with(std::string_view argument, const IntArgs& numbers) {
  if (std::none_of(numbers.begin(), numbers.end(), [](const IntArg& n) { return n.value != nullptr; })) {
    std::vector<int64_t> plain;
    for (const IntArg& n : numbers) plain.push_back(n.number);
    return with(argument, AttrValue(std::move(plain)));
  }
  AttrList list;
  for (const IntArg& n : numbers) {
    if (n.value == nullptr) {
      list.emplace_back(n.number);
      continue;
    }
    list.emplace_back(Operand{static_cast<uint32_t>(inputs.size())});
    inputs.push_back(n.value);
  }
  return with(argument, AttrValue(std::move(list)));
}

AtenCall& AtenCall::with(std::string_view argument, AttrValue constant) {
  attributes.push_back({std::string(argument), std::move(constant), AttrType::None, {}, {}});
  return *this;
}

Value* AtenWriter::add(const AtenCall& call, Type type, std::string_view name, Symbol domain) {
  if (++added_ > kMaxAdded) fail_unsupported("writes through views take more than {} nodes", kMaxAdded);
  Node* node = graph_->add_node(domain, call.op, before_);
  node->overload = call.overload;
  node->attributes = call.attributes;
  for (Value* input : call.inputs) node->add_input(input);
  if (call.like != nullptr) {
    node->name = call.like->name;
    node->metadata = call.like->metadata;
    node->doc = call.like->doc;
  }
  return graph_->add_output_to(node, graph_->unique_name(name), std::move(type));
}

IntArg AtenWriter::size(Value* tensor, const Type& type, size_t dim, const Node* like) {
  if (type.shape && dim < type.shape->size()) {
    if (const auto number = (*type.shape)[dim].constant()) return *number;
  }
  AtenCall call("sym_size", "int", like);
  call.with("self", tensor).with("dim", IntArg(static_cast<int64_t>(dim)));
  Value* made = add(call, Type::number(Type::Kind::Int), "size");
  if (type.shape && dim < type.shape->size() && is_known((*type.shape)[dim])) made->known_ints = {(*type.shape)[dim]};
  return made;
}

IntArgs AtenWriter::sizes(Value* tensor, const Type& type, const Node* like) {
  require(type.shape.has_value(), "the shape of a tensor that is written to is not known");
  IntArgs result;
  for (size_t i = 0; i < type.shape->size(); ++i) result.push_back(size(tensor, type, i, like));
  return result;
}

IntArg AtenWriter::sum(const IntArg& a, const IntArg& b, const Node* like) {
  int64_t number = 0;
  if (!a.value && !b.value && !__builtin_add_overflow(a.number, b.number, &number)) return number;
  AtenCall call("add", "", like);
  call.with("a", a).with("b", b);
  Value* made = add(call, Type::number(Type::Kind::Int), "end", "_operator");
  const auto known = [](const IntArg& n) -> std::optional<Dim> {
    if (n.value == nullptr) return n.number;
    const auto& ints = n.value->known_ints;
    return ints && ints->size() == 1 ? std::optional(ints->front()) : std::nullopt;
  };
  if (const auto first = known(a), second = known(b); first && second) made->known_ints = {*first + *second};
  return made;
}

}  // namespace tonnx
