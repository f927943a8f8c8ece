// weights.cpp - reads, lists and writes files of weights, and replaces those of a graph.
#include "convert/weights.h"

#include <map>
#include <set>

#include "base/error.h"
#include "base/output_file.h"
#include "convert/route.h"
#include "formats/pth/pth.h"
#include "formats/pth/saved.h"
#include "formats/safetensors/safetensors.h"
#include "ir/type.h"

namespace tonnx {
namespace {

std::string type_text(const Tensor& tensor) {
  const std::vector<int64_t>& dims = tensor.dims;
  return text_of(Type::tensor(tensor.dtype, Shape(dims.begin(), dims.end())));
}

void collect_weights(Graph& graph, std::map<std::string_view, std::vector<Value*>>& into) {
  for (Value* value : graph.initializers()) {
    if (value->constant) into[value->name].push_back(value);
  }
  for (const Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) collect_weights(*inner, into);
  }
}

/// Whether a constant of a graph is one that a file of weights has to have. Sizes, axes and numbers of the code are
/// not.
bool is_weight(const Value& value) {
  if (value.uses.empty()) return false;
  const Tensor& tensor = *value.constant;
  return value.trainable || ((is_float(tensor.dtype) || is_complex(tensor.dtype)) && tensor.count() > 1);
}

/// PyTorch counts the batches of a BatchNorm that trains; no graph uses the number.
bool is_counter(std::string_view name) { return name.ends_with("num_batches_tracked"); }

/// What training puts before all names: DataParallel, and torch.compile.
std::string_view without_wrapper(std::string_view name) {
  for (const std::string_view prefix : {"module.", "_orig_mod."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

/// `a, b, c and 12 more`.
std::string listed(const std::vector<std::string>& items) {
  constexpr size_t kMost = 20;
  std::string text;
  for (size_t i = 0; i < items.size() && i < kMost; ++i) text += (i > 0 ? ", " : "") + shown(items[i]);
  return items.size() > kMost ? text + fmt::format(" and {} more", items.size() - kMost) : text;
}

}  // namespace

bool is_weights_file(const std::string& path) {
  const auto format = find_format(path);
  return format == Format::Pth || format == Format::Safetensors;
}

std::vector<StateTensor> read_weights(const std::string& path, const std::optional<std::string>& part) {
  return in_context([&] { return "reading " + path; },
                    [&] {
                      const auto format = find_format(path);
                      if (format == Format::Pth)
                        return weights_of(read_saved(map_file(path), "the file"), part, "the file");
                      if (format != Format::Safetensors)
                        fail_unsupported("weights are in a .pth or .safetensors file, and not in '{}'", path);
                      if (!part) return read_safetensors(map_file(path), "the file");
                      SavedContent content;
                      content.tensors = read_safetensors(map_file(path), "the file");
                      return weights_of(content, part, "the file");
                    });
}

std::string print_weights(const std::string& path) {
  return in_context([&] { return "reading " + path; },
                    [&] {
                      SavedContent content;
                      if (find_format(path) == Format::Safetensors) {
                        content.tensors = read_safetensors(map_file(path), "the file");
                      } else {
                        content = read_saved(map_file(path), "the file");
                      }
                      std::string text;
                      for (const StateTensor& entry : content.tensors)
                        text += shown(entry.name) + ": " + type_text(*entry.tensor) + "\n";
                      for (const auto& [name, value] : content.values)
                        text += "# " + (name.empty() ? "" : shown(name) + " = ") + value + "\n";
                      for (const auto& [name, global] : content.foreign)
                        text += "# " + (name.empty() ? "the file" : shown(name)) + " is made by " + shown(global) +
                                ", which is not executed\n";
                      return text;
                    });
}

void convert_weights(const std::string& source, const std::string& target, const std::optional<std::string>& part,
                     const std::function<void(uint64_t, uint64_t)>& progress) {
  const std::vector<StateTensor> state = read_weights(source, part);
  in_context([&] { return "writing " + target; },
             [&] {
               OutputFile file(target);
               if (find_format(target) == Format::Pth) {
                 write_pth(file, state, progress);
               } else {
                 write_safetensors(file, state, progress);
               }
               file.commit();
             });
}

void replace_weights(Graph& graph, const std::vector<StateTensor>& weights, const std::string& path) {
  std::map<std::string_view, std::vector<Value*>> own;
  collect_weights(graph, own);
  std::vector<std::string> missing, extra, other;
  std::set<std::string_view> given;
  bool is_wrapped = !weights.empty();
  for (const StateTensor& entry : weights)
    is_wrapped &= without_wrapper(entry.name) != entry.name && !own.contains(entry.name);
  for (const StateTensor& entry : weights) {
    const std::string_view name = is_wrapped ? without_wrapper(entry.name) : std::string_view(entry.name);
    given.insert(name);
    const auto at = own.find(name);
    if (at == own.end()) {
      if (!is_counter(name)) extra.push_back(entry.name);
      continue;
    }
    const Tensor& before = *at->second.front()->constant;
    if (before.dims != entry.tensor->dims || before.dtype != entry.tensor->dtype)
      other.push_back(fmt::format("{} is {} in the file and {} in the model", shown(name), type_text(*entry.tensor),
                                  type_text(before)));
  }
  for (const auto& [name, values] : own) {
    if (!given.contains(name) && is_weight(*values.front())) missing.emplace_back(name);
  }
  if (!missing.empty() || !extra.empty() || !other.empty()) {
    std::string text = "the weights of " + shown(path) + " are not those of the model:";
    const auto add = [&](std::string part) { text += (text.ends_with(':') ? " " : "; ") + std::move(part); };
    if (!missing.empty()) add("the file lacks " + listed(missing));
    if (!extra.empty()) add("the model has no " + listed(extra));
    if (!other.empty()) add(listed(other));
    throw Error(ErrorKind::InvalidModel, text);
  }
  for (const StateTensor& entry : weights) {
    const auto at = own.find(is_wrapped ? without_wrapper(entry.name) : std::string_view(entry.name));
    if (at == own.end()) continue;
    for (Value* value : at->second) {
      value->constant = entry.tensor;
      value->sparse = nullptr;
      if (Node* owner = value->graph->owner) owner->mark_changed();
    }
  }
}

}  // namespace tonnx
