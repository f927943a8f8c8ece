// python_names.cpp - rules for names in generated code.
#include "ops/frame/python_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/identifier.h"

namespace tonnx::python {
namespace {

/// What generated code itself says: a value of that name would hide it.
constexpr std::string_view kTaken[] = {
    "EXTERNAL",    "F",     "Model",       "Path",      "QuantConv1d", "QuantConv2d", "QuantConv3d",
    "QuantLinear", "bool",  "classmethod", "cls",       "complex",     "dict",        "enumerate",
    "float",       "int",   "isinstance",  "itertools", "len",         "list",        "load_file",
    "math",        "max",   "min",         "nn",        "range",       "reversed",    "self",
    "slice",       "super", "torch",       "tuple",     "zip"};

std::vector<std::string_view> split_words(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != at) continue;
    if (i > start) parts.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return parts;
}

/// `name_12`, `name12` without what is behind the word.
std::string_view without_number(std::string_view text) {
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  while (!text.empty() && (text.back() == '_' || text.back() == '.')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_lifted(std::string_view name) {
  const std::string_view last = without_number(name.substr(name.rfind('.') + 1));
  return last == "lifted_tensor" || last == "_lifted_tensor_constant" || last == "_tensor_constant";
}

std::string identifier(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 128;
    if (plain) {
      result += c;
    } else if (!result.empty() && result.back() != '_') {
      result += '_';
    }
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  if (result.empty()) return result;
  if (std::isdigit(static_cast<unsigned char>(result[0]))) result = "n" + result;
  const bool is_taken = std::find(std::begin(kTaken), std::end(kTaken), result) != std::end(kTaken);
  if (is_taken || is_python_keyword(result)) result += '_';
  return result;
}

bool is_made_up(std::string_view name) {
  if (name.empty() || name.starts_with("onnx::") || is_digits(name)) return true;
  if (name.find('/') != std::string_view::npos || name.find('.') != std::string_view::npos) return false;
  const std::string_view word = without_number(name);
  if (word.empty()) return true;
  constexpr std::string_view kEmptyWords[] = {"n",
                                              "t",
                                              "v",
                                              "val",
                                              "value",
                                              "node",
                                              "tensor",
                                              "const",
                                              "constant",
                                              "Constant",
                                              "onnx_initializer",
                                              "initializer",
                                              "param",
                                              "_"};
  if (word.size() == name.size()) return false;
  if (std::find(std::begin(kEmptyWords), std::end(kEmptyWords), word) != std::end(kEmptyWords)) return true;
  return std::isupper(static_cast<unsigned char>(word[0])) && word.find('_') == std::string_view::npos;  // Conv_12
}

bool is_state_key(std::string_view name) {
  return name.find('.') != std::string_view::npos && name.find_first_of("/:") == std::string_view::npos &&
         !is_made_up(name) && !is_lifted(name);
}

std::string path_of_node(std::string_view node_name) {
  std::vector<std::string_view> parts = split_words(node_name, '/');
  if (parts.size() < 2) {
    if (node_name.starts_with('/') && (parts.empty() || std::isupper(static_cast<unsigned char>(parts[0][0]))))
      return "";
    return is_made_up(node_name) ? "" : std::string(node_name);
  }
  if (std::isupper(static_cast<unsigned char>(parts.back()[0]))) parts.pop_back();  // the operator
  std::string path;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool repeated = i + 1 < parts.size() && parts[i + 1].size() > parts[i].size() &&
                          parts[i + 1].starts_with(parts[i]) && parts[i + 1][parts[i].size()] == '.';
    if (!repeated) path += (path.empty() ? "" : ".") + std::string(parts[i]);
  }
  return path;
}

std::string path_of_weight(std::string_view name) {
  if (is_made_up(name)) return "";
  if (name.ends_with(":0")) name.remove_suffix(2);
  std::string_view base = name;
  for (const std::string_view suffix : {"_0", "_1"}) {  // conv1_w_0
    if (base.ends_with(suffix)) base.remove_suffix(2);
  }
  constexpr std::string_view kEndings[] = {"weight", "weights", "kernel", "filter", "gamma", "scale",
                                           "W",      "w",       "s",      "bias",   "beta",  "b"};
  for (const std::string_view ending : kEndings) {
    if (base.size() <= ending.size() + 1 || !base.ends_with(ending)) continue;
    const char before = base[base.size() - ending.size() - 1];
    if (before == '.' || before == '_' || before == '/' || before == ':') {
      return std::string(base.substr(0, base.size() - ending.size() - 1));
    }
  }
  return std::string(name);
}

std::string NameSet::add(const std::string& hint) {
  std::string name = hint;
  if (contains(name)) {
    int& last_tried = last_tried_.try_emplace(hint, 1).first->second;  // those up to it are taken for ever
    do {
      name = hint + "_" + std::to_string(++last_tried);
    } while (contains(name));
  }
  taken_.insert(name);
  return name;
}

const std::set<std::string, std::less<>>& module_attributes() {
  static const std::set<std::string, std::less<>> names{"T_destination",
                                                        "add_module",
                                                        "apply",
                                                        "bfloat16",
                                                        "buffers",
                                                        "call_super_init",
                                                        "children",
                                                        "compile",
                                                        "cpu",
                                                        "cuda",
                                                        "double",
                                                        "dump_patches",
                                                        "eval",
                                                        "extra_repr",
                                                        "float",
                                                        "forward",
                                                        "get_buffer",
                                                        "get_extra_state",
                                                        "get_parameter",
                                                        "get_submodule",
                                                        "half",
                                                        "ipu",
                                                        "load",
                                                        "load_state_dict",
                                                        "modules",
                                                        "mtia",
                                                        "named_buffers",
                                                        "named_children",
                                                        "named_modules",
                                                        "named_parameters",
                                                        "parameters",
                                                        "register_backward_hook",
                                                        "register_buffer",
                                                        "register_module",
                                                        "register_parameter",
                                                        "requires_grad_",
                                                        "set_extra_state",
                                                        "set_submodule",
                                                        "share_memory",
                                                        "state_dict",
                                                        "to",
                                                        "to_empty",
                                                        "train",
                                                        "training",
                                                        "type",
                                                        "xpu",
                                                        "zero_grad"};
  return names;
}

}  // namespace tonnx::python
