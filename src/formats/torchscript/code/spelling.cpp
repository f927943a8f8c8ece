// spelling.cpp - nodes by their schemas, or as the hooks of their rows say.
#include "formats/torchscript/code/spelling.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "ops/frame/emission.h"
#include "ops/frame/op_def.h"
#include "ops/frame/script_node.h"

namespace tonnx::torchscript {
namespace {

using Kind = Type::Kind;

int64_t memory_format(std::string_view name) {
  if (name == "contiguous_format") return 0;
  if (name == "channels_last") return 2;
  return name == "channels_last_3d" ? 3 : 1;
}

std::string quoted(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E)
      fail_unsupported("a text that is not plain ASCII has no form in TorchScript's code");
  }
  return python_string(text);
}

bool is_int_type(std::string_view type) { return type == "int" || type == "SymInt"; }

/// A node on its way to text.
class Spelling : public ScriptNode {
 public:
  Spelling(const Node& node, Context& context)
      : node_(node),
        context_(context),
        entry_(get_aten_op(node)),
        args_(node, entry_, [&](const Value* value, int) { return value_text(*value, context); }) {}

  std::string text() {
    const AtenOp& row = *entry_.op;
    if (row.script != nullptr) return row.script(*this);
    const std::string_view domain = node_.domain.view(), op = node_.op.view();
    if (domain == "aten") return call(op);
    const bool is_symbol = !row.python.empty() && std::ispunct(static_cast<unsigned char>(row.python[0])) != 0;
    if (domain == "_operator" && is_symbol) {
      if (entry_.signature.inputs.size() == 1) return fmt::format("{}{}", row.python, operand("a"));
      return fmt::format("{} {} {}", operand("a"), row.python, operand("b"));
    }
    if (domain == "tonnx" || domain == "_operator" || domain == "math" || domain == "torch")
      fail_unsupported("{} has no form in TorchScript", op);
    fail_unsupported("{}::{} has no place in a TorchScript file", domain, op);
  }

  const Emission& args() const override { return args_; }

  std::string call(std::string_view name) const override {
    std::vector<std::string> texts;
    bool gap = false, takes_tensor = false;
    for (const Param& param : entry_.signature.inputs) {
      takes_tensor = takes_tensor || param.type == "Tensor";
      const Attribute* given = node_.find_attribute(param.name);
      const bool is_flag = context_.in_module && (param.name == "training" || param.name == "train");
      if (is_flag && !args_.flag(param.name)) {
        texts.push_back(gap ? fmt::format("{}=self.training", param.name) : "self.training");
        continue;
      }
      if (given == nullptr || param.type == "Generator") {
        gap = true;
        if (param.name == "device" && !takes_tensor && !context_.device.empty())
          texts.push_back("device=" + context_.device);
        continue;
      }
      gap = gap || param.type == "ScalarType";  // a number, which could be taken for a size by its position
      std::string text = argument(given->value, param);
      texts.push_back(gap || param.keyword_only ? fmt::format("{}={}", param.name, text) : std::move(text));
    }
    return fmt::format("torch.{}({})", name, joined(texts));
  }

  std::string operand(std::string_view argument) const override {
    const Attribute* given = node_.find_attribute(argument);
    if (given == nullptr) fail_unsupported("{} lacks an argument", node_.op.view());
    const std::string text = plain(given->value, "");
    return text.starts_with('-') ? "(" + text + ")" : text;
  }

  std::string list(std::string_view argument) const override {
    const Param& param = entry_.signature.inputs[static_cast<size_t>(entry_.signature.find_input(argument))];
    return list(node_.find_attribute(argument)->value, param);
  }

  std::string plain(const AttrValue& value) const override {
    const bool is_list = value.get<AttrList>() || value.get<std::vector<int64_t>>() || value.get<std::vector<double>>();
    return is_list ? "[" + joined(*items(value, "")) + "]" : plain(value, "");
  }

  std::string condition(std::string_view argument) const override {
    return condition_text(*args_.value(argument), context_);
  }

  std::string variable(std::string_view argument) const override { return context_.name_of(args_.value(argument)); }
  std::string result_type() const override { return type_text(*node_.output(0)); }
  std::string dtype(DType dtype) const override { return std::to_string(number_of(dtype)); }
  std::string device() const override { return context_.device.empty() ? "" : ", device=" + context_.device; }

  std::string tensor_of(const std::string& numbers) const override {
    const Attribute* given = node_.find_attribute("dtype");
    const auto* dtype = given ? given->value.get<DType>() : nullptr;
    return fmt::format("torch.tensor({}, dtype={}{})", numbers, number_of(dtype ? *dtype : DType::Int64), device());
  }

  std::string call_own(std::string_view name, std::string_view definition,
                       const std::vector<std::string>& arguments) override {
    context_.functions.emplace(name, definition);
    return fmt::format("__torch__.{}({})", name, joined(arguments));
  }

 private:
  std::string number(const Value& value, std::string_view type) const {
    std::string text = value_text(value, context_);
    if (type == "float" && value.type.kind == Kind::Int) return fmt::format("float({})", text);
    if (is_int_type(type) && value.type.is_tensor()) return fmt::format("int({})", text);
    return text;
  }

  std::string plain(const AttrValue& value, std::string_view type) const {
    if (value.is_none()) return "None";
    if (const auto* at = value.get<Operand>()) return number(*node_.input(at->index), type);
    if (const auto* b = value.get<bool>()) {
      if (is_int_type(type)) return *b ? "1" : "0";
      return *b ? "True" : "False";
    }
    if (const auto* i = value.get<int64_t>()) {
      if (type == "bool") return *i != 0 ? "True" : "False";
      return type == "float" ? float_text(static_cast<double>(*i)) : std::to_string(*i);
    }
    if (const auto* f = value.get<double>()) return float_text(*f);
    if (const auto* d = value.get<DType>()) return std::to_string(number_of(*d));
    if (const auto* s = value.get<std::string>()) {
      if (type == "MemoryFormat") return std::to_string(memory_format(*s));
      if (type == "Device") return fmt::format("torch.device({})", quoted(*s));
      if (type == "Layout") return "0";
      return quoted(*s);
    }
    fail_unsupported("an argument of {} has no form in TorchScript", node_.op.view());
  }

  /// The items of a list; nothing where the argument is one value that is the list.
  std::optional<std::vector<std::string>> items(const AttrValue& value, std::string_view type) const {
    std::vector<std::string> texts;
    if (const auto* at = value.get<Operand>()) {
      const Kind kind = node_.input(at->index)->type.kind;
      if (kind != Kind::Int && kind != Kind::Float && kind != Kind::Bool) return std::nullopt;
      texts.push_back(plain(value, type));
    } else if (const auto* ints = value.get<std::vector<int64_t>>()) {
      for (const int64_t i : *ints) texts.push_back(plain(i, type));
    } else if (const auto* floats = value.get<std::vector<double>>()) {
      for (const double f : *floats) texts.push_back(float_text(f));
    } else if (const auto* list = value.get<AttrList>()) {
      for (const AttrValue& item : *list) texts.push_back(plain(item, type));
    } else {
      texts.push_back(plain(value, type));
    }
    return texts;
  }

  std::string list(const AttrValue& value, const Param& param) const {
    if (value.is_none()) return "None";
    const auto texts = items(value, param.type);
    if (!texts) return value_text(*node_.input(value.get<Operand>()->index), context_);
    const std::string text = "[" + joined(*texts) + "]";
    if (param.type == "Tensor") {
      const bool has_none = std::find(texts->begin(), texts->end(), "None") != texts->end();
      if (has_none) return fmt::format("annotate(List[Optional[Tensor]], {})", text);
      return texts->empty() ? "annotate(List[Tensor], [])" : text;
    }
    if (!texts->empty()) return text;
    return fmt::format("annotate(List[{}], [])", is_int_type(param.type) ? "int" : param.type);
  }

  std::string argument(const AttrValue& value, const Param& param) const {
    if (param.is_list) return list(value, param);
    const auto* parts = value.get<std::vector<double>>();
    if (parts != nullptr && parts->size() == 2)
      return fmt::format("torch.Complex({}, {})", float_text((*parts)[0]), float_text((*parts)[1]));
    return plain(value, param.type);
  }

  const Node& node_;
  Context& context_;
  const AtenOpEntry& entry_;
  Emission args_;
};

std::string type_text(const Type& type) {
  switch (type.kind) {
    case Kind::Int: return "int";
    case Kind::Float: return "float";
    case Kind::Bool: return "bool";
    case Kind::IntList: return "List[int]";
    case Kind::Sequence: return fmt::format("List[{}]", type.elements.empty() ? "Tensor" : type_text(type.elements[0]));
    case Kind::Optional:
      return fmt::format("Optional[{}]", type.elements.empty() ? "Tensor" : type_text(type.elements[0]));
    case Kind::Map: fail_unsupported("a map has no form in TorchScript");
    case Kind::SparseTensor: fail_unsupported("a sparse tensor has no form in TorchScript");
    default: return "Tensor";
  }
}

}  // namespace

std::string type_text(const Value& value) {
  const Node* from = value.producer;
  if (value.type.kind == Kind::Unknown && from != nullptr && from->domain == "tonnx") {
    if (from->op == "none") return "Optional[Tensor]";
    if (get_aten_op(*from).signature.outputs[0].type == "list") return "List[Tensor]";
    const char* inner = from->op == "cond" ? "then_branch" : nullptr;
    if (inner != nullptr) {
      const auto& branch = **from->find_attribute(inner)->value.get<GraphPtr>();
      return type_text(*branch.outputs()[value.output_index]);
    }
  }
  if (from != nullptr && from->domain == "tonnx" && from->op == "none" && value.type.kind != Kind::Optional)
    return fmt::format("Optional[{}]", type_text(value.type));
  return type_text(value.type);
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".";
  return text;
}

std::string unwrapped(const std::string& name, std::string_view type) {
  constexpr std::string_view kOptional = "Optional[";
  if (!type.starts_with(kOptional)) return name;
  return fmt::format("unchecked_cast({}, {})", type.substr(kOptional.size(), type.size() - kOptional.size() - 1), name);
}

std::string value_text(const Value& value, const Context& context) {
  return unwrapped(context.name_of(&value), context.type_of(&value));
}

std::string condition_text(const Value& value, const Context& context) {
  std::string text = value_text(value, context);
  return value.type.kind == Kind::Bool ? text : fmt::format("bool({})", text);
}

std::string node_text(const Node& node, Context& context) { return Spelling(node, context).text(); }

bool gives_list(const Node& node) {
  if (node.domain != "aten") return false;
  const auto& outputs = get_aten_op(node).signature.outputs;
  return outputs.size() == 1 && outputs[0].is_list && outputs[0].type == "Tensor";
}

}  // namespace tonnx::torchscript
