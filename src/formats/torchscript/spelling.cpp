// spelling.cpp - calls of aten's operators by their schemas, arithmetic on numbers, and lists.
#include "formats/torchscript/spelling.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "ops/frame/emission.h"
#include "ops/frame/op_def.h"

namespace tonnx::torchscript {
namespace {

using Kind = Type::Kind;

constexpr int kInt64 = 4;

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
class Spelling {
 public:
  Spelling(const Node& node, Context& context)
      : node_(node),
        context_(context),
        entry_(get_aten_op(node)),
        args_(node, entry_, [&](const Value* value, int) { return value_text(*value, context); }) {}

  std::string text() {
    const std::string_view domain = node_.domain.view(), op = node_.op.view();
    if (domain == "tonnx") return own_text(op);
    if (domain == "_operator" || domain == "math" || domain == "torch") return number_op(op);
    if (domain != "aten") fail_unsupported("{}::{} has no place in a TorchScript file", domain, op);
    if (op == "item") return number_of_tensor();
    if (op == "sym_size") return call("size");
    if (op == "sym_numel") return call("numel");
    if (op == "sym_stride") return call("stride");
    if (op == "sym_storage_offset") return call("storage_offset");
    if (op == "view" && node_.overload == Symbol("dtype"))
      return call("view_copy");  // the loader takes view of sizes only
    return call(op);
  }

 private:
  // Arguments

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
    const std::string text = "[" + join(*texts) + "]";
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

  /// A call with the arguments in the order of the schema; those behind one that is left out go by name.
  std::string call(std::string_view name) const {
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
    return fmt::format("torch.{}({})", name, join(texts));
  }

  std::string number_of_tensor() const {
    const Kind kind = node_.output(0)->type.kind;
    const std::string_view type = kind == Kind::Float ? "float" : kind == Kind::Bool ? "bool" : "int";
    return fmt::format("{}({})", type, args_.text("self"));
  }

  // Arithmetic on numbers

  std::string operand(std::string_view name) const {
    const Attribute* given = node_.find_attribute(name);
    if (given == nullptr) fail_unsupported("{} lacks an argument", node_.op.view());
    const std::string text = plain(given->value, "");
    return text.starts_with('-') ? "(" + text + ")" : text;
  }

  std::string number_op(std::string_view op) const {
    struct Infix {
      std::string_view op, spelling;
    };
    constexpr Infix kInfix[] = {{"add", "+"},     {"sub", "-"}, {"mul", "*"}, {"floordiv", "//"},
                                {"truediv", "/"}, {"mod", "%"}, {"eq", "=="}, {"ne", "!="},
                                {"lt", "<"},      {"le", "<="}, {"gt", ">"},  {"ge", ">="}};
    for (const Infix& infix : kInfix) {
      if (infix.op == op) return fmt::format("{} {} {}", operand("a"), infix.spelling, operand("b"));
    }
    const Kind kind = node_.output(0)->type.kind;
    if (op == "pow") {
      const std::string power = fmt::format("{} ** {}", operand("a"), operand("b"));
      return kind == Kind::Int ? "int(" + power + ")" : power;
    }
    if (op == "and_") return fmt::format("torch.__and__({}, {})", operand("a"), operand("b"));
    if (op == "or_") return fmt::format("torch.__or__({}, {})", operand("a"), operand("b"));
    if (op == "neg") return fmt::format("-{}", operand("a"));
    if (op == "pos") return operand("a");
    if (op == "floor" || op == "ceil") return fmt::format("torch.{}({})", op, operand("a"));
    if (op == "trunc" || op == "sym_int") return fmt::format("int({})", operand("a"));
    if (op == "sym_float") return fmt::format("float({})", operand("a"));
    if (op == "_sym_sqrt") return fmt::format("torch.sqrt({})", operand("a"));
    if (op == "sym_max") return fmt::format("ops.prim.max({}, {})", operand("a"), operand("b"));
    if (op == "sym_min") return fmt::format("ops.prim.min({}, {})", operand("a"), operand("b"));
    if (op == "sym_not") return fmt::format("not {}", operand("a"));
    if (op == "sym_ite") return fmt::format("{} if {} else {}", operand("t"), operand("b"), operand("f"));
    fail_unsupported("{} has no form in TorchScript", op);
  }

  // Lists, and tensors that are made of numbers

  std::string made_of(const std::string& numbers) const {
    const auto* given = node_.find_attribute("dtype") ? node_.find_attribute("dtype")->value.get<DType>() : nullptr;
    return fmt::format("torch.tensor({}, dtype={}{})", numbers, given ? number_of(*given) : kInt64,
                       context_.device.empty() ? "" : ", device=" + context_.device);
  }

  std::string int_list(std::string_view name) const {
    const Param& param = entry_.signature.inputs[static_cast<size_t>(entry_.signature.find_input(name))];
    return list(node_.find_attribute(name)->value, param);
  }

  std::string calling(const std::string& function, const std::vector<std::string>& arguments) {
    context_.functions.insert(function);
    return fmt::format("__torch__.{}({})", function, join(arguments));
  }

  std::string own_text(std::string_view op) {
    const auto text = [&](std::string_view name) { return args_.text(name); };
    if (op == "item") return number_of_tensor();
    if (op == "int_tensor") return made_of(int_list("values"));
    if (op == "int_scalar") return made_of(text("value"));
    if (op == "tolist") {
      const bool is_wide = args_.value("self")->type.dtype == DType::Int64;
      const std::string wide = is_wide ? text("self") : fmt::format("torch.to({}, {})", text("self"), kInt64);
      return fmt::format("annotate(List[int], ({}).tolist())", wide);
    }
    if (op == "list_item") return fmt::format("{}[{}]", text("list"), text("index"));
    if (op == "shape") {
      const auto bound = [&](const char* name) { return args_.has(name) ? text(name) : ""; };
      return made_of(fmt::format("torch.size({})[{}:{}]", text("self"), bound("start"), bound("end")));
    }
    if (op == "copied_zeros") return calling("copied_zeros", {int_list("list"), text("self")});
    if (op == "broadcast_shapes") return calling("broadcast_shapes", {text("self"), int_list("shape")});
    if (op == "both") return fmt::format("{} and {}", text("a"), text("b"));
    if (op == "either") return fmt::format("{} or {}", text("a"), text("b"));
    if (op == "count_if")
      return fmt::format("{} if {} else 0", text("count"), condition_text(*args_.value("condition"), context_));
    if (op == "call_operator") return operator_call();
    return list_text(op);
  }

  /// An operator without a row of its own: the first tensor by its place, everything else by its name.
  std::string operator_call() const {
    std::string target = args_.string("tonnx_target");  // library.name.overload
    const size_t overload = target.find('.', target.find('.') + 1);
    if (overload != std::string::npos) target.erase(overload);
    std::vector<std::string> texts;
    for (const Attribute& each : node_.attributes) {
      if (each.name == "tonnx_target") continue;
      const bool is_list =
          each.value.get<AttrList>() || each.value.get<std::vector<int64_t>>() || each.value.get<std::vector<double>>();
      const std::string text = is_list ? "[" + join(*items(each.value, "")) + "]" : plain(each.value, "");
      texts.push_back(texts.empty() && each.value.get<Operand>() ? text : fmt::format("{}={}", each.name, text));
    }
    return fmt::format("ops.{}({})", target, join(texts));
  }

  std::string list_text(std::string_view op) {
    const auto text = [&](std::string_view name) { return args_.text(name); };
    if (op == "list") return list(node_.find_attribute("items")->value, entry_.signature.inputs[0]);
    if (op == "list_at") return fmt::format("{}[{}]", text("self"), text("index"));
    if (op == "list_length") return fmt::format("len({})", text("self"));
    if (op == "list_insert") {
      if (!args_.has("index")) return fmt::format("{} + [{}]", text("self"), text("value"));
      return calling("list_insert", {text("self"), text("value"), text("index")});
    }
    if (op == "list_erase") return calling("list_erase", {text("self"), args_.has("index") ? text("index") : "-1"});
    if (op == "unbind_list") return fmt::format("torch.unbind({}, {})", text("self"), text("dim"));
    if (op == "split_list") {
      const AttrValue& sizes = node_.find_attribute("sizes")->value;
      const auto* at = sizes.get<Operand>();
      const bool is_one = sizes.get<int64_t>() != nullptr || (at && node_.input(at->index)->type.kind == Kind::Int);
      const std::string dim = text("dim");
      if (!is_one) return fmt::format("torch.split_with_sizes({}, {}, {})", text("self"), int_list("sizes"), dim);
      std::string pieces = fmt::format("torch.split({}, {}, {})", text("self"), text("sizes"), dim);
      if (args_.flag("may_be_empty")) pieces += fmt::format("[:torch.size({}, {})]", text("self"), dim);
      return pieces;
    }
    if (op == "none") return fmt::format("annotate({}, None)", type_text(*node_.output(0)));
    if (op == "is_given") {
      return fmt::format("torch.tensor({} is not None{})", context_.name_of(args_.value("self")),
                         context_.device.empty() ? "" : ", device=" + context_.device);
    }
    fail_unsupported("{} has no form in TorchScript", op);
  }

  const Node& node_;
  Context& context_;
  const AtenOpEntry& entry_;
  Emission args_;
};

constexpr std::string_view kCopiedZeros = R"(def copied_zeros(sizes: List[int],
    x: Tensor) -> List[int]:
  result = annotate(List[int], [])
  for i in range(len(sizes)):
    n = sizes[i]
    if n == 0:
      n = torch.size(x, i)
    else:
      pass
    torch.append(result, n)
  return result
)";
constexpr std::string_view kBroadcastShapes = R"(def broadcast_shapes(x: Tensor,
    sizes: List[int]) -> List[int]:
  own = torch.size(x)
  rank = ops.prim.max(len(own), len(sizes))
  result = annotate(List[int], [])
  for i in range(rank):
    n = 1
    at = i - rank + len(own)
    if at >= 0:
      n = own[at]
    else:
      pass
    at = i - rank + len(sizes)
    if at >= 0 and n == 1:
      n = sizes[at]
    else:
      pass
    torch.append(result, n)
  return result
)";
constexpr std::string_view kListInsert = R"(def list_insert(items: List[Tensor],
    value: Tensor,
    index: int) -> List[Tensor]:
  return items[:index] + [value] + items[index:]
)";
constexpr std::string_view kListErase = R"(def list_erase(items: List[Tensor],
    index: int) -> List[Tensor]:
  rest = items[index:]
  return items[:index] + rest[1:]
)";

}  // namespace

std::string_view function_text(std::string_view name) {
  if (name == "copied_zeros") return kCopiedZeros;
  if (name == "broadcast_shapes") return kBroadcastShapes;
  return name == "list_insert" ? kListInsert : kListErase;
}

namespace {

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
  if (value.type.kind == Kind::Unknown && from != nullptr && from->domain == Symbol("tonnx")) {
    if (from->op == Symbol("none")) return "Optional[Tensor]";
    const bool gives_list = from->op != Symbol("list_at") && from->op.view().find("list") != std::string_view::npos;
    if (gives_list) return "List[Tensor]";
    const char* inner = from->op == Symbol("cond") ? "then_branch" : nullptr;
    if (inner != nullptr) {
      const auto& branch = **from->find_attribute(inner)->value.get<GraphPtr>();
      return type_text(*branch.outputs()[value.output_index]);
    }
  }
  if (from != nullptr && from->domain == Symbol("tonnx") && from->op == Symbol("none") &&
      value.type.kind != Kind::Optional)
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
  if (node.domain != Symbol("aten")) return false;
  const auto& outputs = get_aten_op(node).signature.outputs;
  return outputs.size() == 1 && outputs[0].is_list && outputs[0].type == "Tensor";
}

}  // namespace tonnx::torchscript
