// graph_types.cpp - walks an aten graph and asks the rows of its operators what they give.
#include "passes/frame/graph_types.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "ops/frame/aten_types.h"

namespace tonnx {
namespace {

class Inference {
 public:
  explicit Inference(std::string_view tag) : symbols_(tag) {}

  void run(Graph& graph) {
    for (Value* input : graph.inputs()) {
      if (input->type.kind == Type::Kind::Int && !input->known_ints) input->known_ints = {symbols_.next()};
      learn(*input);
    }
    for (Node& node : graph) {
      if (node.domain == "higher_order") {
        enter(node);
      } else if (node.domain == "tonnx") {
        for (const GraphPtr& inner : subgraphs_of(node)) {
          const auto outside = known_;
          run(*inner);
          known_ = outside;
        }
      } else if (node.domain == "aten" || node.domain == "torchvision") {
        type_results(node, get_aten_op(node));
      } else if (const AtenOpEntry* entry = find_aten_op(node)) {
        type_results(node, *entry);
      }
      for (Value* output : node.outputs()) {
        if (output == nullptr) continue;
        name_number(node, *output);
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

  /// What the row of the node's operator says of its results.
  void type_results(Node& node, const AtenOpEntry& entry) {
    TypeNode view(node, entry, symbols_);
    find_types(view, *entry.op);
    const bool gives_tensors = node.domain == "aten" || node.domain == "torchvision";
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      Value* output = node.output(i);
      if (output == nullptr) continue;
      const Type::Kind kind = output->type.kind;
      if (gives_tensors && (kind == Type::Kind::Tensor || kind == Type::Kind::Unknown))
        refine(output->type, view.found()[i]);
      if (kind == Type::Kind::Int && view.number() && (!output->known_ints || !is_known(output->known_ints->at(0))))
        output->known_ints = {*view.number()};
    }
  }

  void refine(Type& type, const Type& found) const {
    type.kind = Type::Kind::Tensor;
    if (type.dtype == DType::Undefined) type.dtype = found.dtype;
    type.dtype = widened(type.dtype);
    if (!found.shape) return;
    if (!type.shape || type.shape->size() != found.shape->size()) {
      if (!type.shape) type.shape = found.shape;
      return;
    }
    for (size_t d = 0; d < type.shape->size(); ++d) {
      Dim& own = (*type.shape)[d];
      const Dim& other = (*found.shape)[d];
      if (own.symbol_name() == "" || (!is_known(own) && is_known(other))) own = other;
    }
  }

  /// A number that nobody knows gets a name.
  void name_number(const Node& node, Value& value) {
    if (value.type.kind == Type::Kind::Bool && !value.known_ints && node.domain == "aten")
      value.known_ints = {symbols_.next()};
    if (value.type.kind != Type::Kind::Int) return;
    if (!value.known_ints || value.known_ints->size() != 1 || value.known_ints->front().symbol_name() == "")
      value.known_ints = {symbols_.next()};
  }

  /// The graphs of a branch or loop: their inputs are as what they are given, and what both give is what comes out.
  void enter(Node& node) {
    const bool is_loop = node.op == "while_loop";
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

using SizeNames = std::unordered_set<std::string>;

void collect_symbols(const Dim& dim, SizeNames& into) {
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

void name_unseen_sizes(Graph& graph, const SizeNames& of_inputs) {
  SizeNames seen = of_inputs;
  for_each_size(graph, [&](const Dim& dim) {
    if (const auto name = dim.symbol_name()) seen.insert(*name);
  });
  for_each_size(graph, [&](Dim& dim) {
    SizeNames used;
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
  SizeNames of_inputs;
  for (const Value* input : graph.inputs()) {
    if (!input->type.shape) continue;
    for (const Dim& dim : *input->type.shape) {
      if (const auto name = dim.symbol_name()) of_inputs.insert(*name);
    }
  }
  name_unseen_sizes(graph, of_inputs);
}

}  // namespace tonnx
