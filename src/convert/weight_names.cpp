// weight_names.cpp - finds the constants that the tensors of a file are to replace, and replaces them.
#include "convert/weight_names.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/computed.h"
#include "base/error.h"
#include "base/scratch.h"
#include "convert/weights_back.h"
#include "ir/transposed.h"
#include "ops/frame/python_names.h"
#include "ops/frame/trained_scalar.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

using OwnWeights = std::map<std::string_view, std::vector<OwnWeight>>;

void collect(Graph& graph, OwnWeights& into) {
  for (Value* value : graph.initializers()) {
    if (value->constant) into[value->name].push_back({.value = value, .tensor = value->constant});
  }
  for (Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) collect(*inner, into);
    if (!(node.op == "Constant") || !node.domain.empty() || node.output(0) == nullptr) continue;
    const Attribute* value = node.find_attribute("value");
    const auto* tensor = value != nullptr ? value->value.get<TensorPtr>() : nullptr;
    if (tensor != nullptr && *tensor != nullptr)
      into[node.output(0)->name].push_back({.node = &node, .tensor = *tensor});
  }
}

std::string form_of(const Tensor& tensor, bool transposed = false) {
  std::vector<int64_t> dims = tensor.dims;
  if (transposed) std::swap(dims.at(0), dims.at(1));
  return text_of(Type::tensor(tensor.dtype, Shape(dims.begin(), dims.end())));
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

/// What does not fit.
struct Mismatch {
  std::vector<std::string> missing, extra, other;

  bool is_none() const { return missing.empty() && extra.empty() && other.empty(); }
  [[noreturn]] void fail(const std::string& path, const std::string& note) const {
    std::string text = "the weights of " + shown(path) + " are not those of the model:";
    const auto add = [&](std::string part) { text += (text.ends_with(':') ? " " : "; ") + std::move(part); };
    if (!missing.empty()) add("the file lacks " + listed(missing));
    if (!extra.empty()) add("the model has no " + listed(extra));
    if (!other.empty()) add(listed(other));
    const bool lacks_norms =
        std::any_of(extra.begin(), extra.end(), [](const std::string& name) { return name.ends_with(".running_var"); });
    if (lacks_norms)
      text +=
          "; the model's BatchNorm was merged into other layers: tonnx export my_net.py:Net --no-constant-folding "
          "model.onnx keeps it";
    throw Error(ErrorKind::InvalidModel, text + note);
  }
};

/// A tensor of the file, and what it is to replace.
struct Wanted {
  std::string name;
  TensorPtr before, now;
};

/// Bytes as they lie in memory that PyTorch has with the two dimensions swapped.
TensorPtr turned(const Tensor& tensor) {
  auto result = std::make_shared<Tensor>();
  result->dtype = tensor.dtype;
  result->dims = {tensor.dims[1], tensor.dims[0]};
  const Bytes bytes = bytes_to_write(tensor, true);
  Scratch room(bytes.size());
  compute_into(bytes, room.data());
  result->data = room.done();
  return result;
}

/// Whose names the tensors of a file have; the second of two where the first has none of that name and size.
enum class NamesOf : uint8_t { Own, Module, OwnFirst, ModuleFirst };

/// The tensors of a file, compared with the constants of a model and with the weights of its module.
class WeightNames {
 public:
  WeightNames(const OwnWeights& own, const std::vector<StateTensor>& weights) : own_(&own), weights_(&weights) {}

  /// Also by the names of the module.
  void add_module(const ModuleWeights& made, const WeightsBack& back) {
    state_ = &made.module.state;
    back_ = &back;
    for (size_t i = 0; i < state_->size(); ++i) by_name_[(*state_)[i].name] = i;
    for (const auto& [name, of] : made.module.tied) by_name_[name] = of;
  }

  Mismatch match(NamesOf names) {
    wanted_.clear();
    Mismatch mismatch;
    std::set<std::string_view> given;
    std::set<const Tensor*> covered;
    const bool wrapped = is_wrapped();
    for (const StateTensor& entry : *weights_) {
      const std::string name(wrapped ? without_wrapper(entry.name) : std::string_view(entry.name));
      std::string other;
      const auto try_module = [&] { return state_ != nullptr && add_of_module(name, *entry.tensor, given, other); };
      const auto try_own = [&] { return add_own(name, *entry.tensor, covered, other); };
      const bool is_found = names == NamesOf::Own        ? try_own()
                            : names == NamesOf::Module   ? try_module()
                            : names == NamesOf::OwnFirst ? try_own() || try_module()
                                                         : try_module() || try_own();
      if (is_found) continue;
      if (!other.empty())
        mismatch.other.push_back(other);
      else if (!is_counter(name))
        mismatch.extra.push_back(entry.name);
    }
    mismatch.missing = state_ != nullptr ? missing_of_module(given, covered) : missing_own(covered);
    return mismatch;
  }

  std::vector<Wanted> take_wanted() { return std::move(wanted_); }

 private:
  bool has(std::string_view name) const { return own_->contains(name) || by_name_.contains(name); }

  bool is_wrapped() const {
    return !weights_->empty() && std::all_of(weights_->begin(), weights_->end(), [&](const StateTensor& entry) {
      return without_wrapper(entry.name) != entry.name && !has(entry.name);
    });
  }

  bool add_of_module(std::string_view name, const Tensor& tensor, std::set<std::string_view>& given,
                     std::string& other) {
    const auto at = by_name_.find(name);
    if (at == by_name_.end()) return false;
    const StateTensor& entry = (*state_)[at->second];
    given.insert(entry.name);
    const std::string want = form_of(*entry.tensor, entry.transposed);
    if (want != form_of(tensor)) {
      other = fmt::format("{} is {} in the file and {} in the module", shown(name), form_of(tensor), want);
      return false;
    }
    wanted_.push_back(
        {std::string(name), entry.tensor, entry.transposed ? turned(tensor) : std::make_shared<Tensor>(tensor)});
    return true;
  }

  bool add_own(std::string_view name, const Tensor& tensor, std::set<const Tensor*>& covered, std::string& other) {
    const auto at = own_->find(name);
    if (at == own_->end()) return false;
    const Tensor& before = *at->second.front().tensor;
    for (const OwnWeight& each : at->second) covered.insert(each.tensor.get());
    if (before.dims != tensor.dims || before.dtype != tensor.dtype) {
      other = fmt::format("{} is {} in the file and {} in the model", shown(name), form_of(tensor), form_of(before));
      return false;
    }
    for (const OwnWeight& each : at->second)
      wanted_.push_back({std::string(name), each.tensor, std::make_shared<Tensor>(tensor)});
    return true;
  }

  /// Whether training changes it: a parameter, statistics of a BatchNorm, or what was quantised; and not a constant of
  /// the code.
  bool is_trained(const StateTensor& entry) const {
    if (entry.trainable || entry.name.ends_with(".running_mean") || entry.name.ends_with(".running_var")) return true;
    const Tensor& tensor = *entry.tensor;
    return is_integer(tensor.dtype) && info(tensor.dtype).bits <= 8 && tensor.count() > 1;
  }

  std::vector<std::string> missing_of_module(const std::set<std::string_view>& given,
                                             const std::set<const Tensor*>& covered) const {
    std::vector<std::string> missing;
    for (const StateTensor& entry : *state_) {
      if (given.contains(entry.name) || !is_trained(entry)) continue;
      const std::set<const Tensor*> constants = back_->constants_of(entry.tensor);
      const bool is_covered =
          !constants.empty() && std::all_of(constants.begin(), constants.end(), [&](const Tensor* each) {
            return covered.contains(each) || each->count() <= 1;
          });
      if (!is_covered) missing.push_back(entry.name);
    }
    return missing;
  }

  std::vector<std::string> missing_own(const std::set<const Tensor*>& covered) const {
    std::vector<std::string> missing;
    for (const auto& [name, all] : *own_) {
      const OwnWeight& weight = all.front();
      if (covered.contains(weight.tensor.get()) || weight.value == nullptr || weight.value->uses.empty()) continue;
      const Tensor& tensor = *weight.tensor;
      const bool is_weight = (is_float(tensor.dtype) || is_complex(tensor.dtype)) && tensor.count() > 1;
      if (weight.value->trainable || (is_weight && !is_result_name(name))) missing.emplace_back(name);
    }
    return missing;
  }

  const OwnWeights* own_;
  const std::vector<StateTensor>* weights_;
  const std::vector<StateTensor>* state_ = nullptr;
  const WeightsBack* back_ = nullptr;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::vector<Wanted> wanted_;
};

/// Whether a weight of the same sizes might be turned around in the file.
bool has_squares(const std::vector<StateTensor>& weights) {
  return std::any_of(weights.begin(), weights.end(), [](const StateTensor& each) {
    return each.tensor->dims.size() == 2 && each.tensor->dims[0] == each.tensor->dims[1] && each.tensor->count() > 1;
  });
}

Value* find_result(Graph& graph, const std::string& name) {
  for (Node& node : graph) {
    for (Value* output : node.outputs()) {
      if (output != nullptr && output->name == name) return output;
    }
  }
  return nullptr;
}

/// A result that was computed from weights becomes a weight itself.
void make_weight(Graph& graph, Value* result, const TensorPtr& tensor) {
  Value* own = graph.add_initializer(result->name, tensor);
  std::swap(own->name, result->name);
  graph.replace_uses(result, own);
}

/// Weights of which a file has one for all that are equal become several, each with bytes of its own. False where there
/// are none.
bool part_copies(Graph& graph) {
  const size_t before = graph.initializers().size();
  part_weights(graph);
  std::set<const uint8_t*> seen;
  for (Value* value : graph.initializers()) {
    if (!value->constant || value->constant->data.empty() || seen.insert(value->constant->data.data()).second) continue;
    auto own = std::make_shared<Tensor>(*value->constant);
    const std::string_view bytes = own->data.view();
    own->data = Bytes::own(std::vector<uint8_t>(bytes.begin(), bytes.end()));
    own->source = {};
    value->constant = std::move(own);
  }
  return graph.initializers().size() > before;
}

/// A conversion's weights, which a file replaces.
class Replacement {
 public:
  Replacement(Model& model, const std::vector<StateTensor>& weights, const std::string& path)
      : model_(&model), weights_(&weights), path_(&path) {}

  void run(const MakeModule& make_module) {
    collect_own();
    try_to_put(make_module);
    if (!is_to_be_parted_) return;
    collect_own();
    try_to_put(make_module);
  }

 private:
  void collect_own() {
    own_.clear();
    constants_.clear();
    collect(*model_->graph, own_);
    for (Function& function : model_->functions) collect(*function.body, own_);
    for (const auto& [name, all] : own_) {
      for (const OwnWeight& each : all) constants_.push_back(each.tensor);
    }
  }

  void try_to_put(const MakeModule& make_module) {
    WeightNames own(own_, *weights_);
    const Mismatch direct = own.match(NamesOf::Own);
    if (direct.is_none() && !has_squares(*weights_)) return put(own, {});
    std::optional<Mismatch> nearest;
    std::string note;
    for (const bool flat : {false, true}) {
      const std::optional<ModuleWeights> made = module_of(make_module, flat, note);
      if (!made) break;
      const WeightsBack back(made->origins, constants_);
      WeightNames names(own_, *weights_);
      names.add_module(*made, back);
      if (names.match(NamesOf::Module).is_none()) return put(names, made->origins);
      if (direct.is_none()) continue;
      const bool is_own = direct.extra.empty() && direct.other.empty();
      Mismatch both = names.match(is_own ? NamesOf::OwnFirst : NamesOf::ModuleFirst);
      if (both.is_none()) return put(names, made->origins);
      if (!nearest) nearest = std::move(both);
    }
    if (direct.is_none()) return put(own, {});
    nearest.value_or(direct).fail(*path_, note);
  }

  static std::optional<ModuleWeights> module_of(const MakeModule& make_module, bool flat, std::string& note) {
    try {
      return make_module(flat);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) throw;
      note = "; the model becomes no module whose names they could have: " + std::string(e.what());
      return std::nullopt;
    }
  }

  void put(WeightNames& names, const Origins& origins) {
    WeightsBack back(origins, constants_);
    for (Wanted& each : names.take_wanted())
      back.want(std::move(each.name), std::move(each.before), std::move(each.now));
    back.solve();
    if (back.has_conflict() && !is_to_be_parted_ && part_copies(*model_->graph)) {
      is_to_be_parted_ = true;
      return;
    }
    std::vector<std::string> failures;
    for (const auto& [name, why] : back.failures()) failures.push_back(fmt::format("{} ({})", name, why));
    for (const auto& [name, result] : back.replaced()) {
      if (find_result(*model_->graph, name) == nullptr)
        failures.push_back(result.wanted_by + " (it is computed from constants that cannot give these numbers)");
    }
    if (!failures.empty())
      fail_invalid("the model has no place for these weights of {}: {}", shown(*path_), listed(failures));
    apply(back);
  }

  void apply(const WeightsBack& back) {
    for (const auto& [name, all] : own_) {
      for (const OwnWeight& each : all) {
        const TensorPtr now = back.find_new(each.tensor);
        if (now == nullptr) continue;
        Node* changed = each.node;
        if (each.node != nullptr) {
          each.node->set_attribute("value", now, AttrType::Tensor);
        } else {
          each.value->constant = now;
          each.value->sparse = nullptr;
          changed = each.value->graph->owner;
        }
        if (changed != nullptr) changed->mark_changed();
      }
    }
    if (!back.replaced().empty()) make_weights(back.replaced());
  }

  /// What only the nodes used that computed the results goes away with them.
  void make_weights(const std::map<std::string, WeightsBack::Replaced>& results) {
    Graph& graph = *model_->graph;
    std::set<const Value*> kept(graph.inputs().begin(), graph.inputs().end());
    for (const Value* value : graph.initializers()) {
      if (value->uses.empty()) kept.insert(value);
    }
    for (const auto& [name, result] : results) make_weight(graph, find_result(graph, name), result.tensor);
    remove_unused_nodes(graph);
    graph.remove_initializers([&](const Value& value) { return value.uses.empty() && !kept.contains(&value); });
  }

  Model* model_;
  const std::vector<StateTensor>* weights_;
  const std::string* path_;
  OwnWeights own_;
  std::vector<TensorPtr> constants_;
  bool is_to_be_parted_ = false;  // weights that were equal, of which the file has one
};

}  // namespace

void replace_weights(Model& model, const std::vector<StateTensor>& weights, const std::string& path,
                     const MakeModule& make_module) {
  Replacement(model, weights, path).run(make_module);
}

}  // namespace tonnx
