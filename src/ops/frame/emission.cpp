// emission.cpp - spells aten nodes in Python.
#include "ops/frame/emission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/join.h"
#include "base/utf8.h"

namespace tonnx {

std::string python_float(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value < 0 ? "float(\"-inf\")" : "float(\"inf\")";
  const auto narrow = static_cast<float>(value);
  std::string text = static_cast<double>(narrow) == value ? fmt::format("{}", narrow) : fmt::format("{}", value);
  // the short text of the largest float32 is past it, and PyTorch refuses such a number for a float32 tensor
  if (std::fabs(std::strtod(text.c_str(), nullptr)) > std::numeric_limits<float>::max())
    text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (const size_t e = text.find('e'); e != std::string::npos && text[e + 1] == '+') {
    text.erase(e + 1, 1);  // 1e+20 as 1e20
  }
  return text;
}

namespace {

/// Of a character of two or three bytes: those that are not visible have no more.
unsigned code_point(std::string_view character) {
  unsigned value = static_cast<unsigned char>(character[0]) & (character.size() == 2 ? 0x1FU : 0x0FU);
  for (const char c : character.substr(1)) value = value << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  return value;
}

}  // namespace

std::string python_string(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (text[0] == '"' || text[0] == '\\') {
      result += '\\';
      result += text[0];
    } else if (text[0] == '\n') {
      result += "\\n";
    } else if (visible_length(text) > 0) {
      result += text.substr(0, length);
    } else if (length > 1) {
      result += fmt::format("\\u{:04x}", code_point(text.substr(0, length)));
    } else {
      result += length == 0 ? "\\ufffd" : fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result + "\"";
}

std::string python_dtype(DType dtype) {
  const std::string_view name = info(widened(dtype)).torch;
  if (name.empty()) fail_unsupported("PyTorch has no {}", name_of(dtype));
  return fmt::format("torch.{}", name);
}

std::string python_tuple(const std::vector<std::string>& items) {
  return items.size() == 1 ? "(" + items[0] + ",)" : "(" + joined(items) + ")";
}

std::string python_pair(const std::vector<int64_t>& values) {
  if (!values.empty() && std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; })) {
    return std::to_string(values[0]);
  }
  return fmt::format("({})", joined(values, ", "));
}

const AttrValue* Emission::find(std::string_view argument) const {
  for (const Attribute& attribute : node_->attributes) {
    if (attribute.name == argument) return &attribute.value;
  }
  return nullptr;
}

bool Emission::has(std::string_view argument) const {
  const AttrValue* found = find(argument);
  return found != nullptr && !found->is_none();
}

Value* Emission::value(std::string_view argument) const {
  const AttrValue* found = find(argument);
  const auto* operand = found ? found->get<Operand>() : nullptr;
  return operand ? node_->input(operand->index) : nullptr;
}

std::optional<Emission> Emission::inside(std::string_view argument) const {
  const Value* found = value(argument);
  if (found == nullptr || found->producer == nullptr || !is_inside_ || !is_inside_(found)) return std::nullopt;
  return Emission(*found->producer, get_aten_op(*found->producer), text_of_, device_, is_inside_);
}

const AttrValue* Emission::constant(std::string_view argument) const {
  const AttrValue* found = find(argument);
  if (found != nullptr) return found;
  const int at = signature().find_input(argument);
  if (at < 0) throw Error(ErrorKind::Internal, fmt::format("{} has no argument '{}'", signature().name, argument));
  return &signature().inputs[static_cast<size_t>(at)].default_value;
}

std::optional<int64_t> Emission::find_int(std::string_view argument) const {
  const AttrValue* found = constant(argument);
  if (const auto* i = found->get<int64_t>()) return *i;
  if (const auto* b = found->get<bool>()) return *b;
  return std::nullopt;
}

std::optional<double> Emission::find_float(std::string_view argument) const {
  const AttrValue* found = constant(argument);
  if (const auto* f = found->get<double>()) return *f;
  if (const auto i = find_int(argument)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<Ints> Emission::find_ints(std::string_view argument) const {
  const AttrValue* found = constant(argument);
  if (const auto* ints = found->get<std::vector<int64_t>>()) return *ints;
  if (const auto* i = found->get<int64_t>()) return std::vector{*i};
  const auto* list = found->get<AttrList>();
  if (list == nullptr) return std::nullopt;
  std::vector<int64_t> result;
  for (const AttrValue& item : *list) {
    const auto* i = item.get<int64_t>();
    if (i == nullptr) return std::nullopt;
    result.push_back(*i);
  }
  return result;
}

bool Emission::flag(std::string_view argument) const { return find_int(argument).value_or(0) != 0; }

std::string Emission::string(std::string_view argument) const {
  const auto* text = constant(argument)->get<std::string>();
  return text ? *text : "";
}

std::string Emission::text_of_attr(const AttrValue& value, int place) const {
  if (value.is_none()) return "None";
  if (const auto* b = value.get<bool>()) return *b ? "True" : "False";
  if (const auto* i = value.get<int64_t>()) {
    return *i < 0 && place > precedence::kUnary ? fmt::format("({})", *i) : std::to_string(*i);
  }
  if (const auto* f = value.get<double>()) {
    const std::string text = python_float(*f);
    return text[0] == '-' && place > precedence::kUnary ? "(" + text + ")" : text;
  }
  if (const auto* s = value.get<std::string>()) return python_string(*s);
  if (const auto* d = value.get<DType>()) return python_dtype(*d);
  if (const auto* o = value.get<Operand>()) return text_of_(node_->input(o->index), place);
  std::vector<std::string> texts;
  if (const auto* ints = value.get<std::vector<int64_t>>()) {
    for (const int64_t i : *ints) texts.push_back(std::to_string(i));
  } else if (const auto* floats = value.get<std::vector<double>>()) {
    for (const double f : *floats) texts.push_back(python_float(f));
  } else if (const auto* list = value.get<AttrList>()) {
    for (const AttrValue& item : *list) texts.push_back(text_of_attr(item, 0));
  } else {
    throw Error(ErrorKind::Internal, "an argument has no Python text");
  }
  return "[" + joined(texts) + "]";
}

std::string Emission::text(std::string_view argument, int place) const {
  const AttrValue& value = *constant(argument);
  const int at = signature().find_input(argument);
  const auto* parts = value.get<std::vector<double>>();
  if (at >= 0 && parts != nullptr && parts->size() == 2) {  // a complex number, by its two parts
    const Param& param = signature().inputs[static_cast<size_t>(at)];
    if ((param.type == "Scalar" || param.type == "Tensor") && !param.is_list)
      return fmt::format("complex({}, {})", python_float((*parts)[0]), python_float((*parts)[1]));
  }
  return text_of_attr(value, place);
}

CheckedList<std::string> Emission::items(std::string_view argument) const {
  std::vector<std::string> texts;
  const AttrValue* found = constant(argument);
  if (const auto* ints = found->get<std::vector<int64_t>>()) {
    for (const int64_t i : *ints) texts.push_back(std::to_string(i));
  } else if (const auto* list = found->get<AttrList>()) {
    for (const AttrValue& item : *list) texts.push_back(text_of_attr(item, 0));
  } else {
    texts.push_back("*" + text_of_attr(*found, 0));
  }
  return texts;
}

namespace {

struct Infix {
  std::string_view spelling;
  int precedence;
};
constexpr Infix kInfix[] = {
    {"+", precedence::kSum},      {"-", precedence::kSum},      {"*", precedence::kProduct},
    {"/", precedence::kProduct},  {"//", precedence::kProduct}, {"%", precedence::kProduct},
    {"@", precedence::kProduct},  {"&", precedence::kBitAnd},   {"|", precedence::kBitOr},
    {"^", precedence::kBitXor},   {"<<", precedence::kShift},   {">>", precedence::kShift},
    {"==", precedence::kCompare}, {"!=", precedence::kCompare}, {"<", precedence::kCompare},
    {"<=", precedence::kCompare}, {">", precedence::kCompare},  {">=", precedence::kCompare},
    {"**", precedence::kPower},
};

/// The arguments of a call, by the order of the schema: those at their default left out, keywords from the first gap or
/// flag on, or from that place on.
std::vector<std::string> call_arguments(const Emission& e, size_t from, size_t keywords_from = SIZE_MAX) {
  std::vector<std::string> texts;
  bool gap = false;
  const auto& params = e.signature().inputs;
  for (size_t i = from; i < params.size(); ++i) {
    const Param& param = params[i];
    const Attribute* given = e.node().find_attribute(param.name);
    if (given == nullptr) {
      gap = true;
      continue;
    }
    gap = gap || i >= keywords_from || given->value.get<bool>() != nullptr;
    const bool keyword = gap || param.keyword_only;
    std::string text = e.text(param.name);
    if (param.takes_one && text.starts_with('[') && e.items(param.name).size() == 1) text = e.items(param.name)[0];
    texts.push_back(keyword ? fmt::format("{}={}", param.name, text) : std::move(text));
  }
  return texts;
}

}  // namespace

std::pair<std::string, int> spell(const Emission& e, const AtenOp& op) {
  if (op.emit != nullptr) return {op.emit(e), precedence::kAtom};
  std::string_view spelling = op.python;
  const bool swapped = spelling.starts_with('r') && spelling.size() <= 3;
  if (swapped) spelling.remove_prefix(1);
  if (spelling.empty()) fail_unsupported("{} has no spelling in Python", op.sig.name());
  const auto& params = e.signature().inputs;
  for (const Infix& infix : kInfix) {
    if (infix.spelling != spelling) continue;
    const bool has_more = params.size() > 2 && std::any_of(params.begin() + 2, params.end(), [&](const Param& param) {
                            return e.node().find_attribute(param.name) != nullptr;
                          });
    if (has_more) {  // torch.add(x, y, alpha=2), also where the schema has no keyword
      return {fmt::format("torch.{}({})", e.signature().name, joined(call_arguments(e, 0, 2))), precedence::kAtom};
    }
    if (params.size() == 1) {
      return {fmt::format("{}{}", spelling, e.text(params[0].name, precedence::kUnary)), precedence::kUnary};
    }
    // the right side of an operator that groups to the left must bind tighter; ** groups to the right
    const bool power = spelling == "**";
    const bool compare = infix.precedence == precedence::kCompare;
    const std::string left = e.text(params[swapped ? 1 : 0].name, infix.precedence + (power || compare ? 1 : 0));
    const std::string right = e.text(params[swapped ? 0 : 1].name, infix.precedence + (power ? 0 : 1));
    const bool is_negative = right.size() > 1 && right[0] == '-' && std::isdigit(static_cast<unsigned char>(right[1]));
    // PyTorch adds numbers to flags, and subtracts none from them
    const Value* first = e.node().input(0);
    const bool is_flag = first != nullptr && first->type.dtype == DType::Bool;
    if (spelling == "+" && is_negative && !is_flag)
      return {fmt::format("{} - {}", left, right.substr(1)), infix.precedence};
    return {fmt::format("{} {} {}", left, spelling, right), infix.precedence};
  }
  if (spelling == "~") return {"~" + e.text(params[0].name, precedence::kUnary), precedence::kUnary};
  if (spelling.starts_with('.')) {
    return {fmt::format("{}{}({})", e.text(params[0].name, precedence::kAtom), spelling, joined(call_arguments(e, 1))),
            precedence::kAtom};
  }
  return {fmt::format("{}({})", spelling, joined(call_arguments(e, 0))), precedence::kAtom};
}

bool swaps_dims(const Node& node) {
  if (node.domain != "aten") return false;
  if (node.op == "t") return true;
  const Attribute* dims = node.op == "permute" ? node.find_attribute("dims") : nullptr;
  const auto* order = dims ? dims->value.get<std::vector<int64_t>>() : nullptr;
  return order && *order == std::vector<int64_t>{1, 0};
}

}  // namespace tonnx

template class std::vector<tonnx::ModuleSpec::Weight>;
template class std::vector<std::string>;
