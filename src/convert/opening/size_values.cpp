// size_values.cpp - expressions over sizes as nodes of ONNX that compute them.
#include "convert/opening/size_values.h"

#include "base/budget.h"

namespace tonnx {

bool is_in_model(const Graph& graph, const Graph& main) {
  for (const Graph* each = &graph; each != &main; each = each->owner->graph) {
    if (each->owner == nullptr) return false;
    const std::vector<GraphPtr> all = subgraphs_of(*each->owner);
    if (std::none_of(all.begin(), all.end(), [&](const GraphPtr& one) { return one.get() == each; })) return false;
  }
  return true;
}

SizeValues::SizeValues(Model& model, FindSource find_source, Visit infer)
    : model_(model),
      find_source_(std::move(find_source)),
      infer_(std::move(infer)),
      opset_(model.opset("")),
      start_(model.graph->first()) {}

Value* SizeValues::constant(Graph& graph, TensorPtr tensor, std::string_view hint) {
  budget().take(Resource::Memory, static_cast<int64_t>(tensor->data.size()));
  Value* made = graph.add_initializer(graph.unique_name(hint), std::move(tensor));
  if (is_in_model(graph, *model_.graph)) constants_.push_back(made);
  return made;
}

Value* SizeValues::ints(Graph& graph, std::vector<int64_t> values, std::string_view hint) {
  return constant(graph, make_ints(std::move(values)), hint);
}

Value* SizeValues::scalar(const Dim& size, Node& before, std::string_view hint) {
  Graph& graph = *before.graph;
  if (const auto number = size.constant())
    return constant(graph, make_scalar(DType::Int64, static_cast<double>(*number)), hint);
  Value* one = list({size}, before, hint);
  if (one == nullptr) return nullptr;
  return add(before, "Reshape", {one, ints(graph, {}, "no_sizes")}, {}, hint);
}

void SizeValues::remove_unused() {
  for (auto at = made_.rbegin(); at != made_.rend(); ++at) {
    Node& node = **at;
    if (is_used(node.output(0))) continue;
    node.graph->erase(&node);
  }
  for (Value* value : constants_) {
    if (!is_used(value)) value->graph->remove_initializer(value);
  }
  made_.clear();
  constants_.clear();
  known_.clear();
}

Value* SizeValues::add(Node& before, std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes,
                       std::string_view hint) {
  budget().take(Resource::Nodes, 1);
  Node* made = before.graph->add_node("", op, &before);
  made->version = opset_;
  for (Attribute& attribute : attributes)
    made->set_attribute(attribute.name, std::move(attribute.value), attribute.type);
  for (Value* input : inputs) made->add_input(input);
  Value* output = before.graph->add_output_to(made, before.graph->unique_name(hint.empty() ? op : hint));
  made->name = output->name;
  if (is_in_model(*before.graph, *model_.graph)) made_.push_back(made);
  infer_(*made);
  return output;
}

namespace {

/// Whether all symbols of the size are found in inputs of the model.
bool is_of_inputs(const Dim& size, const SizeValues::FindSource& find_source) {
  for (const auto& [product, coefficient] : size.terms()) {
    for (const Dim::AtomPtr& atom : product) {
      if (atom->kind != 's') {
        if (!is_of_inputs(atom->a, find_source) || !is_of_inputs(atom->b, find_source)) return false;
        continue;
      }
      const auto source = find_source(atom->text);
      if (!source || source->first->producer != nullptr) return false;
    }
  }
  return true;
}

}  // namespace

Value* SizeValues::atom(const Dim::Atom& atom, Node& before) {
  if (atom.kind == 's') {
    const auto source = find_source_(atom.text);
    if (!source) return nullptr;
    Value* shape = add(before, "Shape", {source->first}, {}, source->first->name + "_shape");
    Graph& graph = *before.graph;
    return add(before, "Gather", {shape, ints(graph, {source->second}, atom.text + "_axis")},
               {Attribute("axis", int64_t{0})}, atom.text + "_size");
  }
  Value *a = size(atom.a, before), *b = size(atom.b, before);
  if (a == nullptr || b == nullptr) return nullptr;
  constexpr int64_t kIntegerMax = 12, kMod = 10;  // the opsets that brought Max of integers, and Mod
  switch (atom.kind) {
    case '/':
      if (!atom.a.is_non_negative() || !atom.b.is_non_negative()) {  // Div goes towards zero
        if (opset_ < kMod) return nullptr;
        a = add(before, "Sub", {a, add(before, "Mod", {a, b}, {}, "rest")}, {}, "multiple");
      }
      return add(before, "Div", {a, b}, {}, "quotient");
    case '%': return opset_ >= kMod ? add(before, "Mod", {a, b}, {}, "rest") : nullptr;
    default: return opset_ >= kIntegerMax ? add(before, atom.kind == '>' ? "Max" : "Min", {a, b}, {}, "size") : nullptr;
  }
}

Value* SizeValues::size(const Dim& size, Node& asked_before) {
  Graph& main = *model_.graph;
  const bool at_start = size.is_constant() || is_of_inputs(size, find_source_);
  Node& before = at_start && start_ != nullptr ? *start_ : asked_before;
  const std::string text = size.text();
  if (at_start) {
    const auto known = known_.find(text);
    if (known != known_.end()) return known->second;
  }
  Value* sum = nullptr;
  if (size.is_constant()) {
    sum = ints(main, {*size.constant()}, "size_" + text);
  } else {
    for (const auto& [product, coefficient] : size.terms()) {
      Value* term = nullptr;
      for (const Dim::AtomPtr& each : product) {
        Value* factor = nullptr;
        if (each->kind == 's' && at_start) {
          const auto known = known_.find("symbol " + each->text);
          factor = known != known_.end() ? known->second : known_["symbol " + each->text] = atom(*each, before);
        } else {
          factor = atom(*each, before);
        }
        if (factor == nullptr) return nullptr;
        term = term == nullptr ? factor : add(before, "Mul", {term, factor}, {}, "product");
      }
      if (coefficient != 1) term = add(before, "Mul", {term, ints(main, {coefficient}, "times")}, {}, "product");
      sum = sum == nullptr ? term : add(before, "Add", {sum, term}, {}, "sum");
    }
    if (size.constant_term() != 0)
      sum = add(before, "Add", {sum, ints(main, {size.constant_term()}, "more")}, {}, "sum");
  }
  if (at_start) known_[text] = sum;
  return sum;
}

Value* SizeValues::list(const Dims& sizes, Node& before, std::string_view hint) {
  Graph& graph = *before.graph;
  std::vector<Value*> parts;
  std::vector<int64_t> numbers;
  const auto close = [&] {
    if (!numbers.empty()) parts.push_back(ints(graph, std::move(numbers), hint));
    numbers.clear();
  };
  for (const Dim& each : sizes) {
    if (const auto number = each.constant()) {
      numbers.push_back(*number);
      continue;
    }
    close();
    Value* value = size(each, before);
    if (value == nullptr) return nullptr;
    parts.push_back(value);
  }
  if (parts.empty() || !numbers.empty()) {
    if (parts.empty()) return ints(graph, std::move(numbers), hint);
    close();
  }
  if (parts.size() == 1) return parts[0];
  return add(before, "Concat", parts, {Attribute("axis", int64_t{0})}, hint);
}

}  // namespace tonnx
