// module.cpp - models on their way to modules in memory: weights are copied meanwhile, and callers take nodes over.
#include "api/internal.h"

// behind it, as it says which names the sources of the library use
#include <tonnx/module.h>

#include "base/computed.h"
#include "base/copies.h"

namespace tonnx::v1 {
namespace {

/// Memory that weights lie in.
class UsedMemory {
 public:
  /// Adds a part; true where none of it was there.
  bool add(const core::Bytes& bytes) {
    const uint8_t *begin = bytes.data(), *end = begin + bytes.size();
    const auto next = ends_.lower_bound(begin);
    const bool is_free =
        (next == ends_.end() || next->first >= end) && (next == ends_.begin() || std::prev(next)->second <= begin);
    if (is_free) ends_.emplace_hint(next, begin, end);
    return is_free;
  }

 private:
  std::map<const uint8_t*, const uint8_t*> ends_;  // by their beginning; no two overlap
};

using CopiesPtr = std::unique_ptr<core::Copies>;

/// Copies the constants of a graph that lie in files, or belong to others.
CopiesPtr copies_of(const core::Graph& graph) {
  std::vector<core::Bytes> sources;
  UsedMemory used;
  for (const core::Value* value : graph.initializers()) {
    if (!value->constant) continue;
    const core::Bytes& data = value->constant->data;
    if (!data.empty() && !data.owner()->is_own() && !core::is_computed(data) && used.add(data)) sources.push_back(data);
  }
  return std::make_unique<core::Copies>(std::move(sources));
}

/// Puts each weight into memory of its own, where it is not there yet; `begun` has some of them.
CopiesPtr give_memory(std::vector<core::Tensor>& tensors, const core::Copies* begun) {
  std::vector<core::Tensor*> foreign;
  std::vector<core::Bytes> sources;
  UsedMemory used;
  for (core::Tensor& tensor : tensors) {
    if (tensor.data.empty()) continue;
    const bool is_first = used.add(tensor.data);
    // a small file can have many weights that lie at the same place
    if (!is_first) core::budget().take(core::Resource::Memory, static_cast<int64_t>(tensor.data.size()));
    if (is_first && tensor.data.owner()->is_own() && !core::is_computed(tensor.data)) continue;
    if (const auto copy = is_first && begun != nullptr ? begun->place_of(tensor.data) : std::nullopt) {
      tensor.data = *copy;
      continue;
    }
    foreign.push_back(&tensor);
    sources.push_back(tensor.data);
  }
  auto copies = std::make_unique<core::Copies>(std::move(sources));
  for (size_t i = 0; i < foreign.size(); ++i) foreign[i]->data = copies->places()[i];
  return copies;
}

std::vector<core::StateTensor> weights_of(const std::vector<ModuleWeight>& state) {
  std::vector<core::StateTensor> result;
  for (const ModuleWeight& weight : state) {
    core::require(!weight.transposed || weight.tensor.dims().size() == 2,
                  "the weight '{}' is transposed, and has {} dimensions", weight.name, weight.tensor.dims().size());
    result.push_back({weight.name, Access::tensor(weight.tensor), weight.transposed, weight.trainable});
  }
  return result;
}

std::vector<core::ExternalNode> nodes_of(const std::vector<ExternalOp>& external) {
  std::vector<core::ExternalNode> result;
  for (const ExternalOp& op : external)
    result.push_back({op.domain == "ai.onnx" ? std::string() : op.domain, op.op, op.version});
  return result;
}

std::vector<core::ExternalModule> modules_of(const std::vector<ExternalModule>& external) {
  std::vector<core::ExternalModule> result;
  for (const ExternalModule& each : external)
    result.push_back({each.import_line, each.constructor, weights_of(each.state)});
  return result;
}

}  // namespace

struct WeightCopies::Content {
  std::vector<CopiesPtr> parts;
};

WeightCopies::WeightCopies(WeightCopies&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
WeightCopies& WeightCopies::operator=(WeightCopies&& other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
WeightCopies::~WeightCopies() { delete content_; }
void WeightCopies::wait() {
  if (content_ == nullptr) return;
  translated([&] {
    for (const CopiesPtr& part : content_->parts) part->wait();
  });
}

struct ModuleConversion::Content {
  explicit Content(Model given) : model(std::move(given)) {}

  enum class Step : uint8_t { Read, Prepared, Lowered, Written };

  /// Says which call is missing, or was one too many.
  void require_step(Step wanted, const char* what) const {
    static constexpr const char* kDone[] = {"read", "prepared", "lowered", "written"};
    core::require(step == wanted, "{}() is for a model that was {}, and this one is {}", what,
                  kDone[static_cast<size_t>(wanted)], kDone[static_cast<size_t>(step)]);
  }
  Model::Content& inner() { return Access::content(model); }
  core::Model& graph_model() { return inner().model(); }

  /// The code, with the module that is told of but not made here.
  core::PythonModule python(const core::PythonOptions& options) { return compilation->python(options); }
  std::vector<const core::Node*> external_nodes() {
    return core::external_nodes(graph_model(), compilation ? compilation->lowering() : core::LoweringOptions());
  }
  void require_modules(size_t count) {
    const size_t nodes = external_nodes().size();
    core::require(count == nodes, "{} modules are given for {} nodes that are taken over", count, nodes);
  }

  Model model;
  Step step = Step::Read;
  std::optional<core::Compilation> compilation;  // from the step on that prepares it
  CopiesPtr copies;
};

ModuleConversion::ModuleConversion(Model model) : content_(new Content(std::move(model))) {}
ModuleConversion::ModuleConversion(ModuleConversion&& other) noexcept
    : content_(std::exchange(other.content_, nullptr)) {}
ModuleConversion& ModuleConversion::operator=(ModuleConversion&& other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
ModuleConversion::~ModuleConversion() { delete content_; }

Model& ModuleConversion::model() { return content_->model; }
const Model& ModuleConversion::model() const { return content_->model; }

bool ModuleConversion::has_external(const std::vector<ExternalOp>& external) const {
  return translated([&] {
    core::LoweringOptions options;
    options.external = nodes_of(external);
    return !core::external_nodes(content_->graph_model(), options).empty();
  });
}

std::vector<UnsupportedOp> ModuleConversion::unsupported(const std::vector<ExternalOp>& external) const {
  return translated([&] {
    if (!content_->inner().is_onnx()) return content_->model.unsupported(Format::Python);
    core::LoweringOptions options;
    options.external = nodes_of(external);
    return unsupported_in(content_->inner(), options);
  });
}

void ModuleConversion::begin_copies() {
  translated([&] { content_->copies = copies_of(*content_->graph_model().graph); });
}

void ModuleConversion::prepare(const std::vector<ExternalOp>& external) {
  translated([&] {
    content_->require_step(Content::Step::Read, "prepare");
    Model::Content& inner = content_->inner();
    const ModelBudget budget(inner);
    if (inner.is_onnx()) {
      check_edited(inner);
    } else {
      core::require(external.empty(), "operators of a program of PyTorch cannot be taken over");
    }
    content_->compilation.emplace(inner.program, inner.dialect);
    content_->compilation->lowering().external = nodes_of(external);
    content_->compilation->bring_to(inner.is_onnx() ? core::Dialect::Onnx : core::Dialect::Exported);
    if (!inner.is_onnx()) inner.dialect = core::Dialect::Exported;
    content_->step = Content::Step::Prepared;
  });
}

std::vector<NodeView> ModuleConversion::external_nodes() const {
  return translated([&] {
    std::vector<NodeView> result;
    for (const core::Node* node : content_->external_nodes()) result.push_back(view_of(node));
    return result;
  });
}

void ModuleConversion::lower(const std::vector<ExternalCall>& calls, const std::vector<std::string>& allow_ops) {
  translated([&] {
    content_->require_step(Content::Step::Prepared, "lower");
    Model::Content& inner = content_->inner();
    const ModelBudget budget(inner);
    if (inner.is_onnx()) {
      core::require(allow_ops.empty(), "operators are allowed in programs of PyTorch, and this is a model of ONNX");
      const size_t nodes = content_->external_nodes().size();
      core::require(calls.empty() || calls.size() == nodes, "{} calls are given for {} nodes that are taken over",
                    calls.size(), nodes);
      auto& mappings = content_->compilation->lowering().mappings;
      mappings.clear();
      for (const ExternalCall& call : calls) mappings.push_back({call.inputs, call.outputs});
    }
    content_->compilation->options().allow_ops = core::AllowedOps(allow_ops);
    content_->compilation->bring_to(core::Dialect::Code);
    content_->step = Content::Step::Lowered;
  });
}

ModuleCode ModuleConversion::code(const ModuleCodeOptions& options,
                                  const std::vector<std::vector<ModuleWeight>>& external) {
  return translated([&] {
    content_->require_step(Content::Step::Lowered, "code");
    content_->require_modules(external.size());
    const ModelBudget budget(content_->inner());
    std::vector<std::vector<core::StateTensor>> states;
    for (const std::vector<ModuleWeight>& state : external) states.push_back(weights_of(state));
    core::PythonOptions python = core::memory_options(options.title, std::move(states));
    python.flat = options.flat;
    core::PythonModule module = content_->python(python);
    for (const core::ExternalModule& each : python.external)
      module.state.resize(module.state.size() - each.state.size());
    std::vector<core::Tensor> tensors;
    for (const core::StateTensor& entry : module.state) {
      core::Tensor& tensor = tensors.emplace_back();  // without what else holds on to the file
      tensor.dtype = entry.tensor->dtype;
      tensor.dims = entry.tensor->dims;
      tensor.data = entry.tensor->data;
    }
    ModuleCode result;
    result.copies.content_ = new WeightCopies::Content;
    if (!options.mapped) result.copies.content_->parts.push_back(give_memory(tensors, content_->copies.get()));
    if (content_->copies) result.copies.content_->parts.push_back(std::move(content_->copies));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const core::StateTensor& entry = module.state[i];
      result.state.push_back({entry.name, Access::tensor(std::make_shared<core::Tensor>(std::move(tensors[i]))),
                              entry.transposed, entry.trainable});
    }
    for (auto& [name, of] : module.tied) result.tied.emplace_back(std::move(name), module.state[of].name);
    result.source = std::move(module.source);
    content_->step = Content::Step::Written;
    return result;
  });
}

void ModuleConversion::write(const std::string& path, const std::vector<ExternalModule>& external, bool flat) {
  translated([&] {
    content_->require_step(Content::Step::Lowered, "write");
    content_->require_modules(external.size());
    const ModelBudget budget(content_->inner());
    core::PythonOptions options = core::file_options(path, flat);
    options.external = modules_of(external);
    core::write_python_files(content_->python(options), path);
    content_->step = Content::Step::Written;
  });
}

void write_module(const std::string& path, std::string source, const std::vector<ExternalModule>& external,
                  const std::vector<ModuleWeight>& state) {
  translated([&] {
    core::PythonOptions options = core::file_options(path, /*flat=*/false);
    options.external = modules_of(external);
    core::PythonModule module;
    module.state = weights_of(state);
    module.source = core::source_for_file(std::move(source), options, module.state);
    core::write_python_files(module, path);
  });
}

}  // namespace tonnx::v1
