// open_sizes.cpp - makes fixed sizes of a model's inputs open, and everything in the model that follows from them.
#include "convert/open_sizes.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/join.h"
#include "convert/grow.h"
#include "convert/inference.h"
#include "convert/size_values.h"
#include "ir/dim_map.h"
#include "ops/frame/node_facts.h"
#include "ops/frame/open_node.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

template <class Visit>
void for_each_value(const Graph& graph, Visit&& visit) {
  for (Value* input : graph.inputs()) visit(*input);
  for (const Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) for_each_value(*subgraph, visit);
    for (Value* output : node.outputs()) {
      if (output != nullptr) visit(*output);
    }
  }
}

bool has_symbol_of(const Dim& size, const DimMap& names) {
  for (const auto& [product, coefficient] : size.terms()) {
    for (const Dim::AtomPtr& atom : product) {
      if (atom->kind == 's' ? names.contains(atom->text)
                            : has_symbol_of(atom->a, names) || has_symbol_of(atom->b, names))
        return true;
    }
  }
  return false;
}

/// What inference finds out where the sizes are those of the file, by the names of values: copies of the bodies of
/// loops have the names of the originals.
class FixedTypes {
 public:
  explicit FixedTypes(Model& model) {
    Graph& graph = *model.graph;
    const std::vector<const Value*> known = constants(graph);
    OnnxInference inference({.rewrites = false, .leave_alone = {}, .fold = {}});
    inference.walk(graph);
    for_each_value(graph, [&](const Value& value) {
      const auto [at, is_new] = types_.emplace(value.name, value.type);
      if (!is_new) at->second = {};
    });
    forget_found(graph, known);
  }

  const Type* find(const Value* value) const {
    if (value == nullptr) return nullptr;
    if (value->producer == nullptr && value->constant) return &value->type;
    const auto at = types_.find(value->name);
    return at == types_.end() || at->second.kind == Type::Kind::Unknown ? nullptr : &at->second;
  }

  void learn(const std::string& name, Type type) { types_[name] = std::move(type); }

  /// Values of nodes that have a constant although nothing was inferred yet.
  static std::vector<const Value*> constants(const Graph& graph) {
    std::vector<const Value*> result;
    for_each_value(graph, [&](const Value& value) {
      if (value.constant) result.push_back(&value);
    });
    return result;
  }

  /// What was found out of values, but not of the inputs of the model.
  static void forget_found(Graph& graph, const std::vector<const Value*>& known) {
    const std::set<const Value*> kept(known.begin(), known.end());
    for_each_value(graph, [&](Value& value) {
      const bool is_input = value.producer == nullptr && value.graph == &graph;
      value.known_ints.reset();
      if (!kept.contains(&value)) value.constant.reset();
      if (!is_input) value.type.shape.reset();
    });
  }

 private:
  std::unordered_map<std::string, Type> types_;
};

class Opener {
 public:
  Opener(Model& model, const std::map<std::string, int64_t>& opened, std::set<std::string> first)
      : model_(model),
        fixed_types_(model),
        samples_(std::move(first)),
        inference_({.rewrites = false,
                    .leave_alone = {},
                    .fold = {},
                    .infer_other = {},
                    .before = [this](Node& node) { before(node); },
                    .after = [this](Node& node) { after(node); }}),
        sizes_(
            model, [this](const std::string& symbol) { return source_of(symbol); },
            [this](Node& node) { infer_made(node); }),
        grower_(sizes_, [this](const Value* value) { return !depends_on_data(value); }) {
    for (const auto& [name, fixed] : opened) fixed_.emplace(name, Dim(fixed));
  }

  /// Of the names, those that count samples.
  std::set<std::string> open() {
    Graph& graph = *model_.graph;
    for (Value* input : graph.inputs()) note_sources(*input);
    const std::vector<const Value*> known = FixedTypes::constants(graph);
    inference_.walk(graph);
    sizes_.remove_unused();
    const std::vector<Value*> outputs = graph.outputs();
    std::vector<Type> types;
    for (const Value* output : outputs) types.push_back(output->type);
    FixedTypes::forget_found(graph, known);
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i]->type = types[i];
    return samples_;
  }

 private:
  class View;

  bool is_open(const Dim& size) const { return !size.is_constant() && has_symbol_of(size, fixed_); }
  Dim fixed(const Dim& size) const { return substituted(size, fixed_); }

  bool depends_on_data(const Value* value) const {
    if (value == nullptr || value->constant || value->known_ints) return false;
    if (data_.contains(value)) return true;
    if (value->producer != nullptr) return false;
    if (value->graph == nullptr || value->graph->owner == nullptr) {  // an input of the model
      return value->type.shape && std::any_of(value->type.shape->begin(), value->type.shape->end(),
                                              [&](const Dim& size) { return is_open(size); });
    }
    const std::vector<Value*>& outer = value->graph->owner->inputs();
    return std::any_of(outer.begin(), outer.end(), [&](const Value* each) { return depends_on_data(each); });
  }

  std::optional<SizeValues::Source> source_of(const std::string& symbol) const {
    const auto at = sources_.find(symbol);
    return at == sources_.end() ? std::nullopt : std::optional(at->second);
  }

  void note_sources(Value& value) {
    if (value.graph != model_.graph.get() || !value.type.is_tensor() || !value.type.shape) return;
    for (size_t i = 0; i < value.type.shape->size(); ++i) {
      if (const auto name = (*value.type.shape)[i].symbol_name())
        sources_.emplace(*name, std::pair(&value, static_cast<int64_t>(i)));
    }
  }

  void infer_made(Node& node) {
    const bool was_busy = std::exchange(is_busy_, true);
    inference_.visit(node);
    is_busy_ = was_busy;
  }

  void before(Node& node);
  void after(Node& node);
  void check_sizes(const Node& node, Value& output);
  void check_equal(const Node& node);
  void check_samples(const Node& node);
  void note_data(const Node& node);
  void hand_on_parts(const Node& node);
  void follow_states(Node& loop);
  bool agree(const Dim& a, const Dim& b) const;

  Model& model_;
  FixedTypes fixed_types_;
  DimMap fixed_;                   // what each open size is in the file: those that were asked for, and what follows
  std::set<std::string> samples_;  // names of first dimensions over which nothing was summed so far
  OnnxInference inference_;
  SizeValues sizes_;
  Grower grower_;
  std::map<std::string, SizeValues::Source> sources_;
  std::unordered_set<const Value*> data_;
  std::unordered_map<const Value*, std::vector<SizeParts>> parts_;
  std::unordered_set<const Value*> has_parts_;  // of the node at hand
  bool is_busy_ = false;
};

class Opener::View final : public OpenNode {
 public:
  View(Opener& opener, Node& node) : OpenNode(node), o_(opener) {}

  bool is_open(const Dim& size) const override { return o_.is_open(size); }
  Dim fixed(const Dim& size) const override { return o_.fixed(size); }
  bool depends_on_data(size_t input) const override { return o_.depends_on_data(node().input(input)); }

  std::vector<SizeParts> parts(size_t input) const override {
    const Value* value = node().input(input);
    const Shape& now = *value->type.shape;
    const Shape* fixed = fixed_shape(input);
    const auto known = o_.parts_.find(value);
    std::vector<SizeParts> result;
    for (size_t i = 0; i < now.size(); ++i) {
      const Dim was = fixed != nullptr && i < fixed->size() ? (*fixed)[i] : o_.fixed(now[i]);
      if (known != o_.parts_.end() && i < known->second.size()) {
        Dim size = 1, size_was = 1;
        for (const SizePart& part : known->second[i]) {
          size = size * part.now;
          size_was = size_was * part.fixed;
        }
        if (size == now[i] && size_was == was) {
          result.push_back(known->second[i]);
          continue;
        }
      }
      result.push_back({{now[i], was}});
    }
    return result;
  }
  void set_parts(size_t output, std::vector<SizeParts> parts) override {
    const Value* value = node().output(output);
    o_.parts_[value] = std::move(parts);
    o_.has_parts_.insert(value);
  }

  void set_list(size_t input, std::string_view name, const Dims& elements) override {
    const bool is_constant =
        std::all_of(elements.begin(), elements.end(), [](const Dim& size) { return size.is_constant(); });
    std::vector<int64_t> numbers;
    for (const Dim& size : elements) numbers.push_back(size.constant().value_or(0));
    const OnnxOpEntry* entry = find_onnx_op(node().domain.view(), node().op.view());
    const int version = entry ? schema_version(node().op.view(), node().version) : 0;
    const bool is_attribute = node().find_attribute(name) != nullptr || (name == "axes" && version < 13 && input == 1) ||
                              (name == "split" && version < 13);
    if (is_attribute) {
      if (!is_constant)
        refuse(fmt::format("its sizes are an attribute, which holds numbers alone; tonnx convert --opset 13 first "
                           "makes it an input"));
      node().set_attribute(name, std::move(numbers), AttrType::Ints);
      node().mark_changed();
      return;
    }
    const std::string hint = fmt::format("{}_{}", node().output(0) ? node().output(0)->name : node().name, name);
    Value* list = is_constant ? o_.sizes_.ints(*node().graph, std::move(numbers), hint)
                              : o_.sizes_.list(elements, node(), hint);
    if (list == nullptr) refuse("what it needs cannot be computed in the model's opset; tonnx convert --opset 13 first");
    const Value* old = node().input(input);
    if (old != nullptr && old->type.dtype == DType::Int32)
      list = o_.sizes_.add(node(), "Cast", {list}, {Attribute("to", static_cast<int64_t>(DType::Int32))}, hint);
    node().set_input(input, list);
  }

  void grow(size_t input, size_t axis, const Dim& size) override {
    Value* value = node().input(input);
    Value* longer = o_.grower_.grown(value, axis, size, node());
    if (longer == nullptr) {
      const std::string what = depends_on_data(input) ? "is computed of the inputs" : "is a constant";
      refuse(fmt::format("'{}' {} whose axis {} has {} elements, and as many as {} are needed", value->name, what, axis,
                         (*value->type.shape)[axis].text(), size.text()));
    }
    node().set_input(input, longer);
  }

  void transpose(size_t input, const std::vector<int64_t>& permutation) override {
    Value* value = node().input(input);
    std::vector<SizeParts> old = parts(input), now;
    const Shape* fixed = fixed_shape(input);
    Shape turned;
    for (const int64_t axis : permutation) {
      now.push_back(old[static_cast<size_t>(axis)]);
      turned.push_back((*fixed)[static_cast<size_t>(axis)]);
    }
    Value* made = o_.sizes_.add(node(), "Transpose", {value}, {Attribute("perm", permutation)}, value->name + "_turned");
    o_.fixed_types_.learn(made->name, Type::tensor(value->type.dtype, turned));
    o_.parts_[made] = std::move(now);
    if (o_.depends_on_data(value)) o_.data_.insert(made);
    node().set_input(input, made);
  }

 protected:
  const Type* fixed_type(const Value* value) const override { return o_.fixed_types_.find(value); }

 private:
  Opener& o_;
};

void Opener::before(Node& node) {
  if (is_busy_) return;
  has_parts_.clear();
  const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
  if (entry == nullptr) return;
  const Attribute* old_broadcast = node.find_attribute("broadcast");
  const bool is_broadcast = has_trait(node, kElementwise) && node.inputs().size() > 1 && old_broadcast == nullptr;
  if (entry->op->open == nullptr && !is_broadcast) return;
  in_context([&] { return "opening sizes of " + describe(node); },
             [&] {
               View view(*this, node);
               (entry->op->open != nullptr ? entry->op->open : open_broadcast)(view);
             });
}

void Opener::after(Node& node) {
  if (is_busy_) return;
  in_context([&] { return "opening sizes of " + describe(node); },
             [&] {
               if (node.op == "Loop" || node.op == "Scan") follow_states(node);
               note_data(node);
               for (Value* output : node.outputs()) {
                 if (output == nullptr) continue;
                 check_sizes(node, *output);
                 note_sources(*output);
               }
               check_equal(node);
               check_samples(node);
               hand_on_parts(node);
             });
}

/// What the node gives is, at the sizes of the file, what it gave there.
void Opener::check_sizes(const Node& node, Value& output) {
  const Type* was = fixed_types_.find(&output);
  if (was == nullptr || !was->shape || !output.type.shape) return;
  const Shape& now = *output.type.shape;
  if (now.size() != was->shape->size())
    fail_unsupported("'{}' has {} dimensions, and {} in the file", output.name, now.size(), was->shape->size());
  for (size_t i = 0; i < now.size(); ++i) {
    const Dim& before = (*was->shape)[i];
    if (now[i].is_constant() || !before.is_constant()) {
      if (now[i].is_constant() && before.is_constant() && !(now[i] == before))
        fail_unsupported("axis {} of '{}' has {} elements, and {} in the file", i, output.name, now[i].text(),
                         before.text());
      continue;
    }
    const Dim at_fixed = fixed(now[i]);
    if (at_fixed == before) continue;
    const auto name = now[i].symbol_name();
    if (name && at_fixed == now[i] && FreshDims::is_made(*name)) {
      fixed_.emplace(*name, before);
    } else if (at_fixed.is_constant()) {
      fail_unsupported("axis {} of '{}' has {} elements, which is {} at the sizes of the file, and not {}", i,
                       output.name, now[i].text(), at_fixed.text(), before.text());
    }
  }
}

/// Whether two expressions are equal wherever an open size is a multiple of what the file has: beyond that the model
/// itself may not run.
bool Opener::agree(const Dim& a, const Dim& b) const {
  for (const int64_t times : {1, 2, 3}) {
    DimMap sizes;
    for (const auto& [name, fixed] : fixed_) sizes.emplace(name, fixed * Dim(times));
    const Dim x = substituted(a, sizes), y = substituted(b, sizes);
    if (x.is_constant() && y.is_constant() && !(x == y)) return false;
  }
  return true;
}

void Opener::check_equal(const Node& node) {
  for (const auto& [a, b] : inference_.fresh().take_equal()) {
    if (!is_open(a) && !is_open(b)) continue;
    if (agree(a, b)) continue;
    const bool is_a = is_open(a);
    fail_unsupported("it takes tensors with a size of {} alone, and gets one of {}", (is_a ? b : a).text(),
                     (is_a ? a : b).text());
  }
  (void)node;
}

/// A node that has no dimension any more which counts samples has chosen one of them, or has summed over them.
void Opener::check_samples(const Node& node) {
  const auto has = [&](const Value* value, const std::string& name) {
    if (value == nullptr || !value->type.shape) return false;
    return std::any_of(value->type.shape->begin(), value->type.shape->end(),
                       [&](const Dim& size) { return has_symbol_of(size, {{name, Dim(1)}}); });
  };
  for (auto at = samples_.begin(); at != samples_.end();) {
    const std::string& name = *at;
    const bool comes_in = std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* value) {
      return has(value, name) && depends_on_data(value);
    });
    const bool stays = std::any_of(node.outputs().begin(), node.outputs().end(), [&](const Value* value) {
      return value != nullptr && (!value->type.shape || has(value, name) || !depends_on_data(value));
    });
    if (!comes_in || stays) {
      ++at;
      continue;
    }
    if (fixed_.at(name).is(1))
      fail_unsupported("it makes one of all {}, or takes one of them: what it gives has no such size any more", name);
    at = samples_.erase(at);
  }
}

void Opener::note_data(const Node& node) {
  bool is_data = std::any_of(node.inputs().begin(), node.inputs().end(),
                             [&](const Value* value) { return depends_on_data(value); });
  for (const GraphPtr& subgraph : subgraphs_of(node)) {
    for (const Value* output : subgraph->outputs()) is_data = is_data || depends_on_data(output);
  }
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    if (is_data && !output->known_ints && !output->constant)
      data_.insert(output);
    else
      data_.erase(output);
  }
}

/// A dimension that an input has too is made of the same parts.
void Opener::hand_on_parts(const Node& node) {
  for (const Value* output : node.outputs()) {
    if (output == nullptr || has_parts_.contains(output)) continue;
    parts_.erase(output);
    if (!output->type.shape) continue;
    std::vector<SizeParts> result(output->type.shape->size());
    bool has_any = false;
    for (size_t i = 0; i < result.size(); ++i) {
      const Dim& size = (*output->type.shape)[i];
      result[i] = {{size, fixed(size)}};
      if (!is_open(size)) continue;
      const SizeParts* best = nullptr;
      for (const Value* input : node.inputs()) {
        const auto known = input != nullptr ? parts_.find(input) : parts_.end();
        if (known == parts_.end() || !input->type.shape || known->second.size() != input->type.shape->size()) continue;
        for (size_t d = 0; d < known->second.size(); ++d) {
          if (!((*input->type.shape)[d] == size) || known->second[d].size() < 2) continue;
          if (best == nullptr || d == i) best = &known->second[d];
        }
      }
      if (best == nullptr) continue;
      result[i] = *best;
      has_any = true;
    }
    if (has_any) parts_[output] = std::move(result);
  }
}

/// What a loop carries grows to its open size in the first iteration: it has it from the start.
void Opener::follow_states(Node& loop) {
  if (!is_in_model(*loop.graph, *model_.graph)) return;
  const auto graphs = subgraphs_of(loop);
  if (graphs.size() != 1) return;
  const Graph& body = *graphs[0];
  const size_t skipped = loop.op == "Loop" ? 2 : 0;
  bool changes = false;
  for (size_t i = skipped; i < loop.inputs().size() && i < body.inputs().size(); ++i) {
    Value* state = loop.input(i);
    const size_t out = loop.op == "Loop" ? i - 1 : i;
    if (state == nullptr || !state->type.shape || depends_on_data(state) || out >= body.outputs().size()) continue;
    const Value* next = body.outputs()[out];
    const Type* was = fixed_types_.find(next);
    if (was == nullptr || was->shape != state->type.shape || !next->type.shape) continue;
    for (size_t d = 0; d < next->type.shape->size() && d < state->type.shape->size(); ++d) {
      if ((*next->type.shape)[d].is_constant() || !(*state->type.shape)[d].is_constant()) continue;
      std::vector<std::string> fitting;
      for (const std::string& name : samples_) {
        if (fixed_.at(name) == (*state->type.shape)[d]) fitting.push_back(name);
      }
      if (fitting.size() != 1) continue;
      View(*this, loop).grow(i, d, Dim::symbol(fitting[0]));
      state = loop.input(i);
      changes = true;
    }
  }
  if (changes) inference_.visit(loop);
}

/// Sizes that are open already get another name, wherever they stand.
void rename_sizes(Graph& graph, const DimMap& names) {
  if (names.empty()) return;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Value& input = *graph.inputs()[i];
    const Type renamed = substituted(input.type, names);
    if (renamed == input.type) continue;
    input.type = renamed;
    graph.input_declarations[i] = {};
  }
}

}  // namespace

std::vector<OpenedSize> open_sizes(Model& model, const std::vector<DynamicDim>& dims) {
  Graph& graph = *model.graph;
  std::map<std::string, int64_t> opened;
  std::set<std::string> first;
  std::vector<OpenedSize> result;
  DimMap names;
  std::vector<std::tuple<size_t, size_t, std::string>> places;
  for (const DynamicDim& dim : dims) {
    const size_t place = require_input(model, dim.input);
    const Value& input = *graph.inputs()[place];
    if (!input.type.shape) fail_invalid("input '{}' has no shape", dim.input);
    const auto rank = static_cast<int64_t>(input.type.shape->size());
    require(dim.axis >= -rank && dim.axis < rank, "input '{}' has {} dimensions, and none of number {}", dim.input,
            rank, dim.axis);
    require(dim.low >= 0 && (!dim.high || *dim.high >= dim.low), "the sizes from {} to {} are none", dim.low,
            dim.high.value_or(0));
    const auto axis = static_cast<size_t>(dim.axis < 0 ? dim.axis + rank : dim.axis);
    const Dim& size = (*input.type.shape)[axis];
    const auto fixed = size.constant();
    if (!fixed) {
      const auto name = size.symbol_name();
      if (name && !name->empty() && *name != dim.name)
        names.emplace(*name, Dim::symbol(dim.name));
      else
        places.emplace_back(place, axis, dim.name);
      continue;
    }
    const auto [at, is_new] = opened.emplace(dim.name, *fixed);
    require(at->second == *fixed, "'{}' is to be the name of a size that is {} and of one that is {}", dim.name,
            at->second, *fixed);
    if (axis == 0) first.insert(dim.name);
    places.emplace_back(place, axis, dim.name);
  }
  if (!opened.empty()) inline_functions(model);
  rename_sizes(graph, names);
  std::optional<Opener> opener;
  if (!opened.empty()) opener.emplace(model, opened, first);
  for (const auto& [place, axis, name] : places) {
    (*graph.inputs()[place]->type.shape)[axis] = Dim::symbol(name);
    graph.input_declarations[place] = {};
  }
  forget_declared_shapes(model);
  if (!opener) return {};
  const std::set<std::string> samples = opener->open();
  for (const auto& [name, fixed] : opened) result.push_back({name, fixed, samples.contains(name)});
  return result;
}

}  // namespace tonnx
