// opener.cpp - walks through a model whose inputs have open sizes, and lets the sizes that the file fixes follow them.
#include "convert/opening/opener.h"

#include <algorithm>

#include "base/error.h"
#include "ops/frame/node_facts.h"

namespace tonnx {
namespace {

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

bool has_symbol(const Dim& size, const std::string& name) { return has_symbol_of(size, {{name, Dim(1)}}); }

}  // namespace

Opener::Opener(Model& model, FixedTypes types, Choices& choices, const std::map<std::string, int64_t>& opened,
               std::set<std::string> samples)
    : model_(model),
      fixed_types_(std::move(types)),
      choices_(choices),
      samples_(std::move(samples)),
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

std::set<std::string> Opener::open() {
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

bool Opener::is_open(const Dim& size) const { return !size.is_constant() && has_symbol_of(size, fixed_); }

bool Opener::depends_on_data(const Value* value) const {
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

std::optional<SizeValues::Source> Opener::source_of(const std::string& symbol) const {
  const auto at = sources_.find(symbol);
  return at == sources_.end() ? std::nullopt : std::optional(at->second);
}

void Opener::note_sources(Value& value) {
  if (value.graph != model_.graph.get() || !value.type.is_tensor() || !value.type.shape) return;
  for (size_t i = 0; i < value.type.shape->size(); ++i) {
    if (const auto name = (*value.type.shape)[i].symbol_name())
      sources_.emplace(*name, std::pair(&value, static_cast<int64_t>(i)));
  }
}

void Opener::infer_made(Node& node) {
  const bool was_busy = std::exchange(is_busy_, true);
  inference_.visit(node);
  is_busy_ = was_busy;
  note_size_values(node);
}

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
    const bool is_attribute = node().find_attribute(name) != nullptr ||
                              (name == "axes" && version < 13 && input == 1) || (name == "split" && version < 13);
    if (is_attribute) {
      if (!is_constant)
        refuse(
            fmt::format("its sizes are an attribute, which holds numbers alone; tonnx convert --opset 13 first "
                        "makes it an input"));
      node().set_attribute(name, std::move(numbers), AttrType::Ints);
      node().mark_changed();
      return;
    }
    const std::string hint = fmt::format("{}_{}", node().output(0) ? node().output(0)->name : node().name, name);
    Value* list =
        is_constant ? o_.sizes_.ints(*node().graph, std::move(numbers), hint) : o_.sizes_.list(elements, node(), hint);
    if (list == nullptr)
      refuse("what it needs cannot be computed in the model's opset; tonnx convert --opset 13 first");
    const Value* old = node().input(input);
    if (old != nullptr && old->type.dtype == DType::Int32)
      list = o_.sizes_.add(node(), "Cast", {list}, {Attribute("to", static_cast<int64_t>(DType::Int32))}, hint);
    node().set_input(input, list);
  }

  bool is_resized(size_t input, size_t axis) const override {
    const Value* value = node().input(input);
    const Node* resize = producer_of(value, "Resize");
    if (resize == nullptr) return false;
    if (o_.resized_.contains({value, axis})) return true;
    const Shape* from =
        resize->input(0) != nullptr && resize->input(0)->type.shape ? &*resize->input(0)->type.shape : nullptr;
    const auto list = sizes_of(*resize);
    const auto place = list ? place_in_list(*resize, axis) : std::nullopt;
    return place && from != nullptr && axis < from->size() && (*from)[axis].is_constant() &&
           (*list)[*place].is_constant() && !((*list)[*place] == (*from)[axis]);
  }

  void resize(size_t input, size_t axis, const Dim& size) override {
    Value* value = node().input(input);
    Node& old = *value->producer;
    auto list = sizes_of(old);
    const auto place = list ? place_in_list(old, axis) : std::nullopt;
    Value* sizes = nullptr;
    if (place) {
      (*list)[*place] = size;
      sizes = o_.sizes_.list(*list, node(), value->name + "_sizes");
    }
    if (sizes == nullptr) refuse(fmt::format("'{}' cannot be resized to a size of {}", value->name, size.text()));
    std::vector<Value*> inputs = old.inputs();
    inputs[kResizeSizes] = sizes;
    Value* made = o_.sizes_.add(node(), "Resize", inputs, old.attributes, value->name + "_open");
    if (const Type* fixed = o_.fixed_types_.find(value)) o_.fixed_types_.learn(made->name, *fixed);
    if (o_.depends_on_data(value)) o_.data_.insert(made);
    const Shape& shape = *value->type.shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i != axis && o_.resized_.contains({value, i})) o_.resized_.emplace(made, i);
    }
    node().set_input(input, made);
  }

  void note_resized(size_t axis) override { o_.resized_.emplace(node().output(0), axis); }

  void grow(size_t input, size_t axis, const Dim& size, const SizeParts& parts) override {
    Value* value = node().input(input);
    Value* longer = o_.grower_.grown(value, axis, size, node());
    if (longer == nullptr && parts.size() > 1 && !depends_on_data(input))
      longer = o_.grower_.repeated_for_samples(value, axis, parts, node());
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
    Value* made =
        o_.sizes_.add(node(), "Transpose", {value}, {Attribute("perm", permutation)}, value->name + "_turned");
    o_.fixed_types_.learn(made->name, Type::tensor(value->type.dtype, turned));
    o_.parts_[made] = std::move(now);
    if (o_.depends_on_data(value)) o_.data_.insert(made);
    node().set_input(input, made);
  }

  size_t choose(std::string_view key, size_t ways) override { return o_.choices_.choose(key, ways); }

  void keep_apart(size_t input, size_t axis) const override {
    const Value* value = node().input(input);
    if (!o_.depends_on_data(value) || !value->type.shape) return;
    for (const std::string& name : o_.samples_) {
      if (has_symbol((*value->type.shape)[axis], name))
        refuse(fmt::format("it computes across axis {} of '{}', which holds all {}", axis, value->name, name));
    }
  }

  bool follows_sizes(const Value* value) const override { return o_.size_values_.contains(value); }

  Value* add(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes) override {
    const std::string hint = node().output(0) != nullptr ? node().output(0)->name : node().name;
    return o_.sizes_.add(node(), op, std::move(inputs), std::move(attributes), hint + "_" + std::string(op));
  }

  Value* ints(std::vector<int64_t> elements, std::vector<int64_t> dims) override {
    auto tensor = std::make_shared<Tensor>(*make_ints(std::move(elements)));
    tensor->dims = std::move(dims);
    return o_.sizes_.constant(*node().graph, std::move(tensor), "places");
  }

  Value* count_up(const Dim& count, const Dim& step) override {
    constexpr int64_t kRange = 11;
    if (o_.sizes_.opset() < kRange)
      refuse("its indices cannot follow in the model's opset; tonnx convert --opset 13 first");
    Value* end = o_.sizes_.scalar(count * step, node(), "end");
    Value* each = o_.sizes_.scalar(step, node(), "step");
    if (end == nullptr || each == nullptr) refuse("its indices depend on sizes that nothing in the model gives");
    return add("Range", {ints({0}, {}), end, each}, {});
  }

 protected:
  const Type* fixed_type(const Value* value) const override { return o_.fixed_types_.find(value); }

 private:
  static constexpr size_t kResizeSizes = 3;

  static std::optional<Dims> sizes_of(const Node& resize) {
    const Value* list = resize.input(kResizeSizes);
    return list != nullptr ? find_dims(*list) : std::nullopt;
  }

  /// Which element of a Resize's sizes is that of the axis.
  static std::optional<size_t> place_in_list(const Node& resize, size_t axis) {
    const auto axes = ints_of(resize, "axes");
    if (!axes) return axis;
    const auto rank = resize.input(0)->type.rank();
    for (size_t i = 0; rank && i < axes->size(); ++i) {
      if (from_front((*axes)[i], *rank) == static_cast<int64_t>(axis)) return i;
    }
    return std::nullopt;
  }

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
                 check_sizes(*output);
                 note_sources(*output);
               }
               note_size_values(node);
               check_equal();
               check_samples(node);
               hand_on_parts(node);
             });
}

/// What the node gives is, at the sizes of the file, what it gave there.
void Opener::check_sizes(Value& output) {
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

void Opener::check_equal() {
  for (const auto& [a, b] : inference_.fresh().take_equal()) {
    if (!is_open(a) && !is_open(b)) continue;
    if (agree(a, b)) continue;
    const bool is_a = is_open(a);
    fail_unsupported("it takes tensors with a size of {} alone, and gets one of {}", (is_a ? b : a).text(),
                     (is_a ? a : b).text());
  }
}

/// Whether the output has as many elements for each sample, whatever their number is, as far as the sizes tell.
bool Opener::is_one_per_sample(const Value& output, const std::string& name) const {
  if (!output.type.shape) return true;
  const Dim count = count_of(*output.type.shape);
  const auto at = [&](int64_t times) {
    DimMap sizes = fixed_;
    sizes[name] = fixed_.at(name) * Dim(times);
    return substituted(count, sizes);
  };
  const Dim once = at(1);
  if (!once.is_constant()) return true;
  return at(2) == once * Dim(2) && at(3) == once * Dim(3);
}

/// A node that gets one element for each sample gives one for each, or it has chosen one, or joined them.
void Opener::check_samples(const Node& node) {
  const auto has = [&](const Value* value, const std::string& name) {
    return value != nullptr && value->type.shape &&
           std::any_of(value->type.shape->begin(), value->type.shape->end(),
                       [&](const Dim& size) { return has_symbol(size, name); });
  };
  for (auto at = samples_.begin(); at != samples_.end();) {
    const std::string& name = *at;
    const bool comes_in = std::any_of(node.inputs().begin(), node.inputs().end(),
                                      [&](const Value* value) { return has(value, name) && depends_on_data(value); });
    const bool stays = !comes_in || std::all_of(node.outputs().begin(), node.outputs().end(), [&](const Value* value) {
      return value == nullptr || !is_used(value) || !depends_on_data(value) || is_one_per_sample(*value, name);
    });
    if (stays) {
      ++at;
      continue;
    }
    if (fixed_.at(name).is(1))
      fail_unsupported("it joins all {}, or takes one of them: what it gives is not one for each any more", name);
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

/// A size is an element of the shape of an open tensor, and what is computed of sizes follows them. A tensor that only
/// has the size follows nothing.
void Opener::note_size_values(const Node& node) {
  const auto follows = [&](const Value* value) { return value != nullptr && size_values_.contains(value); };
  bool result = false;
  if (node.op == "Shape" || node.op == "Size") {
    const Value* input = node.input(0);
    result =
        input != nullptr && (!input->type.shape || std::any_of(input->type.shape->begin(), input->type.shape->end(),
                                                               [&](const Dim& size) { return is_open(size); }));
  } else if (node.op == "Reshape" || node.op == "Expand" || node.op == "Tile") {
    result = follows(node.input(0));
  } else if (node.op != "ConstantOfShape") {
    result = std::any_of(node.inputs().begin(), node.inputs().end(), follows);
  }
  for (const Value* output : node.outputs()) {
    if (output == nullptr || !result || output->constant) continue;
    const bool is_fixed = output->known_ints && std::none_of(output->known_ints->begin(), output->known_ints->end(),
                                                             [&](const Dim& element) { return is_open(element); });
    if (!is_fixed) size_values_.insert(output);
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
      View(*this, loop).grow(i, d, Dim::symbol(fitting[0]), {});
      state = loop.input(i);
      changes = true;
    }
  }
  if (changes) inference_.visit(loop);
}

}  // namespace tonnx
