// verify.cpp - the judge of two models for programs that have a runtime.
#include <algorithm>

#include "api/internal.h"
#include "verify/judge.h"

namespace tonnx::v1 {

namespace inner = core::judge;

Runner::~Runner() = default;
std::string Runner::title() const { return "a model"; }
std::vector<Runner::Range> Runner::ranges() const { return {}; }
const Model* Runner::model() const { return nullptr; }
Runner::Numerics Runner::numerics() const { return {}; }
std::vector<Runner::Step> Runner::inner() const { return {}; }
std::vector<Tensor> Runner::run_inner(const std::vector<Tensor>& /*inputs*/, const std::vector<size_t>& /*places*/) {
  return {};
}

std::vector<Runner::Step> Runner::trace(const std::vector<Tensor>& inputs, const Visit& visit) {
  constexpr uint64_t kBytesAtOnce = uint64_t{1} << 30;  // values that are held at the same time
  std::vector<Step> steps = inner();
  for (size_t at = 0, count = 16; at < steps.size();) {
    std::vector<size_t> places;
    for (size_t i = at; i < std::min(at + count, steps.size()); ++i) places.push_back(i);
    const std::vector<Tensor> values = run_inner(inputs, places);
    uint64_t used = 1;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].dtype() == DType::Undefined) continue;
      visit(at + i, values[i]);
      used += values[i].bytes().size();
    }
    at += count;
    count = std::max<size_t>(1, std::min<uint64_t>(4 * count, count * kBytesAtOnce / used / 2));
  }
  return steps;
}

ProbedRunner::~ProbedRunner() = default;
std::vector<Tensor> ProbedRunner::run_with(const std::vector<Tensor>& /*inputs*/, const ByPlace& /*given*/) {
  throw Error(Error::Kind::Unsupported, "its values cannot be replaced");
}
std::vector<Tensor> ProbedRunner::recompute(const std::vector<Tensor>& /*inputs*/, const ByPlace& /*given*/,
                                            const std::vector<size_t>& /*wanted*/) {
  throw Error(Error::Kind::Unsupported, "its values cannot be replaced");
}
std::optional<Gradients> ProbedRunner::gradients(const std::vector<Tensor>& /*inputs*/, const Factors& /*factors*/,
                                                 bool /*is_inside*/) {
  return std::nullopt;
}

CannotRun::~CannotRun() = default;
ShapeUnknown::~ShapeUnknown() = default;
ShapeUnknown::ShapeUnknown(std::string input)
    : Error(Error::Kind::InvalidModel, "nothing says what shape input '" + input + "' has: give its shape, or inputs"),
      input_(std::move(input)) {}

namespace {

/// A tensor of the caller's whose bytes are there.
core::TensorPtr inner_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::Undefined) return nullptr;
  return Access::tensor(tensor);
}

inner::Tensors inner_of(const std::vector<Tensor>& tensors) {
  inner::Tensors result;
  for (const Tensor& tensor : tensors) result.push_back(inner_of(tensor));
  return result;
}

std::vector<Tensor> outer_of(const inner::Tensors& tensors) {
  std::vector<Tensor> result;
  for (const core::TensorPtr& tensor : tensors) result.push_back(Access::tensor(tensor));
  return result;
}

ProbedRunner::ByPlace outer_of(const inner::ByPlace& values) {
  ProbedRunner::ByPlace result;
  for (const auto& [place, value] : values) result.emplace_back(place, Access::tensor(value));
  return result;
}

inner::Size size_of(const Dim& dim) {
  return dim.is_number() ? inner::Size{dim.number, {}} : inner::Size{-1, dim.text};
}

inner::Step inner_of(Runner::Step step) {
  return {std::move(step.name),   std::move(step.op),      std::move(step.parents), std::move(step.layer),
          std::move(step.module), std::move(step.weights), std::move(step.paths)};
}

/// A runner of the caller's, as the judge sees it.
class Adapter : public inner::Runner {
 public:
  Adapter(v1::Runner& runner, const Model* model)
      : runner_(runner), probed_(dynamic_cast<ProbedRunner*>(&runner)), model_(model) {
    if (model_ == nullptr) model_ = guarded([&] { return runner_.model(); });
  }

  std::string title() const override {
    return guarded([&] { return runner_.title(); });
  }

  std::vector<inner::Input> inputs() const override {
    std::vector<inner::Input> result;
    for (const v1::Runner::Value& value : guarded([&] { return runner_.inputs(); })) {
      inner::Input& input = result.emplace_back(inner::Input{value.name, core_of(value.type.dtype), {}, value.limit});
      if (!value.type.shape) continue;
      input.shape.emplace();
      for (const Dim& dim : *value.type.shape) input.shape->push_back(size_of(dim));
    }
    return result;
  }

  std::vector<inner::SizeRange> ranges() const override {
    std::vector<inner::SizeRange> result;
    for (const v1::Runner::Range& range : guarded([&] { return runner_.ranges(); }))
      result.push_back({range.name, range.low, range.high});
    return result;
  }

  const core::Model* model() const override { return model_ == nullptr ? nullptr : &Access::content(*model_).model(); }

  inner::Rounding rounding() const override {
    const v1::Runner::Numerics found = guarded([&] { return runner_.numerics(); });
    inner::Rounding result{{found.layers, found.numbers}};
    if (found.precision == DType::Float16) result.precision = inner::Precision::Float16;
    if (found.precision == DType::BFloat16) result.precision = inner::Precision::BFloat16;
    if (found.is_quantised) result.precision = inner::Precision::Quantised;
    return result;
  }

  std::vector<std::string> outputs() const override {
    return guarded([&] { return runner_.outputs(); });
  }

  inner::Tensors run(const inner::Tensors& inputs) override {
    return required(guarded([&] { return runner_.run(outer_of(inputs)); }));
  }

  std::vector<inner::Step> trace(const inner::Tensors& inputs, const inner::Visit& visit) override {
    std::vector<inner::Step> result;
    const v1::Runner::Visit see = [&](size_t place, const Tensor& value) {
      if (core::TensorPtr tensor = inner_of(value)) visit(place, tensor);
    };
    for (v1::Runner::Step& step : guarded([&] { return runner_.trace(outer_of(inputs), see); }))
      result.push_back(inner_of(std::move(step)));
    return result;
  }

  inner::Tensors fetch(const inner::Tensors& inputs, const std::vector<size_t>& places) override {
    if (places.empty()) return {};
    inner::Tensors values = inner_of(guarded([&] { return runner_.run_inner(outer_of(inputs), places); }));
    core::require(values.size() == places.size(), "a runner gives {} values inside where it is asked for {}",
                  values.size(), places.size());
    return values;
  }

  inner::Tensors run_with(const inner::Tensors& inputs, const inner::ByPlace& given) override {
    require_probed();
    return required(guarded([&] { return probed_->run_with(outer_of(inputs), outer_of(given)); }));
  }

  inner::Tensors recompute(const inner::Tensors& inputs, const inner::ByPlace& given,
                           const std::vector<size_t>& wanted) override {
    require_probed();
    return inner_of(guarded([&] { return probed_->recompute(outer_of(inputs), outer_of(given), wanted); }));
  }

  std::optional<inner::Gradients> gradients(const inner::Tensors& inputs, const inner::Factors& factors,
                                            bool is_inside) override {
    if (probed_ == nullptr) return std::nullopt;
    const ProbedRunner::Factors factor = [&](size_t place, const Tensor& value) -> Tensor {
      core::TensorPtr found = factors(place, inner_of(value));
      return found ? Access::tensor(std::move(found)) : Tensor();
    };
    const auto found = guarded([&] { return probed_->gradients(outer_of(inputs), factor, is_inside); });
    if (!found) return std::nullopt;
    inner::Gradients result{{}, found->work};
    for (const WeightGradient& each : found->weights)
      result.weights.push_back({each.name, inner_of(each.weight), each.gradient ? inner_of(*each.gradient) : nullptr});
    return result;
  }

 private:
  /// What a caller's function throws is a failure of its runner, if it is an error at all. What the judge itself throws
  /// out of a callback passes through.
  template <class Body>
  static auto guarded(Body&& body) -> decltype(body()) {
    try {
      return body();
    } catch (const Error& e) {
      throw inner::Failure{std::current_exception(), core_of(e.kind()), e.what()};
    } catch (const core::Error&) {
      throw;
    } catch (const std::exception& e) {
      throw inner::Failure{std::current_exception(), core::ErrorKind::InvalidModel, e.what()};
    }
  }

  static inner::Tensors required(const std::vector<Tensor>& tensors) {
    inner::Tensors result = inner_of(tensors);
    for (const core::TensorPtr& tensor : result)
      core::require(tensor != nullptr, "a runner gives an output of no type");
    return result;
  }

  void require_probed() const {
    if (probed_ == nullptr)
      throw inner::Failure{nullptr, core::ErrorKind::Unsupported, "its values cannot be replaced"};
  }

  v1::Runner& runner_;
  ProbedRunner* probed_;
  const Model* model_;
};

OutputComparison public_of(const inner::OutputComparison& found) {
  return {found.name, found.counterpart, found.type, found.elements, found.wrong,   found.max_abs, found.max_rel,
          found.mse,  found.cosine,      found.rtol, found.atol,     found.is_same, found.why,     found.is_rounding};
}

LayerComparison public_of(const inner::LayerComparison& found) {
  LayerComparison layer;
  static_cast<OutputComparison&>(layer) = public_of(static_cast<const inner::OutputComparison&>(found));
  layer.index = found.index;
  layer.counterpart_index = found.counterpart_index;
  layer.layer = found.layer;
  layer.op = found.op;
  layer.module = found.module;
  layer.counterpart_layer = found.counterpart_layer;
  layer.counterpart_op = found.counterpart_op;
  layer.weights = found.weights;
  layer.covers = found.covers;
  layer.how = static_cast<LayerComparison::How>(found.how);
  layer.depth = found.depth;
  return layer;
}

inner::OutputComparison inner_of(const OutputComparison& output) {
  inner::OutputComparison found;
  static_cast<inner::Measured&>(found) = {output.type,    output.elements, output.wrong,  output.max_abs,
                                          output.max_rel, output.mse,      output.cosine, output.rtol,
                                          output.atol,    output.is_same,  output.why};
  found.name = output.name;
  found.counterpart = output.counterpart;
  found.is_rounding = output.is_rounding;
  return found;
}

VerifyResult public_of(const inner::Report& report, uint64_t seed) {
  VerifyResult result;
  result.is_same = report.is_same();
  result.inputs = report.inputs;
  result.is_random = report.is_random;
  result.draws = report.draws;
  for (const auto& output : report.outputs) result.outputs.push_back(public_of(output));
  result.missing = report.missing;
  for (const auto& layer : report.layers) result.layers.push_back(public_of(layer));
  if (report.first_difference) result.first_difference = public_of(*report.first_difference);
  result.is_hidden_difference = report.is_hidden_difference;
  result.inside = report.inside;
  result.steps = report.steps;
  if (report.coverage)
    result.coverage = {report.coverage->weights, report.coverage->outputs, report.coverage->inside,
                       report.coverage->hidden};
  for (const auto& check : report.sizes)
    result.sizes.push_back({check.name, check.is_compared, check.sizes, check.is_same, check.why, check.note});
  result.left_out = report.left_out;
  result.verdict = inner::verdict_of(report);
  result.difference = inner::difference_in(report);
  result.text = inner::text_of(report, seed);
  return result;
}

inner::Options inner_of(const VerifyOptions& options) {
  inner::Options result;
  for (const auto& [name, tensor] : options.inputs) result.given.data.emplace_back(name, Access::tensor(tensor));
  result.given.shapes = map_of(options.shapes);
  result.given.seed = options.seed;
  result.given.fill = static_cast<inner::Fill>(options.fill);
  result.draws = options.draws;
  result.rtol = options.rtol;
  result.atol = options.atol;
  result.layers = options.layers;
  result.outputs_only = options.outputs_only;
  result.may_drop_outputs = options.may_drop_outputs;
  result.memory = options.memory;
  if (options.on_progress)
    result.tell = [tell = options.on_progress](const char* what, size_t done, size_t all) { tell(what, done, all); };
  return result;
}

VerifyResult judged(Runner& reference, Runner& other, const Model* model, const VerifyOptions& options) {
  return translated([&] {
    try {
      Adapter a(reference, model), b(other, nullptr);
      return public_of(inner::judge(a, b, inner_of(options)), options.seed);
    } catch (const inner::CannotRun& e) {
      throw CannotRun(static_cast<Error::Kind>(e.failure.kind), e.failure.text);
    } catch (const inner::ShapeUnknown& e) {
      throw ShapeUnknown(e.input);
    } catch (const inner::Failure& e) {
      if (e.thrown) throw CallersException{e.thrown};
      core::fail(e.kind, "{}", e.text);
    }
  });
}

}  // namespace

VerifyResult verify(Runner& reference, Runner& other, const VerifyOptions& options) {
  return judged(reference, other, nullptr, options);
}
VerifyResult verify(Runner& reference, Runner& other, const Model& model, const VerifyOptions& options) {
  return judged(reference, other, &model, options);
}

std::string OutputComparison::text() const { return inner::line_of(inner_of(*this)); }

std::string LayerComparison::title() const {
  inner::LayerComparison found;
  found.name = name;
  found.counterpart = counterpart;
  found.layer = layer;
  found.op = op;
  found.module = module;
  found.counterpart_layer = counterpart_layer;
  found.counterpart_op = counterpart_op;
  found.weights = weights;
  found.covers = covers;
  return inner::title_of(found);
}

std::string SizeCheck::text() const {
  return inner::text_of(inner::SizeCheck{name, is_compared, sizes, is_same, why, note});
}

std::string Coverage::text() const { return inner::text_of(inner::Coverage{weights, outputs, inside, hidden}); }

}  // namespace tonnx::v1
