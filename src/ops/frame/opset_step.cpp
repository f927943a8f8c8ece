// opset_step.cpp - edits that steps of the opset history are made of.
#include "ops/frame/opset_step.h"

#include <algorithm>

#include "base/budget.h"
#include "base/error.h"
#include "ops/frame/node_view.h"

namespace tonnx {

const OpsetStep* next_step(const OnnxOpEntry& entry, int64_t version) {
  const auto& history = entry.op->history;
  const auto at =
      std::find_if(history.begin(), history.end(), [&](const OpsetStep& step) { return step.to > version; });
  return at == history.end() ? nullptr : &*at;
}

int64_t OnnxEdit::i(std::string_view attribute, int64_t otherwise) const {
  const Attribute* found = node_->find_attribute(attribute);
  const auto* value = found ? found->value.get<int64_t>() : nullptr;
  require(found == nullptr || value != nullptr, "attribute '{}' is of the wrong type", attribute);
  return value ? *value : otherwise;
}

std::optional<std::vector<int64_t>> OnnxEdit::find_ints(std::string_view attribute) const {
  const Attribute* found = node_->find_attribute(attribute);
  if (found == nullptr) return std::nullopt;
  const auto* value = found->value.get<std::vector<int64_t>>();
  require(value != nullptr, "attribute '{}' is of the wrong type", attribute);
  return *value;
}

std::optional<int64_t> OnnxEdit::rank(size_t input) const {
  const Value* value = node_->input(input);
  return value ? value->type.rank() : std::nullopt;
}

namespace {

/// Going down nothing has been inferred, so that the output of a Constant node is not yet known as one.
TensorPtr find_constant(const Value* value) {
  if (value == nullptr || value->constant) return value ? value->constant : nullptr;
  const Node* producer = value->producer;
  const bool is_constant = producer && producer->domain.empty() && producer->op == "Constant";
  return is_constant ? find_tensor_of_constant(*producer) : nullptr;
}

}  // namespace

std::optional<std::vector<int64_t>> OnnxEdit::const_ints(size_t input) const {
  const TensorPtr constant = find_constant(node_->input(input));
  return constant ? ints_of(*constant) : std::nullopt;
}

std::optional<std::vector<double>> OnnxEdit::const_floats(size_t input) const {
  const TensorPtr constant = find_constant(node_->input(input));
  return constant ? floats_of(*constant) : std::nullopt;
}

Value* OnnxEdit::constant(TensorPtr tensor, std::string_view hint) {
  budget().take(Resource::Memory, static_cast<int64_t>(tensor->data.size()));
  const std::string base = node_->output(0) ? node_->output(0)->name : node_->name;
  return graph().add_initializer(fmt::format("{}_{}", base, hint), std::move(tensor));
}

Value* OnnxEdit::ints(std::vector<int64_t> values, std::string_view hint) {
  return constant(make_ints(std::move(values)), hint);
}

Node* OnnxEdit::make(std::string_view op, const std::vector<Value*>& inputs, std::vector<Attribute> attributes,
                     Node* before) {
  const size_t dot = op.rfind('.');
  const bool is_standard = dot == std::string_view::npos;
  Node* made = graph().add_node(is_standard ? "" : op.substr(0, dot), is_standard ? op : op.substr(dot + 1), before);
  made->version = !is_standard ? 1 : upwards_ ? to_ : to_ - 1;
  if (!node_->name.empty()) {
    const auto same =
        std::count_if(created_.begin(), created_.end(), [&](const Node* each) { return each->op == made->op; });
    made->name = same == 0 ? fmt::format("{}/{}", node_->name, op) : fmt::format("{}/{}_{}", node_->name, op, same + 1);
    budget().take(Resource::Text, static_cast<int64_t>(made->name.size()));
  }
  for (Attribute& attribute : attributes)
    made->set_attribute(attribute.name, std::move(attribute.value), attribute.type);
  for (Value* input : inputs) made->add_input(input);
  created_.push_back(made);
  return made;
}

Node* OnnxEdit::node_before(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes,
                            size_t outputs) {
  Node* made = make(op, inputs, std::move(attributes), node_);
  const std::string base = node_->output(0) ? node_->output(0)->name : "value";
  for (size_t i = 0; i < outputs; ++i) {
    graph().add_output_to(made, graph().unique_name(fmt::format("{}_{}", base, made->op.view())));
  }
  return made;
}

Value* OnnxEdit::before(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes) {
  return node_before(op, std::move(inputs), std::move(attributes))->output(0);
}

bool OnnxEdit::replace_with(const std::vector<Value*>& results) {
  for (size_t i = 0; i < node_->outputs().size(); ++i) {
    Value* old_output = node_->output(i);
    if (old_output == nullptr) continue;
    Value* result = i < results.size() ? results[i] : nullptr;
    if (result == nullptr) {
      if (!old_output->uses.empty()) fail_step(*node_, fmt::format("output {} cannot be given", i));
      continue;
    }
    const bool is_own = result->producer != nullptr &&
                        std::find(created_.begin(), created_.end(), result->producer) != created_.end() &&
                        std::count(results.begin(), results.end(), result) == 1;
    if (!is_own) {
      result = before("Identity", {result});
    }
    Node* producer = result->producer;
    const size_t index = result->output_index;
    graph().replace_uses(result, old_output);
    graph().move_output(old_output, producer, index);
  }
  is_replaced_ = true;
  return true;
}

Node* OnnxEdit::after(size_t i, std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes) {
  Value* old_output = node_->output(i);
  require(old_output != nullptr, "output {} is missing", i);
  Node* made = make(op, {}, std::move(attributes), node_->next);
  graph().move_output(old_output, made, 0);
  Value* fresh = graph().add_output_to(node_, graph().unique_name(old_output->name + "_before_" + std::string(op)));
  const size_t appended = node_->outputs().size() - 1;
  if (appended != i) {
    graph().move_output(fresh, node_, i);
    node_->resize_outputs(appended);
  }
  fresh->type.dtype = old_output->type.dtype;
  for (size_t k = 0; k < inputs.size(); ++k) made->set_input(k, k == 0 && inputs[0] == nullptr ? fresh : inputs[k]);
  node_->mark_changed();
  return made;
}

void fail_step(const Node& node, const std::string& why) {
  const std::string name = node.name.empty() ? std::string(node.output(0) ? node.output(0)->name : "") : node.name;
  throw Error(ErrorKind::Unsupported, error_text("node '{}' ({}): {}", name, node.op.view(), why));
}

void drop_attribute(OnnxEdit& edit, std::string_view name) {
  if (edit.node().find_attribute(name) != nullptr) edit.node().take_attribute(name);
}

void attribute_to_input(OnnxEdit& edit, std::string_view name, size_t input) {
  const auto values = edit.find_ints(name);
  if (!values) return;
  edit.node().take_attribute(name);
  edit.node().set_input(input, edit.ints(*values, name));
}

void input_to_attribute(OnnxEdit& edit, std::string_view name, size_t input) {
  if (edit.node().input(input) == nullptr) return;
  const auto values = edit.const_ints(input);
  if (!values) edit.cannot("input '{}' is not constant, and is an attribute in the older opset", name);
  edit.node().resize_inputs(input);
  edit.node().set_attribute(name, *values, AttrType::Ints);
}

void axes_from_front(OnnxEdit& edit, std::string_view name, bool added) {
  const Attribute* attribute = edit.node().find_attribute(name);
  if (attribute == nullptr) return;
  const bool is_list = attribute->value.get<std::vector<int64_t>>() != nullptr;
  std::vector<int64_t> axes = is_list ? *edit.find_ints(name) : std::vector{edit.i(name, 0)};
  if (std::none_of(axes.begin(), axes.end(), [](int64_t axis) { return axis < 0; })) return;
  const auto rank = edit.rank(0);
  if (!rank) edit.cannot("an axis counts from the back, and the rank is not known");
  for (int64_t& axis : axes) {
    if (axis < 0) axis += *rank + (added ? static_cast<int64_t>(axes.size()) : 0);
  }
  edit.node().set_attribute(name, is_list ? AttrValue(axes) : AttrValue(axes[0]));
}

void require_default(OnnxEdit& edit, std::string_view name, int64_t otherwise) {
  if (edit.i(name, otherwise) != otherwise) edit.cannot("the older opset has no attribute '{}'", name);
  drop_attribute(edit, name);
}

Value* with_trailing_ones(OnnxEdit& edit, Value* value, int64_t rank, int64_t count) {
  if (count <= 0) return value;
  if (value->constant) {
    auto reshaped = std::make_shared<Tensor>(*value->constant);
    reshaped->dims.insert(reshaped->dims.end(), static_cast<size_t>(count), 1);
    reshaped->source = {};
    return edit.graph().add_initializer(value->name, std::move(reshaped));
  }
  std::vector<int64_t> axes;
  for (int64_t d = rank; d < rank + count; ++d) axes.push_back(d);
  return edit.before("Unsqueeze", {value}, {{"axes", std::move(axes), AttrType::Ints, {}, {}}});  // as before opset 13
}

void up_legacy_broadcast(OnnxEdit& edit) {
  if (edit.i("broadcast", 0) != 0 && edit.node().find_attribute("axis") != nullptr && edit.node().input(1) != nullptr) {
    int64_t axis = edit.i("axis", 0);
    const auto left = edit.rank(0), right = edit.rank(1);
    if (!left || !right) edit.cannot("the ranks of its inputs are not known, so that its axis says nothing");
    if (axis == -1) axis = *left - *right;  // the last dimensions, as without an axis
    require(axis >= 0 && axis <= *left, "axis {} is out of range for rank {}", axis, *left);
    edit.node().set_input(1, with_trailing_ones(edit, edit.node().input(1), *right, *left - *right - axis));
  }
  drop_attribute(edit, "broadcast");
  drop_attribute(edit, "axis");
}

void down_legacy_broadcast(OnnxEdit& edit) {
  const Value* a = edit.node().input(0);
  const Value* b = edit.node().input(1);
  if (!a || !b || !a->type.shape || !b->type.shape) edit.cannot("the shapes of its inputs are not known");
  if (*a->type.shape == *b->type.shape) return;
  // Opset 6 stretches the right side only, and matches it with the last dimensions of the left.
  const Shape& left = *a->type.shape;
  const Shape& right = *b->type.shape;
  bool fits = right.size() <= left.size();
  for (size_t i = 0; fits && i < right.size(); ++i) {
    const Dim& x = left[left.size() - right.size() + i];
    fits = x == right[i] || right[i].is(1);
  }
  if (!fits) edit.cannot("opset 6 cannot broadcast {} and {}", text_of(left), text_of(right));
  edit.node().set_attribute("broadcast", int64_t{1});
}

namespace {

void refuse_kind(OnnxEdit& edit, Type::Kind kind, std::string_view name) {
  const Node& node = edit.node();
  const auto is_such = [&](const Value* value) { return value != nullptr && value->type.kind == kind; };
  if (std::any_of(node.inputs().begin(), node.inputs().end(), is_such) ||
      std::any_of(node.outputs().begin(), node.outputs().end(), is_such))
    edit.cannot("the older opset takes no {}", name);
}

}  // namespace

void down_without_sequences(OnnxEdit& edit) { refuse_kind(edit, Type::Kind::Sequence, "sequence"); }

void down_without_optionals(OnnxEdit& edit) { refuse_kind(edit, Type::Kind::Optional, "optional"); }

}  // namespace tonnx
