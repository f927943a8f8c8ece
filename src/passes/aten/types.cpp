// types.cpp - walks an aten graph and asks the rules what its nodes give.
#include "passes/aten/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "passes/aten/match.h"
#include "passes/aten/result_dtype.h"

namespace tonnx {

Dim NewSizes::next() { return Dim::symbol(fmt::format("data {}{}", tag_, count_++)); }

TypeNode::TypeNode(Node& node, NewSizes& symbols)
    : node_(&node),
      symbols_(&symbols),
      args_(node, get_aten_op(node), [](const Value*, int) { return std::string(); }),
      found_(node.outputs().size()) {}

const Type* TypeNode::tensor(std::string_view argument) const {
  const Value* value = operand(*node_, argument);
  return value && value->type.is_tensor() ? &value->type : nullptr;
}

const Type* TypeNode::first() const {
  for (const Value* input : node_->inputs()) {
    if (input && input->type.is_tensor()) return &input->type;
  }
  return nullptr;
}

const Shape* TypeNode::shape(std::string_view argument) const {
  const Type* type = tensor(argument);
  return type && type->shape ? &*type->shape : nullptr;
}

DType TypeNode::dtype(std::string_view argument) const {
  const Type* type = tensor(argument);
  return type ? type->dtype : DType::Undefined;
}

std::vector<const Type*> TypeNode::tensors(std::string_view argument) const {
  std::vector<const Type*> result;
  const Attribute* given = node_->find_attribute(argument);
  const auto* list = given ? given->value.get<AttrList>() : nullptr;
  if (list == nullptr) return result;
  for (const AttrValue& item : *list) {
    const auto* at = item.get<Operand>();
    const Value* value = at ? node_->input(at->index) : nullptr;
    result.push_back(value && value->type.is_tensor() ? &value->type : nullptr);
  }
  return result;
}

namespace {

std::optional<Dim> dim_of(const Node& node, const AttrValue& value) {
  if (const auto* i = value.get<int64_t>()) return Dim(*i);
  const auto* at = value.get<Operand>();
  const Value* operand = at ? node.input(at->index) : nullptr;
  if (operand == nullptr || operand->type.kind != Type::Kind::Int || !operand->known_ints) return std::nullopt;
  return operand->known_ints->at(0);
}

}  // namespace

std::optional<Dim> TypeNode::size(std::string_view argument) const { return dim_of(*node_, *args_.constant(argument)); }

std::optional<Shape> TypeNode::sizes(std::string_view argument) const {
  const AttrValue& value = *args_.constant(argument);
  if (const auto* ints = value.get<std::vector<int64_t>>()) return Shape(ints->begin(), ints->end());
  if (const auto one = dim_of(*node_, value)) return Shape{*one};
  const auto* list = value.get<AttrList>();
  if (list == nullptr) return std::nullopt;
  Shape result;
  for (const AttrValue& item : *list) {
    const auto each = dim_of(*node_, item);
    if (!each) return std::nullopt;
    result.push_back(*each);
  }
  return result;
}

std::optional<size_t> TypeNode::dim(std::string_view argument, size_t rank) const {
  auto given = args_.find_int(argument);
  if (!given) return std::nullopt;
  if (*given < 0) *given += static_cast<int64_t>(rank);
  return *given >= 0 && *given < static_cast<int64_t>(rank) ? std::optional(static_cast<size_t>(*given)) : std::nullopt;
}

std::optional<DType> TypeNode::given_dtype() const {
  const Attribute* given = node_->find_attribute("dtype");
  const auto* dtype = given ? given->value.get<DType>() : nullptr;
  return dtype ? std::optional(*dtype) : std::nullopt;
}

Dim TypeNode::fresh() { return symbols_->next(); }

void TypeNode::set(size_t output, DType dtype, std::optional<Shape> shape) {
  if (output < found_.size()) found_[output] = Type::tensor(dtype, std::move(shape));
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& size = result[offset + i];
    if (size == shorter[i] || shorter[i].is(1)) continue;
    if (size.is(1) || (shorter[i].is_constant() && !size.is_constant())) {
      size = shorter[i];
    } else if (size.is_constant() && shorter[i].is_constant()) {
      return std::nullopt;
    }
  }
  return result;
}

namespace {

void rule_elementwise(TypeNode& n) {
  std::optional<Shape> shape = Shape();
  for (const Value* input : n.node().inputs()) {
    if (input == nullptr || !input->type.is_tensor()) continue;
    shape = shape && input->type.shape ? broadcast(*shape, *input->type.shape) : std::nullopt;
  }
  const Type* self = n.tensor("self");
  if (self == nullptr) self = n.first();
  n.set(result_dtype(n.node(), self ? self->dtype : DType::Undefined), shape);
}

/// Where nothing better is known: as the first tensor.
void rule_as_first(TypeNode& n) {
  const Type* first = n.first();
  if (first != nullptr) n.set(n.given_dtype().value_or(first->dtype), first->shape);
}

TypeRule find_rule(const Node& node) {
  static const std::unordered_map<std::string_view, TypeRule> rules = [] {
    std::unordered_map<std::string_view, TypeRule> all;
    for (const auto& rows : {move_type_rules(), reduce_type_rules(), layer_type_rules()}) {
      for (const TypeRow& row : rows) all.emplace(row.op, row.rule);
    }
    return all;
  }();
  const auto at = rules.find(node.op.view());
  if (at != rules.end()) return at->second;
  return is_elementwise(node) ? rule_elementwise : rule_as_first;
}

class Inference {
 public:
  explicit Inference(std::string_view tag) : symbols_(tag) {}

  void run(Graph& graph) {
    for (Value* input : graph.inputs()) {
      if (input->type.kind == Type::Kind::Int && !input->known_ints) input->known_ints = {symbols_.next()};
      learn(*input);
    }
    for (Node& node : graph) {
      if (node.domain == Symbol("higher_order")) {
        enter(node);
      } else if (node.domain == Symbol("tonnx")) {
        for (const GraphPtr& inner : subgraphs_of(node)) {
          const auto outside = known_;
          run(*inner);
          known_ = outside;
        }
      } else if (node.domain == Symbol("aten") || node.domain == Symbol("torchvision")) {
        type_tensors(node);
      }
      for (Value* output : node.outputs()) {
        if (output == nullptr) continue;
        type_number(node, *output);
        learn(*output);
      }
    }
  }

 private:
  /// Sizes that a value has by themselves are known from there on.
  void learn(const Value& value) {
    if (value.type.shape) {
      for (const Dim& dim : *value.type.shape) {
        if (const auto name = dim.symbol_name()) known_.insert(*name);
      }
    }
    if (value.known_ints && value.known_ints->size() == 1) {
      if (const auto name = value.known_ints->front().symbol_name()) known_.insert(*name);
    }
  }

  bool is_known(const Dim& dim) const {
    for (const auto& [product, coefficient] : dim.terms()) {
      for (const Dim::AtomPtr& atom : product) {
        if (atom->kind == 's' ? !known_.contains(atom->text) : !is_known(atom->a) || !is_known(atom->b)) return false;
      }
    }
    return true;
  }

  void type_tensors(Node& node) {
    TypeNode view(node, symbols_);
    try {
      find_rule(node)(view);
    } catch (const Error&) {  // a size that no 64 bits hold, or no expression: nothing is known of it
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      Value* output = node.output(i);
      const Type& found = view.found()[i];
      if (output == nullptr || (output->type.kind != Type::Kind::Tensor && output->type.kind != Type::Kind::Unknown))
        continue;
      Type& type = output->type;
      type.kind = Type::Kind::Tensor;
      if (type.dtype == DType::Undefined) type.dtype = found.dtype;
      type.dtype = widened(type.dtype);
      if (!found.shape) continue;
      if (!type.shape || type.shape->size() != found.shape->size()) {
        if (!type.shape) type.shape = found.shape;
        continue;
      }
      for (size_t d = 0; d < type.shape->size(); ++d) {
        Dim& own = (*type.shape)[d];
        const Dim& other = (*found.shape)[d];
        if (own.symbol_name() == "" || (!is_known(own) && is_known(other))) own = other;
      }
    }
  }

  void type_number(Node& node, Value& value) {
    if (value.type.kind == Type::Kind::Bool && !value.known_ints && node.domain == Symbol("aten")) {
      value.known_ints = {symbols_.next()};
    }
    if (value.type.kind != Type::Kind::Int) return;
    std::optional<Dim> found;
    try {
      found = number_of_node(node);
    } catch (const Error&) {
    }
    if (found && (!value.known_ints || !is_known(value.known_ints->at(0)))) value.known_ints = {*found};
    if (!value.known_ints || value.known_ints->size() != 1 || value.known_ints->front().symbol_name() == "")
      value.known_ints = {symbols_.next()};
  }

  std::optional<Dim> number_of_node(Node& node) {
    TypeNode view(node, symbols_);
    const std::string_view op = node.op.view();
    if (op == "sym_size") {
      const Shape* shape = view.shape("self");
      const auto dim = shape ? view.dim("dim", shape->size()) : std::nullopt;
      if (!dim || (*shape)[*dim].symbol_name() == "") return std::nullopt;
      return (*shape)[*dim];
    }
    if (op == "sym_numel") {
      const Shape* shape = view.shape("self");
      return shape ? std::optional(count_of(*shape)) : std::nullopt;
    }
    if (node.domain != Symbol("_operator") && node.domain != Symbol("torch")) return std::nullopt;
    const bool has_two = node.find_attribute("b") != nullptr;
    const auto a = node.find_attribute("a") ? view.size("a") : std::nullopt;
    const auto b = has_two ? view.size("b") : std::nullopt;
    if (!a || (has_two && !b)) return std::nullopt;
    if (op == "neg") return Dim(0) - *a;
    if (!has_two) return op == "sym_int" ? a : std::nullopt;
    if (op == "add") return *a + *b;
    if (op == "sub") return *a - *b;
    if (op == "mul") return *a * *b;
    if ((op == "floordiv" || op == "mod") && b->is(0)) return std::nullopt;
    if (op == "floordiv") return floor_div(*a, *b);
    if (op == "mod") return mod(*a, *b);
    if (op == "sym_max") return max(*a, *b);
    return op == "sym_min" ? std::optional(min(*a, *b)) : std::nullopt;
  }

  /// The graphs of a branch or loop: their inputs are as what they are given, and what both give is what comes out.
  void enter(Node& node) {
    const bool is_loop = node.op == Symbol("while_loop");
    std::vector<const Value*> given;
    for (const Attribute& attribute : node.attributes) {
      if (attribute.name == "pred") continue;
      const auto* list = attribute.value.get<AttrList>();
      if (list == nullptr) continue;
      for (const AttrValue& item : *list) given.push_back(node.input(item.get<Operand>()->index));
    }
    const std::vector<GraphPtr> graphs = subgraphs_of(node);
    for (const GraphPtr& graph : graphs) {
      for (size_t i = 0; i < graph->inputs().size() && i < given.size(); ++i) {
        Value* input = graph->inputs()[i];
        if (input->type.kind == Type::Kind::Unknown || !is_loop) input->type = given[i]->type;
        if (given[i]->known_ints && given[i]->type.kind == Type::Kind::Int) input->known_ints = given[i]->known_ints;
      }
      const auto outside = known_;
      run(*graph);
      known_ = outside;
    }
    const Graph& last = *graphs.back();
    const Graph& first = is_loop ? last : *graphs.front();
    for (size_t i = 0; i < node.outputs().size() && i < last.outputs().size(); ++i) {
      Value* output = node.output(i);
      if (output == nullptr) continue;
      const Type &one = first.outputs()[i]->type, &other = last.outputs()[i]->type;
      if (is_loop && output->type.is_tensor() && output->type.shape) continue;
      output->type = one;
      if (!one.shape || !other.shape || one.shape->size() != other.shape->size()) continue;
      for (size_t d = 0; d < one.shape->size(); ++d) {
        Dim& size = (*output->type.shape)[d];
        if (size != (*other.shape)[d] || !is_known(size)) size = symbols_.next();
      }
    }
  }

  NewSizes symbols_;
  std::set<std::string> known_;
};

using Names = std::unordered_set<std::string>;

void collect_symbols(const Dim& dim, Names& into) {
  for (const auto& [product, coefficient] : dim.terms()) {
    for (const Dim::AtomPtr& atom : product) {
      if (atom->kind == 's') {
        into.insert(atom->text);
      } else {
        collect_symbols(atom->a, into);
        collect_symbols(atom->b, into);
      }
    }
  }
}

template <class Visit>
void for_each_size(Graph& graph, Visit&& visit) {
  const auto visit_value = [&](Value* value) {
    if (value == nullptr || value->constant) return;
    if (value->type.shape) {
      for (Dim& dim : *value->type.shape) visit(dim);
    }
    if (value->known_ints && value->known_ints->size() == 1 && !value->type.is_tensor())
      visit(value->known_ints->front());
  };
  for (Value* input : graph.inputs()) visit_value(input);
  for (Node& node : graph) {
    for (Value* output : node.outputs()) visit_value(output);
  }
}

void name_unseen_sizes(Graph& graph, const Names& of_inputs) {
  Names seen = of_inputs;
  for_each_size(graph, [&](const Dim& dim) {
    if (const auto name = dim.symbol_name()) seen.insert(*name);
  });
  for_each_size(graph, [&](Dim& dim) {
    Names used;
    collect_symbols(dim, used);
    const bool is_seen =
        std::all_of(used.begin(), used.end(), [&](const std::string& name) { return seen.contains(name); });
    if (!is_seen) dim = Dim::symbol("data " + dim.text());
  });
  for (const Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) name_unseen_sizes(*inner, of_inputs);
  }
}

}  // namespace

void infer_aten_types(Graph& graph, std::string_view tag) { Inference(tag).run(graph); }

void name_unseen_sizes(Graph& graph) {
  Names of_inputs;
  for (const Value* input : graph.inputs()) {
    if (!input->type.shape) continue;
    for (const Dim& dim : *input->type.shape) {
      if (const auto name = dim.symbol_name()) of_inputs.insert(*name);
    }
  }
  name_unseen_sizes(graph, of_inputs);
}

}  // namespace tonnx
