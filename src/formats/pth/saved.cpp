// saved.cpp - walks over a pickle of torch.save, and notes what is tensors, what is plain values, and what is neither.
#include "formats/pth/saved.h"

#include <algorithm>
#include <set>

#include "base/budget.h"
#include "base/error.h"
#include "base/join.h"
#include "base/nearest.h"
#include "base/pickle.h"
#include "formats/pth/pth.h"
#include "formats/pth/tensors.h"

namespace tonnx {
namespace {

using Kind = PickleValue::Kind;

constexpr uint64_t kFreeGather = uint64_t{1} << 28;  // beyond what the file holds: expanded tensors
constexpr size_t kLongestText = 80;
constexpr std::string_view kLegacyMagic = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19";

/// What torch.save writes for plain values, by the names that the pickle has.
bool is_plain_global(const PickleValue& value) {
  constexpr std::pair<std::string_view, std::string_view> kPlain[] = {
      {"collections", "OrderedDict"},
      {"collections", "Counter"},
      {"collections", "defaultdict"},
      {"torch", "Size"},
      {"torch", "device"},
      {"_codecs", "encode"},
  };
  for (const auto& [module, name] : kPlain) {
    if (value.is_global(module, name)) return true;
  }
  const bool is_builtin = value.module == "builtins" || value.module == "__builtin__";
  if (is_builtin) {
    for (const std::string_view name : {"set", "frozenset", "complex", "bytearray", "dict", "list", "int", "float"}) {
      if (value.text == name) return true;
    }
  }
  return value.module == "torch" && find_dtype(value.text).has_value();
}

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

int64_t depth_of(const std::string& path) { return path.empty() ? 0 : 1 + std::count(path.begin(), path.end(), '.'); }

/// The value that the state of an object has under that name.
const PickleValue* find_entry(const PickleValue& dict, std::string_view name) {
  for (size_t i = 0; i + 1 < dict.entries.size(); i += 2) {
    if (dict.entries[i]->is(Kind::String) && dict.entries[i]->text == name) return dict.entries[i + 1];
  }
  return nullptr;
}

/// The attributes of a pickled nn.Module; null for other objects.
const PickleValue* find_module_state(const PickleValue& value) {
  if (!value.is(Kind::Object) || value.state == nullptr || !value.state->is(Kind::Dict)) return nullptr;
  const bool is_module = find_entry(*value.state, "_parameters") != nullptr &&
                         find_entry(*value.state, "_buffers") != nullptr &&
                         find_entry(*value.state, "_modules") != nullptr;
  return is_module ? value.state : nullptr;
}

class Walker {
 public:
  Walker(PickledTensors& tensors, std::string_view what) : tensors_(tensors), what_(what) {}

  /// `by_text`: all keys on the way are texts.
  void visit(const PickleValue& value, const std::string& path, bool by_text) {
    budget().take(Resource::Steps, 1);
    budget().take(Resource::Memory, static_cast<int64_t>(path.size() + sizeof(SavedContent::Named)));
    if (PickledTensors::is_tensor(value)) return add_tensor(value, path);
    if (const PickleValue* state = find_module_state(value)) return visit_module(value, *state, path, by_text);
    switch (value.kind) {
      case Kind::Dict: return visit_dict(value, path, by_text);
      case Kind::Tuple:
      case Kind::List:
      case Kind::Set: return visit_list(value, path);
      case Kind::Global:
        if (!is_plain_global(value)) add_foreign(value, path);
        return;
      case Kind::Object: return visit_object(value, path, by_text);
      case Kind::Persistent: return add_value(path, "a storage");
      default: return add_value(path, text_of(value));
    }
  }

  SavedContent take() {
    std::stable_sort(result_.parts.begin(), result_.parts.end(),
                     [](const std::string& a, const std::string& b) { return depth_of(a) < depth_of(b); });
    return std::move(result_);
  }

 private:
  static std::string text_of(const PickleValue& value) {
    switch (value.kind) {
      case Kind::None: return "None";
      case Kind::Bool: return value.integer != 0 ? "True" : "False";
      case Kind::Int: return std::to_string(value.integer);
      case Kind::Float: return fmt::format("{}", value.real);
      case Kind::String: return "'" + shown(value.text.substr(0, kLongestText)) + "'";
      default: return fmt::format("[{} bytes]", value.text.size());
    }
  }
  static bool is_plain_value(const PickleValue& value) {
    return value.kind <= Kind::Bytes;  // those that hold no others
  }

  void add_value(const std::string& path, std::string text) { result_.values.push_back({path, std::move(text)}); }

  void add_tensor(const PickleValue& value, const std::string& path) {
    const std::string name = path.empty() ? "tensor" : path;
    in_context([&] { return error_text("reading tensor '{}' of {}", name, what_); },
               [&] {
                 const PthTensor tensor = tensors_.tensor_of(value);
                 if (names_.insert(name).second)
                   result_.tensors.push_back({name, tensor.tensor, false, tensor.is_param});
               });
  }

  void add_foreign(const PickleValue& callee, const std::string& path) {
    const std::string name = callee.is(Kind::Global) ? global_name(callee) : "the result of a call";
    result_.foreign.push_back({path, name});
  }

  void add_part(const std::string& path) {
    if (result_.parts.empty() || result_.parts.back() != path) result_.parts.push_back(path);
  }

  void visit_dict(const PickleValue& dict, const std::string& path, bool by_text) {
    const auto is_text = [&](size_t i) { return dict.entries[i]->is(Kind::String); };
    bool all_texts = true, has_tensor = false;
    for (size_t i = 0; i + 1 < dict.entries.size(); i += 2) {
      all_texts &= is_text(i);
      has_tensor |= PickledTensors::is_tensor(*dict.entries[i + 1]);
    }
    if (by_text && all_texts && has_tensor) add_part(path);
    for (size_t i = 0; i + 1 < dict.entries.size(); i += 2) {
      const PickleValue& key = *dict.entries[i];
      const std::string name = key.is(Kind::String)  ? std::string(key.text)
                               : is_plain_value(key) ? text_of(key)
                                                     : fmt::format("{}", i / 2);
      visit(*dict.entries[i + 1], below(path, name), by_text && is_text(i));
    }
  }

  void visit_list(const PickleValue& list, const std::string& path) {
    constexpr size_t kShort = 8;
    const bool is_plain = std::all_of(list.items.begin(), list.items.end(),
                                      [](const PickleValue* item) { return is_plain_value(*item); });
    if (is_plain && list.items.size() > kShort) {
      return add_value(path, fmt::format("[{} values]", list.items.size()));
    }
    if (is_plain) {
      std::vector<std::string> texts;
      for (const PickleValue* item : list.items) texts.push_back(text_of(*item));
      return add_value(path, "[" + joined(texts) + "]");
    }
    for (size_t i = 0; i < list.items.size(); ++i) visit(*list.items[i], below(path, std::to_string(i)), false);
  }

  /// Whatever would be called is only noted, and all that it would be called with is looked at.
  void visit_object(const PickleValue& value, const std::string& path, bool by_text) {
    const bool is_dict = value.is_call_of("collections", "OrderedDict") ||
                         value.is_call_of("collections", "defaultdict") || value.is_call_of("collections", "Counter");
    if (is_dict) return visit_dict(value, path, by_text);  // its state is PyTorch's own _metadata
    const bool is_plain = value.callee->is(Kind::Global) && is_plain_global(*value.callee);
    if (is_plain) return;
    add_foreign(*value.callee, path);
    for (const PickleValue* argument : value.arguments->items) {
      if (!is_plain_value(*argument)) visit(*argument, path, false);
    }
    if (!value.entries.empty()) visit_dict(value, path, false);
    for (size_t i = 0; i < value.items.size(); ++i) visit(*value.items[i], below(path, std::to_string(i)), false);
    if (value.state != nullptr && !is_plain_value(*value.state)) visit(*value.state, path, false);
  }

  /// As state_dict() of the module names its weights.
  void visit_module(const PickleValue& module, const PickleValue& state, const std::string& path, bool by_text) {
    add_foreign(*module.callee, path);
    if (by_text) add_part(path);
    std::set<std::string_view> passing;  // buffers that are no part of the state dict
    if (const PickleValue* names = find_entry(state, "_non_persistent_buffers_set")) {
      const PickleValue& set =
          names->is(Kind::Object) && !names->arguments->items.empty() ? *names->arguments->items.front() : *names;
      for (const PickleValue* name : set.items) passing.insert(name->text);
    }
    for (const std::string_view kind : {"_parameters", "_buffers", "_modules"}) {
      const PickleValue& dict = *find_entry(state, kind);
      for (size_t i = 0; i + 1 < dict.entries.size(); i += 2) {
        const PickleValue& key = *dict.entries[i];
        if (!key.is(Kind::String) || dict.entries[i + 1]->is(Kind::None)) continue;
        if (kind == "_buffers" && passing.contains(key.text)) continue;
        visit(*dict.entries[i + 1], below(path, key.text), false);
      }
    }
  }

  PickledTensors& tensors_;
  std::string_view what_;
  SavedContent result_;
  std::set<std::string> names_;
};

void require_zip(const Bytes& bytes, std::string_view what) {
  if (ZipFile::looks_like_zip(bytes.view())) return;
  constexpr std::string_view kAdvice = "load it with PyTorch, and torch.save it again";
  if (bytes.view().starts_with(kLegacyMagic)) {
    fail_unsupported("{} is in the legacy form of torch.save, of before PyTorch 1.6: {}", what, kAdvice);
  }
  if (bytes.size() > 262 && bytes.view().substr(257, 5) == "ustar") {
    fail_unsupported("{} is a tar file, the form of torch.save before PyTorch 0.1.10: {}", what, kAdvice);
  }
  fail(ErrorKind::BadFile, "{} is no file of torch.save: it does not begin as a zip file", what);
}

}  // namespace

SavedContent read_saved(const Bytes& bytes, std::string_view what) {
  require_zip(bytes, what);
  budget().add_input(bytes.size());
  ZipFile zip(bytes);
  const std::string root = pth_root(zip, what);
  if (zip.find(root + "constants.pkl") != nullptr) {
    fail_unsupported("{} is a TorchScript file, of torch.jit.save, and not of torch.save", what);
  }
  const Pickle pickle(read_pth_pickle(zip, root, "data.pkl", what), what);
  StridedTensors strided(kFreeGather + bytes.size());
  PickledTensors tensors(zip, strided, root + "data/");
  Walker walker(tensors, what);
  walker.visit(pickle.root(), "", true);
  return walker.take();
}

namespace {

std::vector<StateTensor> tensors_below(const SavedContent& content, const std::string& part) {
  if (part.empty()) return content.tensors;
  std::vector<StateTensor> result;
  const std::string prefix = part + ".";
  for (const StateTensor& tensor : content.tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    result.push_back(tensor);
    result.back().name = tensor.name.substr(prefix.size());
  }
  return result;
}

std::string option_of(const std::string& part) { return "--part " + (part.empty() ? "." : part); }

/// Those parts that lie no deeper than the first.
std::vector<std::string> outermost(const std::vector<std::string>& parts) {
  std::vector<std::string> result;
  for (const std::string& part : parts) {
    if (result.empty() || depth_of(part) == depth_of(result.front())) result.push_back(part);
  }
  return result;
}

}  // namespace

std::vector<StateTensor> weights_of(const SavedContent& content, const std::optional<std::string>& part,
                                    std::string_view what) {
  if (part) {
    std::vector<StateTensor> found = tensors_below(content, *part == "." ? "" : *part);
    const Names known(content.parts.begin(), content.parts.end());
    if (found.empty())
      fail_invalid("{} has no part '{}' with weights; it has: {}", what, *part, nearest_list(*part, known));
    return found;
  }
  const std::vector<std::string> parts = outermost(content.parts);
  if (!content.foreign.empty()) {
    const SavedContent::Named& first = content.foreign.front();
    const std::string place = first.name.empty() ? "" : error_text(" (in '{}')", first.name);
    const std::string advice =
        parts.empty() ? "" : error_text("; {} takes the weights of it alone", option_of(parts.front()));
    fail_unsupported(
        "{} asks for {}{}, which is no part of PyTorch's weights and is not executed: `tonnx print` lists "
        "what of it is weights{}",
        what, first.text, place, advice);
  }
  if (parts.empty() && content.tensors.size() == 1 && content.tensors.front().name == "tensor") return content.tensors;
  if (parts.empty()) fail_unsupported("{} holds no dict of tensors by name", what);
  if (parts.size() > 1) {
    const Names names(parts.begin(), parts.end());
    fail_invalid("{} has several dicts of weights: {}; --part says which", what, nearest_list("model", names));
  }
  return tensors_below(content, parts.front());
}

}  // namespace tonnx
