// config.cpp - the conversions that a YAML file asks for, each checked before any is done.
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/bytes.h"
#include "base/glob.h"
#include "base/nearest.h"
#include "batch/text.h"
#include "formats/onnx/onnx.h"
#include "formats/torchscript/torchscript.h"

namespace tonnx {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr size_t kMaxJobs = 1'000'000;
constexpr size_t kMaxValues = 10'000'000;

std::string key_of(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(path, error);
  return (error ? fs::absolute(path).lexically_normal() : canonical).string();
}

class Expansion {
 public:
  Expansion(const BatchText& text, const std::string& path, Verifying verifying, const std::string& here,
            Mistakes& mistakes)
      : text_(text), folder_(fs::path(path).parent_path()), here_(here), verifying_(verifying), mistakes_(mistakes) {}

  std::vector<BatchJob> run() {
    check_verification();
    for (const auto& [path, shapes] : text_.shapes) shapes_.emplace(key_of((here_ / path).string()), &shapes.value);
    for (const BatchEntry& entry : text_.models) add(entry);
    if (!inputs_.empty() && is_every_model_read_) check_inputs(text_.defaults, inputs_);
    check_shapes();
    for (const auto& [key, job] : sources_) {
      const auto target = targets_.find(key);
      if (target != targets_.end())
        mistakes_.add(target->second.line, fmt::format("the target '{}' is a source too", shown(job)));
    }
    return std::move(jobs_);
  }

 private:
  struct Owner {
    std::string source;
    int line;
  };

  /// What is said of a model at the top must be of one that is read, and of an input that it has.
  void check_shapes() {
    for (const auto& [path, shapes] : text_.shapes) {
      const std::string key = key_of((here_ / path).string());
      if (!sources_.contains(key))
        mistakes_.add(shapes.line,
                      fmt::format("'{}' is no source of a model; paths in 'input_shapes' are from where the "
                                  "command is run",
                                  shown(path)));
      const auto inputs = inputs_of_.find(key);
      if (inputs == inputs_of_.end()) continue;
      for (const auto& [name, shape] : shapes.value) {
        if (inputs->second.contains(name)) continue;
        const Names known(inputs->second.begin(), inputs->second.end());
        mistakes_.add(shape.line, fmt::format("'{}' has no input '{}'{}", shown(path), shown(name),
                                              shown(did_you_mean(name, known))));
      }
    }
  }

  const InputShapes* shapes_at_top(const std::string& source) const {
    if (shapes_.empty()) return nullptr;
    const auto at = shapes_.find(key_of(source));
    return at == shapes_.end() ? nullptr : at->second;
  }

  void check_verification() {
    if (verifying_ != Verifying::Impossible) return;
    const auto check = [&](const BatchEntry& entry) {
      if (entry.verifies && entry.verifies->value)
        mistakes_.add(
            entry.verifies->line,
            "'verify' needs ONNX Runtime and PyTorch: run `python -m tonnx run` instead, or with --no-verify");
    };
    check(text_.defaults);
    for (const BatchEntry& entry : text_.models) check(entry);
  }

  void add(const BatchEntry& entry) {
    const std::vector<Located<std::string>>& targets = entry.has_targets ? entry.targets : text_.defaults.targets;
    if (!entry.has_targets && !text_.defaults.has_targets)
      mistakes_.add(entry.line, "the model has no 'target' or 'targets'");
    std::set<std::string> used;  // inputs of options that some model has
    bool is_read = false;
    taken_.clear();
    const size_t mistakes_before = mistakes_.size();
    for (const Located<std::string>& source : entry.sources) {
      const std::vector<std::string> files = files_matching((folder_ / source.value).string());
      if (files.empty()) {
        mistakes_.add(source.line, is_pattern(source.value)
                                       ? fmt::format("no file matches '{}'", shown(source.value))
                                       : fmt::format("there is no file '{}'", shown(source.value)));
      }
      for (const std::string& file : files) {
        if (!is_convertible(file, source)) continue;
        BatchJob job = job_of(entry, file);
        is_read |= fit_inputs(entry, source.line, job, used);
        for (const Located<std::string>& target : targets) add_job(job, target);
      }
    }
    if (is_read) check_inputs(entry, used);
    if (mistakes_.size() == mistakes_before) check_options(entry);
  }

  bool is_convertible(const std::string& file, const Located<std::string>& source) {
    if (!target_endings(file).empty()) return true;
    mistakes_.add(source.line, fmt::format("cannot read '{}': tonnx reads {}", shown(file), readable_endings()));
    return false;
  }

  BatchJob job_of(const BatchEntry& entry, const std::string& file) const {
    const BatchEntry& defaults = text_.defaults;
    BatchJob job;
    job.source = file;
    job.convert.opset = entry.opset ? entry.opset : defaults.opset;
    job.convert.limits = entry.limits ? *entry.limits : defaults.limits.value_or(Limits());
    job.convert.allow_ops = entry.allow_ops ? *entry.allow_ops : defaults.allow_ops.value_or(AllowedOps());
    job.convert.external_data = entry.external_data ? entry.external_data : defaults.external_data;
    job.convert.source_lines = entry.source_lines ? entry.source_lines : defaults.source_lines;
    job.convert.flat = entry.flat.value_or(defaults.flat.value_or(false));
    if (entry.simplifies.value_or(defaults.simplifies.value_or(false)) && find_format(file) == Format::Onnx)
      job.simplify = entry.simplify ? *entry.simplify : defaults.simplify.value_or(SimplifyOptions());
    const auto& verifies = entry.verifies ? entry.verifies : defaults.verifies;
    if (verifies && verifies->value && verifying_ == Verifying::Asked) {
      job.verify = entry.verify ? *entry.verify : defaults.verify.value_or(VerifyOptions());
      if (!job.verify->data.empty()) job.verify->data = (folder_ / job.verify->data).string();
    }
    return job;
  }

  /// Shapes for all models, of the inputs that the code of a TorchScript archive has.
  void add_default_shapes(BatchJob& job, std::set<std::string>& used) {
    const BudgetScope scope(job.convert.limits);
    std::vector<std::string> names;
    try {
      names = read_torchscript_inputs(job.source);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) throw;
      is_every_model_read_ = false;
      return;
    }
    inputs_.insert(names.begin(), names.end());
    for (const auto& [path, dims] : text_.defaults.input_shapes) {
      if (std::find(names.begin(), names.end(), path.substr(0, path.find('.'))) == names.end()) continue;
      used.insert(path);
      inputs_.insert(path);
      job.convert.input_shapes.emplace(path, dims.value);
    }
  }

  /// Gives the job the shapes and sizes of inputs that its model has. False where the model cannot be read, which is
  /// no mistake of the file: the conversion will fail.
  bool fit_inputs(const BatchEntry& entry, int line, BatchJob& job, std::set<std::string>& used) {
    const BatchEntry& defaults = text_.defaults;
    const auto& dynamic = entry.dynamic ? entry.dynamic : defaults.dynamic;
    job.convert.input_types = entry.input_types;
    const InputShapes* const at_top = shapes_at_top(job.source);
    const bool has_sizes =
        !entry.input_shapes.empty() || !defaults.input_shapes.empty() || dynamic || !text_.shapes.empty();
    if (!has_sizes && !job.simplify) return false;
    if (find_format(job.source) == Format::TorchScript) {  // its own code says what the inputs are called
      for (const InputShapes* shapes : {at_top, &entry.input_shapes}) {
        if (shapes == nullptr) continue;
        for (const auto& [name, dims] : *shapes) job.convert.input_shapes[name] = dims.value;
      }
      if (!defaults.input_shapes.empty()) add_default_shapes(job, used);
      if (entry.dynamic)
        mistakes_.add(line, fmt::format("'dynamic' is not for '{}': sizes that are -1 in 'input_shapes' are open",
                                        shown(job.source)));
      return false;
    }
    if (find_format(job.source) != Format::Onnx) {
      if (!entry.input_shapes.empty() || entry.dynamic)
        mistakes_.add(
            line, fmt::format("the sizes of the inputs of '{}' are fixed since it was exported", shown(job.source)));
      return false;
    }
    const BudgetScope scope(job.convert.limits);
    Model model;
    try {
      model = read_onnx(job.source);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) throw;
      is_every_model_read_ = false;
      return false;
    }
    std::vector<std::string_view> shapeless;
    for (const Value* input : inputs_without_values(*model.graph)) {
      used.insert(input->name);
      inputs_.insert(input->name);
      inputs_of_[key_of(job.source)].insert(input->name);
      take_shape(entry, at_top, *input, job);
      if (dynamic) take_sizes(*dynamic, *input, job);
      const bool is_open = input->type.is_tensor() && !input->type.shape;
      const bool is_needed = job.simplify || !text_.shapes.empty();
      if (is_open && is_needed && !job.convert.input_shapes.contains(input->name)) shapeless.push_back(input->name);
    }
    for (const std::string_view name : shapeless) {
      mistakes_.add(line, fmt::format("input '{}' of '{}' has no shape{}: give it in 'input_shapes'", shown(name),
                                      shown(job.source), job.simplify ? ", and simplification needs one" : ""));
    }
    return true;
  }

  void take_shape(const BatchEntry& entry, const InputShapes* at_top, const Value& input, BatchJob& job) {
    const bool is_own = entry.input_shapes.contains(input.name);
    const bool is_at_top = !is_own && at_top != nullptr && at_top->contains(input.name);
    const InputShapes& shapes = is_own ? entry.input_shapes : is_at_top ? *at_top : text_.defaults.input_shapes;
    const auto at = shapes.find(input.name);
    if (at == shapes.end()) return;
    const std::vector<int64_t>& dims = at->second.value;
    if (input.type.shape && input.type.shape->size() != dims.size()) {
      mistakes_.add(at->second.line,
                    fmt::format("input '{}' of '{}' has {} dimensions, and {} are given", shown(input.name),
                                shown(job.source), input.type.shape->size(), dims.size()));
      return;
    }
    job.convert.input_shapes[input.name] = dims;
  }

  void take_sizes(const std::vector<Located<DynamicDim>>& dynamic, const Value& input, BatchJob& job) {
    for (const Located<DynamicDim>& dim : dynamic) {
      const bool is_noted = std::any_of(job.convert.dynamic.begin(), job.convert.dynamic.end(),
                                        [](const DynamicDim& each) { return each.input.empty(); });
      if (dim.value.input.empty() && !is_noted) job.convert.dynamic.push_back(dim.value);
      if (dim.value.input != input.name) continue;
      const auto given = job.convert.input_shapes.find(input.name);
      const bool has_rank = input.type.shape || given != job.convert.input_shapes.end();
      const auto rank = static_cast<int64_t>(input.type.shape ? input.type.shape->size()
                                             : has_rank       ? given->second.size()
                                                              : 0);
      if (!has_rank || dim.value.axis < -rank || dim.value.axis >= rank) {
        mistakes_.add(dim.line, has_rank ? fmt::format("input '{}' of '{}' has {} dimensions, and none of number {}",
                                                       shown(input.name), shown(job.source), rank, dim.value.axis)
                                         : fmt::format("input '{}' of '{}' has no shape: give it in 'input_shapes'",
                                                       shown(input.name), shown(job.source)));
        continue;
      }
      job.convert.dynamic.push_back(dim.value);
    }
  }

  /// What an entry says of inputs must be said of an input that one of its models has; what the defaults say, of one
  /// that any model has.
  void check_inputs(const BatchEntry& entry, const std::set<std::string>& used) {
    const auto check = [&](const std::string& name, int line) {
      if (used.contains(name)) return;
      mistakes_.add(line, fmt::format("no model has an input '{}'; there are: {}", shown(name),
                                      shown(nearest_list(name, Names(used.begin(), used.end())))));
    };
    for (const auto& [name, shape] : entry.input_shapes) check(name, shape.line);
    if (!entry.dynamic) return;
    for (const Located<DynamicDim>& dim : *entry.dynamic) {
      if (!dim.value.input.empty()) check(dim.value.input, dim.line);
    }
  }

  void add_job(BatchJob job, const Located<std::string>& target) {
    const auto path = expand(target, job.source);
    if (!path) return;
    job.target = *path;
    const std::vector<std::string> endings = target_endings(job.source);
    std::string ending = fs::path(job.target).extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
    if (std::find(endings.begin(), endings.end(), ending) == endings.end()) {
      mistakes_.add(target.line, fmt::format("cannot write '{}' from '{}': tonnx writes {} from it", shown(job.target),
                                             shown(job.source), fmt::join(endings, ", ")));
      return;
    }
    drop_meaningless(job);
    bool is_free = claim(job, job.target, target.line);
    if (ending == ".py") {
      const std::string weights = fs::path(job.target).replace_extension(".safetensors").string();
      is_free = claim(job, weights, target.line) && is_free;
    }
    sources_.emplace(key_of(job.source), job.source);
    if (jobs_.size() == kMaxJobs) fail_invalid("there are more than {} conversions", kMaxJobs);
    values_ += values_of(job);
    if (values_ > kMaxValues)
      fail_invalid("the conversions repeat lists of options more than {} values long", kMaxValues);
    if (is_free) jobs_.push_back(std::move(job));
  }

  /// Options that mean nothing for this target stay with those that they mean something for.
  void drop_meaningless(BatchJob& job) {
    const Route way{*find_format(job.source), *find_format(job.target)};
    const auto keep = [&](RouteOption option) {
      if (way.takes(option)) taken_.insert(option);
      return way.takes(option);
    };
    if (!keep(RouteOption::Opset)) job.convert.opset.reset();
    if (!keep(RouteOption::ExternalData)) job.convert.external_data.reset();
    if (!keep(RouteOption::AllowOps)) job.convert.allow_ops = {};
    if (!keep(RouteOption::SourceLines)) job.convert.source_lines.reset();
    if (!keep(RouteOption::Flat)) job.convert.flat = false;
    if (!keep(RouteOption::InputTypes)) job.convert.input_types.clear();
  }

  /// What the entry itself, not the defaults, asks for must mean something for one of its targets.
  void check_options(const BatchEntry& entry) {
    const auto check = [&](bool is_given, RouteOption option, std::string_view name, std::string_view meaning) {
      if (is_given && !taken_.contains(option))
        mistakes_.add(entry.line, fmt::format("'{}' is for {}, and the model has none", name, meaning));
    };
    check(entry.opset.has_value(), RouteOption::Opset, "opset", "a target in ONNX");
    check(entry.external_data.has_value(), RouteOption::ExternalData, "external_data", "a target in ONNX");
    check(entry.allow_ops.has_value(), RouteOption::AllowOps, "allow_ops", "a .pt2 source and a target with code");
    check(entry.source_lines.has_value(), RouteOption::SourceLines, "source_lines",
          "a .pt2 source and a target in ONNX");
    check(!entry.input_types.empty(), RouteOption::InputTypes, "input_types", "a TorchScript source");
    check(entry.flat.has_value(), RouteOption::Flat, "flat", "a target with code or weights");
  }

  bool claim(const BatchJob& job, const std::string& path, int line) {
    const auto [at, is_free] = targets_.try_emplace(key_of(path), Owner{job.source, line});
    if (!is_free) {
      mistakes_.add(line, fmt::format("'{}' is written from '{}', and from '{}' as line {} says", shown(path),
                                      shown(job.source), shown(at->second.source), at->second.line));
    }
    return is_free;
  }

  /// Puts the parts of the source's name in.
  std::optional<std::string> expand(const Located<std::string>& target, const std::string& source) {
    const fs::path path(source);
    fs::path inner =
        folder_.empty() || path.is_absolute() != folder_.is_absolute() ? path : path.lexically_relative(folder_);
    if (inner.empty()) inner = path;
    std::string dir = inner.parent_path().string();
    if (dir.empty()) dir = ".";
    const std::map<std::string_view, std::string> parts{
        {"stem", path.stem().string()}, {"name", path.filename().string()}, {"dir", dir}};
    std::string result;
    for (std::string_view rest = target.value; !rest.empty();) {
      const size_t open = rest.find('{');
      result += rest.substr(0, open);
      if (open == std::string_view::npos) break;
      const size_t close = rest.find('}', open);
      const std::string_view word = close == std::string_view::npos ? "" : rest.substr(open + 1, close - open - 1);
      const auto part = parts.find(word);
      if (part == parts.end()) {
        mistakes_.add(
            target.line,
            fmt::format("'{}' in a target: there are {{stem}}, {{name}} and {{dir}}",
                        shown(rest.substr(open, close == std::string_view::npos ? close : close - open + 1))));
        return std::nullopt;
      }
      result += part->second;
      rest.remove_prefix(close + 1);
    }
    return (folder_ / result).lexically_normal().string();
  }

  /// How many values of lists the options of a job hold: each job has its own copy.
  static size_t values_of(const BatchJob& job) {
    size_t count = job.convert.dynamic.size() + job.convert.input_types.size();
    for (const auto& [name, dims] : job.convert.input_shapes) count += dims.size();
    if (job.simplify) {
      for (const auto* list :
           {&job.simplify->skip, &job.simplify->only, &job.simplify->enable, &job.simplify->unused_outputs})
        count += list->size();
    }
    if (job.verify) {
      for (const auto& [name, dims] : job.verify->input_shapes) count += dims.size();
    }
    return count;
  }

  const BatchText& text_;
  fs::path folder_, here_;
  Verifying verifying_;
  Mistakes& mistakes_;
  std::vector<BatchJob> jobs_;
  std::set<RouteOption> taken_;                             // by some target of the entry that is looked at
  std::set<std::string> inputs_;                            // of all models that were read
  std::map<std::string, std::set<std::string>> inputs_of_;  // and of each, by path
  std::map<std::string, const InputShapes*> shapes_;        // what is said at the top, by path
  bool is_every_model_read_ = true;
  size_t values_ = 0;
  std::map<std::string, Owner> targets_;        // by path
  std::map<std::string, std::string> sources_;  // by path
};

}  // namespace

BatchConfig read_batch(const std::string& path, Verifying verifying, const std::string& here) {
  return parse_batch_config(map_file(path).view(), path, verifying, here);
}

BatchConfig parse_batch_config(std::string_view source, const std::string& path, Verifying verifying,
                               const std::string& here) {
  if (source.size() > kMaxBytes) fail(ErrorKind::BadFile, "'{}' is too large for a list of models", path);
  Mistakes mistakes;
  const BatchText text = parse_batch(source, mistakes);
  BatchConfig config{path, Expansion(text, path, verifying, here, mistakes).run()};
  mistakes.report(path);
  return config;
}

}  // namespace tonnx
