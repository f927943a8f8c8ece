// verify_inside.cpp - finds counterparts among the values inside of two models by what they hold, then by their names,
// and compares them.
#include "api/verify_inside.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <unordered_map>

namespace tonnx::v1 {
namespace {

constexpr size_t kGroups = 64;               // sums that a sketch is made of
constexpr size_t kSample = size_t{1} << 17;  // elements that it is made of, at most
constexpr size_t kNamesAtOnce = 64;          // values that are asked for in one run, before their sizes are known
constexpr uint64_t kBytesAtOnce = uint64_t{1} << 30;  // and when they are
constexpr double kExact = 1e-6;                       // values that are closer are what they seem
constexpr double kLargestNoise = 1e3;

/// What is kept of a value: its distance to another is about that of their sketches.
struct Print {
  std::string kind;  // sizes but for ones, and what sort of numbers it holds: only these are compared
  std::array<double, kGroups> sketch{};
  double norm = 0, lowest = 0, highest = 0;
  uint64_t bytes = 0;
  double same = 1e-3;  // values that are as close as this are taken for the same

  double largest() const { return std::max(-lowest, highest); }
  /// Many values of zeros or ones look the same.
  bool is_telling() const { return lowest < highest; }
};

class Sketcher {
 public:
  Sketcher() : signs_(kSample + kGroups) {
    std::mt19937_64 engine(12);
    for (double& sign : signs_) sign = engine() % 2 == 0 ? 1 : -1;
  }

  Print print_of(const Tensor& tensor) const {
    Print print;
    for (const int64_t size : tensor.dims()) {
      if (size != 1) print.kind += std::to_string(size) + ",";
    }
    print.bytes = tensor.bytes().size();
    if (!holds_numbers(tensor)) {
      print.kind += "other";
      return print;
    }
    const DType dtype = tensor.dtype();
    const char sort = core::info(core_of(dtype)).kind;
    const bool is_quantised = dtype == DType::Int8 || dtype == DType::UInt8;  // which may be floats elsewhere
    print.kind += sort == 'f' || is_quantised ? "float" : sort == 'b' ? "bool" : "int";
    if (dtype == DType::Float16) print.same = 2e-2;
    if (dtype == DType::BFloat16) print.same = 5e-2;
    add_elements(numbers_of(tensor), print);
    return print;
  }

 private:
  void add_elements(const std::vector<double>& numbers, Print& print) const {
    // steps of an odd number pass through all rows and columns
    const size_t step = ((numbers.size() + kSample - 1) / kSample) | 1U;
    double squares = 0;
    size_t k = 0;
    for (size_t i = 0; i < numbers.size(); i += step, ++k) {
      const double number = std::isnan(numbers[i]) ? 0 : std::clamp(numbers[i], -1e30, 1e30);
      print.lowest = k == 0 ? number : std::min(print.lowest, number);
      print.highest = k == 0 ? number : std::max(print.highest, number);
      squares += number * number;
      print.sketch[k % kGroups] += number * signs_[k];
    }
    print.norm = std::sqrt(squares);
  }

  std::vector<double> signs_;
};

double distance(const Print& a, const Print& b) {
  double sum = 0;
  for (size_t i = 0; i < kGroups; ++i) sum += (a.sketch[i] - b.sketch[i]) * (a.sketch[i] - b.sketch[i]);
  return std::sqrt(sum) / std::max({a.norm, b.norm, 1e-30});
}

/// The values inside of one model.
struct Traced {
  std::vector<std::string> names;
  std::vector<Print> prints;
};

std::vector<Tensor> fetched(const RunnerAtInputs& model, const std::vector<Tensor>& inputs,
                            const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::vector<Tensor> values = callers([&] { return model.runner.run_inner(inputs, names); });
  core::require(values.size() == names.size(), "a runner gives {} values inside where it is asked for {}",
                values.size(), names.size());
  return values;
}

Traced trace(const RunnerAtInputs& model, const Sketcher& sketcher) {
  Traced traced{callers([&] { return model.runner.inner(); }), {}};
  for (size_t i = 0; i < traced.names.size(); i += kNamesAtOnce) {
    const auto first = traced.names.begin() + static_cast<std::ptrdiff_t>(i);
    const size_t count = std::min(kNamesAtOnce, traced.names.size() - i);
    for (const Tensor& value : fetched(model, model.inputs, {first, first + static_cast<std::ptrdiff_t>(count)}))
      traced.prints.push_back(sketcher.print_of(value));
  }
  return traced;
}

struct Pair {
  size_t a, b;
};

/// Values that are the same up to rounding belong together; names and order decide between several. Then those that
/// have the same name, whatever they hold.
class Matcher {
 public:
  Matcher(const Traced& a, const Traced& b) : a_(a), b_(b), is_taken_(b.names.size()), of_a_(a.names.size(), kNone) {}

  std::vector<Pair> run() {
    match_values();
    match_names();
    std::vector<Pair> pairs;
    for (size_t i = 0; i < of_a_.size(); ++i) {
      if (of_a_[i] != kNone) pairs.push_back({i, of_a_[i]});
    }
    return pairs;
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  struct Close {
    double distance;
    bool has_other_name;
    double way;  // how far apart their places are
    size_t a, b;
    bool operator<(const Close& other) const {
      return std::tie(distance, has_other_name, way, a, b) <
             std::tie(other.distance, other.has_other_name, other.way, other.a, other.b);
    }
  };

  void match_values() {
    std::unordered_map<std::string, std::vector<size_t>> by_kind;
    for (size_t j = 0; j < b_.names.size(); ++j) by_kind[b_.prints[j].kind].push_back(j);
    std::vector<Close> close;
    for (size_t i = 0; i < a_.names.size(); ++i) {
      const auto at = by_kind.find(a_.prints[i].kind);
      if (at == by_kind.end() || !a_.prints[i].is_telling()) continue;
      for (const size_t j : at->second) {
        const double apart = distance(a_.prints[i], b_.prints[j]);
        if (apart > std::max(a_.prints[i].same, b_.prints[j].same)) continue;
        const double way = std::abs(place(i, a_.names.size()) - place(j, b_.names.size()));
        close.push_back({apart < kExact ? 0 : apart, identifier(a_.names[i]) != identifier(b_.names[j]), way, i, j});
      }
    }
    std::sort(close.begin(), close.end());
    for (const Close& each : close) take(each.a, each.b);
  }

  void match_names() {
    std::unordered_map<std::string, size_t> by_name;
    for (size_t j = 0; j < b_.names.size(); ++j) by_name.emplace(identifier(b_.names[j]), j);
    for (size_t i = 0; i < a_.names.size(); ++i) {
      const auto at = by_name.find(identifier(a_.names[i]));
      if (at != by_name.end() && a_.prints[i].kind == b_.prints[at->second].kind) take(i, at->second);
    }
  }

  static double place(size_t i, size_t count) { return static_cast<double>(i) / static_cast<double>(count); }

  void take(size_t i, size_t j) {
    if (of_a_[i] != kNone || is_taken_[j]) return;
    of_a_[i] = j;
    is_taken_[j] = true;
  }

  const Traced &a_, &b_;
  std::vector<bool> is_taken_;
  std::vector<size_t> of_a_;
};

using ByName = std::unordered_map<std::string, double>;

/// How much more rounding errors weigh than in their inputs: x - mean(x) is as exact as x was large.
ByName noises(const core::Graph& graph, const Traced& traced) {
  ByName largest, noise;
  for (size_t i = 0; i < traced.names.size(); ++i) largest[traced.names[i]] = traced.prints[i].largest();
  for (const core::Node& node : graph) {
    double of_inputs = 1, of_sum = 0;
    for (const core::Value* input : node.inputs()) {
      if (input == nullptr) continue;
      const auto at = noise.find(input->name);
      const double own = at == noise.end() ? 1 : at->second;
      of_inputs = std::max(of_inputs, own);
      if (const auto size = largest.find(input->name); size != largest.end())
        of_sum = std::max(of_sum, own * size->second);
    }
    const std::string_view op = node.op.view();
    const bool is_sum = op == "Add" || op == "Sub" || op == "add" || op == "sub";
    for (const core::Value* output : node.outputs()) {
      if (output == nullptr) continue;
      const auto size = largest.find(output->name);
      const bool is_known = is_sum && size != largest.end() && size->second > 0;
      noise[output->name] = std::clamp(is_known ? of_sum / size->second : of_inputs, 1.0, kLargestNoise);
    }
  }
  return noise;
}

/// A value of the second model in the shape of the first: sizes of one come and go.
Tensor shaped(const Tensor& value, const Tensor& like) {
  if (value.count() != like.count() || !holds_numbers(value)) return value;
  auto result = std::make_shared<core::Tensor>(*Access::tensor(value));
  result->dims.assign(like.dims().begin(), like.dims().end());
  return Access::tensor(std::move(result));
}

class Comparison {
 public:
  Comparison(const RunnerAtInputs& a, const RunnerAtInputs& b, const Rounding& rounding, const VerifyOptions& options)
      : a_(a), b_(b), rounding_(rounding), options_(options) {}

  std::vector<LayerComparison> run(const core::Graph& graph) {
    const Sketcher sketcher;
    in_a_ = trace(a_, sketcher);
    in_b_ = trace(b_, sketcher);
    noise_ = noises(graph, in_a_);
    std::vector<Pair> chunk;
    uint64_t bytes = 0;
    for (const Pair& pair : Matcher(in_a_, in_b_).run()) {
      const uint64_t size = in_a_.prints[pair.a].bytes + in_b_.prints[pair.b].bytes;
      if (!chunk.empty() && bytes + size > kBytesAtOnce) {
        compare(chunk);
        chunk.clear();
        bytes = 0;
      }
      chunk.push_back(pair);
      bytes += size;
    }
    compare(chunk);
    return std::move(layers_);
  }

 private:
  void compare(const std::vector<Pair>& pairs) {
    std::vector<std::string> names_a, names_b, left;
    for (const Pair& pair : pairs) {
      names_a.push_back(in_a_.names[pair.a]);
      names_b.push_back(in_b_.names[pair.b]);
    }
    const std::vector<Tensor> values_a = fetched(a_, a_.inputs, names_a), values_b = fetched(b_, b_.inputs, names_b);
    std::vector<size_t> wrong;
    const size_t begin = layers_.size();
    for (size_t i = 0; i < pairs.size(); ++i) {
      add(names_a[i], names_b[i], values_a[i], shaped(values_b[i], values_a[i]), nullptr);
      if (layers_.back().is_same || options_.rtol || options_.atol) continue;
      wrong.push_back(i);
      left.push_back(names_a[i]);
    }
    std::vector<Tensor> off;
    for (const Tensor& input : a_.inputs) off.push_back(perturbed(input));
    const std::vector<Tensor> near = fetched(a_, off, left);
    for (size_t k = 0; k < wrong.size(); ++k) {
      const size_t i = wrong[k];
      add(names_a[i], names_b[i], values_a[i], shaped(values_b[i], values_a[i]), &near[k]);
      layers_[begin + i] = std::move(layers_.back());
      layers_.pop_back();
    }
  }

  void add(const std::string& name, const std::string& counterpart, const Tensor& a, const Tensor& b,
           const Tensor* near) {
    const auto noise = noise_.find(name);
    LayerComparison layer;
    static_cast<OutputComparison&>(layer) =
        compared(name, a, b, near, rounding_.at(name), options_, noise == noise_.end() ? 1 : noise->second);
    layer.counterpart = counterpart;
    layers_.push_back(std::move(layer));
  }

  const RunnerAtInputs &a_, &b_;
  const Rounding& rounding_;
  const VerifyOptions& options_;
  Traced in_a_, in_b_;
  ByName noise_;
  std::vector<LayerComparison> layers_;
};

}  // namespace

std::string identifier(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return result;
}

std::vector<LayerComparison> compared_inside(const RunnerAtInputs& a, const RunnerAtInputs& b, const core::Graph& graph,
                                             const Rounding& rounding, const VerifyOptions& options) {
  return Comparison(a, b, rounding, options).run(graph);
}

namespace {

/// Asks the first model what it gives with values of the second in place of its own.
class Replacement {
 public:
  Replacement(const RunnerAtInputs& a, const RunnerAtInputs& b, const std::vector<LayerComparison>& layers)
      : a_(a), b_(b), probed_(dynamic_cast<ProbedRunner*>(&a.runner)) {
    for (const LayerComparison& layer : layers) layers_.emplace(identifier(layer.name), &layer);
  }

  bool is_possible() const { return probed_ != nullptr; }
  /// Null where the second model has nothing for a value of the graph.
  const LayerComparison* find(const std::string& name) const {
    const auto at = layers_.find(identifier(name));
    return at == layers_.end() ? nullptr : at->second;
  }

  /// What the second model has in place of a value, as the first would have it.
  Tensor value(const LayerComparison& layer) const {
    const Tensor own = fetched(a_, a_.inputs, {layer.name}).front();
    return converted(shaped(fetched(b_, b_.inputs, {layer.counterpart}).front(), own), own.dtype());
  }

  /// Values of the first model after that. Empty where the runner cannot do it.
  std::vector<Tensor> run(const std::vector<const LayerComparison*>& replaced,
                          const std::vector<std::string>& names) const {
    ProbedRunner::Named values;
    for (const LayerComparison* layer : replaced) values.emplace_back(layer->name, value(*layer));
    try {
      std::vector<Tensor> found = callers([&] { return probed_->run_with(a_.inputs, values, names); });
      return found.size() == names.size() ? std::move(found) : std::vector<Tensor>();
    } catch (const CallersException&) {
      return {};
    }
  }

 private:
  const RunnerAtInputs &a_, &b_;
  ProbedRunner* probed_;
  std::unordered_map<std::string, const LayerComparison*> layers_;
};

/// Finds the layers whose results differ, and not only what they get.
class Suspects {
 public:
  Suspects(const core::Graph& graph, const Replacement& replacement, const Rounding& rounding)
      : replacement_(replacement), rounding_(rounding) {
    for (const core::Node& node : graph) {
      for (const core::Value* output : node.outputs()) {
        if (output != nullptr) producers_.emplace(identifier(output->name), &node);
      }
    }
  }

  /// Of a value that the graph does not have nothing is known: only the first that differs counts then.
  bool is_one(const LayerComparison& layer, bool is_first) const {
    if (layer.is_same || !layer.why.empty()) return false;
    const auto producer = producers_.find(identifier(layer.name));
    if (producer == producers_.end()) return is_first;
    std::vector<const LayerComparison*> before;
    for (const core::Value* input : producer->second->inputs()) {
      const LayerComparison* known = input != nullptr ? replacement_.find(input->name) : nullptr;
      if (known != nullptr) before.push_back(known);
    }
    if (before.empty()) return true;
    const std::vector<Tensor> alone = replacement_.run(before, {layer.name});
    if (alone.empty()) return false;
    VerifyOptions same;
    same.rtol = layer.rtol;
    same.atol = layer.atol;
    return !compared(layer.name, alone.front(), replacement_.value(layer), nullptr, rounding_, same).is_same;
  }

 private:
  const Replacement& replacement_;
  const Rounding& rounding_;
  std::unordered_map<std::string, const core::Node*> producers_;
};

}  // namespace

const LayerComparison* find_hidden(const RunnerAtInputs& a, const RunnerAtInputs& b, const core::Graph& graph,
                                   const Rounding& rounding, const VerifyOptions& options,
                                   const std::vector<LayerComparison>& layers) {
  constexpr int kMostSuspects = 4;
  const Replacement replacement(a, b, layers);
  if (!replacement.is_possible()) return nullptr;
  const Suspects suspects(graph, replacement, rounding);
  const std::vector<std::string> outputs = callers([&] { return a.runner.outputs(); });
  std::vector<Tensor> usual;
  int tried = 0;
  for (const LayerComparison& layer : layers) {
    if (!suspects.is_one(layer, tried == 0)) continue;
    if (++tried > kMostSuspects) return nullptr;
    const std::vector<Tensor> changed = replacement.run({&layer}, outputs);
    if (changed.empty()) continue;
    if (usual.empty()) usual = callers([&] { return a.runner.run(a.inputs); });
    bool shows = usual.size() != changed.size();
    for (size_t i = 0; i < usual.size() && !shows; ++i)
      shows = !compared(outputs[i], usual[i], changed[i], nullptr, rounding, options).is_same;
    if (!shows) return &layer;
  }
  return nullptr;
}

}  // namespace tonnx::v1
