// expressions.cpp - puts together the text of nodes: functions, calls of submodules, names of variables.
#include "formats/python/statements/expressions.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/python/control_flow/control_flow.h"
#include "modules/loops.h"
#include "modules/variants.h"

namespace tonnx::python {

namespace {

bool is_call_module(const Node& node) { return is_tonnx(node, "call_module"); }

}  // namespace

bool is_call(const Node& node) {
  return is_call_module(node) || is_call_part(node) || is_call_each(node) || is_optional_add(node);
}

const Value* Scope::find_turned(const Node& node) const {
  const bool is_turned = !turned.empty() && node.inputs().size() == 1 && turned.contains(node.input(0));
  return is_turned && swaps_dims(node) ? node.input(0) : nullptr;
}

bool Expressions::is_module(const Node& node) const {
  return is_call(node) || scope_.tree.submodule_of.contains(&node);
}

bool gives_list_of_one(const Node& node) {
  const AtenOpEntry* entry = find_aten_op(node);
  return node.outputs().size() == 1 && entry != nullptr && entry->signature.outputs.size() == 1 &&
         entry->signature.outputs[0].is_list && entry->signature.outputs[0].type == "Tensor";
}

bool Expressions::is_submodule_weight(const Node& node, const Value* value) const {
  const auto module = scope_.tree.submodule_of.find(&node);
  if (module == scope_.tree.submodule_of.end()) return false;
  const std::vector<std::string>& given = scope_.tree.submodules[module->second].spec.inputs;
  for (const Attribute& argument : node.attributes) {
    const auto* operand = argument.value.get<Operand>();
    const bool is_it = operand && node.input(operand->index) == value;
    if (is_it && std::find(given.begin(), given.end(), argument.name) != given.end()) return false;
    const auto* list = argument.value.get<AttrList>();
    if (list != nullptr && std::any_of(list->begin(), list->end(), [&](const AttrValue& each) {
          const auto* at = each.get<Operand>();
          return at && node.input(at->index) == value;
        }))
      return false;
  }
  return true;
}

bool Expressions::is_tensor_counter(const Value* value) const {
  return value == tensor_counter_ || (outer_ != nullptr && outer_->is_tensor_counter(value));
}

std::string Expressions::text_of(const Value* value, int place) const {
  if (value->constant != nullptr) return scope_.constants.at(value);
  if (nesting_.is_inside(value)) {
    const std::pair<std::string, int>* known = nesting_.find_text(value->producer);
    auto [text, binding] = known != nullptr ? *known : expression(*value->producer);
    if (gives_list_of_one(*value->producer)) {
      text = (binding < precedence::kAtom ? "(" + text + ")" : text) + "[0]";
      binding = precedence::kAtom;
    }
    return binding < place ? "(" + text + ")" : text;
  }
  const std::string* name = variables_.find(value);
  if (name != nullptr) return *name;
  return is_number(*value) ? number_hint(*value) : "xx";  // before names are given, a text of usual length
}

std::string Expressions::spelled_with(const Node& node, const std::function<std::string(const Value*)>& mark) const {
  const auto text = [&](const Value* value, int place) {
    std::string marked = mark(value);
    return marked.empty() ? text_of(value, place) : marked;
  };
  const AtenOpEntry& entry = get_aten_op(node);
  return spell(Emission(node, entry, text, scope_.device, [](const Value*) { return false; }), *entry.op).first;
}

std::string Expressions::external_call(const Node& node) const {
  std::vector<std::string> arguments;
  for (const AttrValue& argument : *node.find_attribute("arguments")->value.get<AttrList>()) {
    const auto* operand = argument.get<Operand>();
    arguments.push_back(operand ? text_of(node.input(operand->index)) : "None");
  }
  const auto index = static_cast<size_t>(*node.find_attribute("index")->value.get<int64_t>());
  return fmt::format("self.{}({})", scope_.tree.external_names[index], joined(arguments));
}

std::string Expressions::part_call(const Node& node) const {
  std::vector<std::string> arguments;
  for (const Value* input : node.inputs()) arguments.push_back(text_of(input));
  return fmt::format("self.{}({})", scope_.tree.submodules[scope_.tree.submodule_of.at(&node)].name, joined(arguments));
}

std::string Expressions::submodule_call(const Submodule& submodule, const Emission& emission) const {
  std::vector<std::string> arguments;
  for (const std::string& input : submodule.spec.inputs) {
    const ParsedSignature& signature = emission.signature();
    const Param& param = signature.inputs[static_cast<size_t>(signature.find_input(input))];
    const bool is_tuple = param.is_list && param.type == "Tensor";
    const std::string text = is_tuple ? python_tuple(emission.items(input)) : emission.text(input);
    arguments.push_back(input == "attn_mask" ? "attn_mask=" + text : text);
  }
  if (submodule.spec.type != "nn.MultiheadAttention")
    return fmt::format("self.{}({})", submodule.name, joined(arguments));
  arguments.emplace_back("need_weights=False");
  return fmt::format("self.{}({})[0]", submodule.name, joined(arguments));  // beside the weights, which are none
}

std::pair<std::string, int> Expressions::expression(const Node& node) const {
  if (is_tonnx(node, "int_scalar") && node.input(0) != nullptr && is_tensor_counter(node.input(0)))
    return {text_of(node.input(0)), precedence::kAtom};
  if (is_call_module(node)) return {external_call(node), precedence::kAtom};
  if (is_call_part(node)) return {part_call(node), precedence::kAtom};
  if (is_optional_add(node)) {
    const std::string result = text_of(node.input(1 - shortcut_input(node)));
    return {fmt::format("{} + {} if self.shortcut else {}", text_of(node.input(0)), text_of(node.input(1)), result), 0};
  }
  if (const Value* turned = scope_.find_turned(node)) return {scope_.turned.at(turned), precedence::kAtom};
  const AtenOpEntry& entry = get_aten_op(node);
  const auto text = [this](const Value* value, int place) { return text_of(value, place); };
  const auto is_inside = [this](const Value* value) {
    return nesting_.is_inside(value) && !is_module(*value->producer);
  };
  const Emission emission(node, entry, text, scope_.device, is_inside);
  const auto module = scope_.tree.submodule_of.find(&node);
  if (module == scope_.tree.submodule_of.end()) return spell(emission, *entry.op);
  return {submodule_call(scope_.tree.submodules[module->second], emission), precedence::kAtom};
}

}  // namespace tonnx::python
