// verify.cpp - runs two models on the same inputs, and compares what they give.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/verify_coverage.h"
#include "api/verify_inside.h"
#include "api/verify_sizes.h"
#include "base/join.h"

namespace tonnx::v1 {

Runner::~Runner() = default;
std::vector<std::string> Runner::inner() const { return {}; }
std::vector<Tensor> Runner::run_inner(const std::vector<Tensor>& /*inputs*/,
                                      const std::vector<std::string>& /*names*/) {
  return {};
}

namespace {

/// For each name of b the place of that of a: by name, or by place where the names say nothing.
std::vector<size_t> paired(const std::vector<std::string>& a, const std::vector<std::string>& b, const char* what) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> result(b.size(), kNone);
  std::vector<bool> is_taken(a.size());
  for (size_t i = 0; i < b.size(); ++i) {
    for (size_t j = 0; j < a.size() && result[i] == kNone; ++j) {
      if (!is_taken[j] && (a[j] == b[i] || identifier(a[j]) == identifier(b[i]))) {
        result[i] = j;
        is_taken[j] = true;
      }
    }
  }
  for (size_t i = 0; i < b.size(); ++i) {
    if (result[i] != kNone) continue;
    const auto left = std::find(is_taken.begin(), is_taken.end(), false);
    if (a.size() != b.size() || left == is_taken.end())
      core::fail_invalid("the {} '{}' of the second model has no counterpart in the first, which has {}", what, b[i],
                         core::joined(a));
    *left = true;
    result[i] = static_cast<size_t>(left - is_taken.begin());
  }
  return result;
}

constexpr const char* kHidden = "differs where no output shows it";

class Verification {
 public:
  Verification(Runner& a, Runner& b, const Model::Content& content, const VerifyOptions& options)
      : a_(a), b_(b), options_(options), graph_(content.graph()), rounding_(rounding_of(content.model())) {
    inputs_ = callers([&] { return a.inputs(); });
    others_ = callers([&] { return b.inputs(); });
    outputs_ = callers([&] { return a.outputs(); });
    const auto names = [](const std::vector<Runner::Value>& values) {
      std::vector<std::string> result;
      for (const Runner::Value& value : values) result.push_back(value.name);
      return result;
    };
    input_pairs_ = paired(names(inputs_), names(others_), "input");
    output_pairs_ = paired(outputs_, callers([&] { return b.outputs(); }), "output");
    for (const auto& shape : options.shapes) require_input(shape.first);
    for (const auto& input : options.inputs) require_input(input.first);
    take_hints(content.model(), content.is_onnx());
    find_open_sizes();
  }

  /// `coverage`: what is to be known of the weights; null where nobody asks.
  VerifyResult run(Coverage* coverage) {
    constexpr int kMostDraws = 6;
    const bool is_random = options_.inputs.size() < inputs_.size();
    const int least = is_random ? std::max(options_.draws, 1) : 1;
    const int most = is_random && coverage != nullptr ? std::max(least, kMostDraws) : least;
    std::vector<Tensor> telling;  // the inputs at which the models differ, or the first ones
    for (int draw = 0; draw < most; ++draw) {
      const bool was_same = result_.is_same;
      if (draw >= least && (!was_same || coverage->is_complete())) break;
      if (!compare_draw(draw, draw >= least)) break;
      for (const OutputComparison& output : result_.outputs) result_.is_same = result_.is_same && output.is_same;
      if (draw == 0 || was_same != result_.is_same) telling = feeds_;
      if (coverage != nullptr && result_.is_same && (draw == 0 || !coverage->is_complete())) note_outputs(*coverage);
      result_.draws = draw + 1;
    }
    const bool is_proved = coverage == nullptr || (coverage->weights > 0 && coverage->is_complete());
    const bool looks_closer = result_.is_same && !is_proved && !options_.rtol && !options_.atol;
    if (options_.layers || looks_closer) look_inside(telling, coverage);
    return std::move(result_);
  }

 private:
  /// False where the draw is one more than was asked for, and nothing for these models.
  bool compare_draw(int draw, bool is_more) {
    try {
      compare(draw);
      return true;
    } catch (const CallersException&) {
      if (!is_more) throw;
      return false;
    }
  }

  void note_outputs(Coverage& coverage) {
    std::vector<Compared> in_a, in_b;
    const std::vector<std::string> names = callers([&] { return b_.outputs(); });
    for (size_t j = 0; j < second_.size(); ++j) {
      const OutputComparison& output = result_.outputs[j];
      in_a.push_back({outputs_[output_pairs_[j]], first_[output_pairs_[j]], output.rtol, output.atol});
      in_b.push_back({names[j], second_[j], output.rtol, output.atol});
    }
    if (!note_influence({b_, feeds_of_other(feeds_)}, in_b, false, coverage))
      note_influence({a_, feeds_}, in_a, false, coverage);
  }

  void look_inside(const std::vector<Tensor>& feeds, Coverage* coverage) {
    const RunnerAtInputs a{a_, feeds}, b{b_, feeds_of_other(feeds)};
    result_.layers = compared_inside(a, b, graph_, rounding_, options_);
    if (!result_.is_same) return;
    if (const LayerComparison* hidden = find_hidden(a, b, graph_, rounding_, options_, result_.layers)) {
      result_.layers[static_cast<size_t>(hidden - result_.layers.data())].why = kHidden;
      result_.is_same = false;
    }
    if (coverage == nullptr || coverage->is_complete()) return;
    if (!note_layers(b, result_.layers, true, *coverage)) note_layers(a, result_.layers, false, *coverage);
  }

  void require_input(const std::string& name) const {
    const bool is_one =
        std::any_of(inputs_.begin(), inputs_.end(), [&](const auto& each) { return each.name == name; });
    core::require(is_one, "the model has no input '{}'", name);
  }

  /// What the model tells of each input of the first runner: by name, or by place where there are as many.
  void take_hints(const core::Model& model, bool is_onnx) {
    ModelHints hints = hints_of(model, is_onnx);
    needs_ = std::move(hints.needs);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto at = std::find_if(hints.inputs.begin(), hints.inputs.end(), [&](const InputHint& hint) {
        return identifier(hint.name) == identifier(inputs_[i].name);
      });
      InputHint hint;
      if (at != hints.inputs.end()) {
        hint = *at;
      } else if (hints.inputs.size() == inputs_.size()) {
        hint = hints.inputs[i];
      }
      hints_.push_back(std::move(hint));
    }
  }

  /// One dimension of an input: what either runner, the model, and the options say of it.
  struct Declared {
    std::optional<int64_t> number;
    std::vector<std::string> names;      // that it has
    std::vector<core::Dim> expressions;  // over other names
  };

  static void declare(const Dim& dim, Declared& declared) {
    if (dim.is_number()) {
      declared.number = declared.number.value_or(dim.number);
    } else if (!dim.text.empty()) {
      declared.names.push_back(dim.text);
      const auto expression = find_expression(dim.text);
      if (expression && !expression->symbol_name() && !expression->is_constant())
        declared.expressions.push_back(*expression);
    }
  }

  std::vector<Declared> declared_of(size_t i) const {
    std::vector<std::vector<Dim>> shapes;
    if (inputs_[i].type.shape) shapes.push_back(*inputs_[i].type.shape);
    for (size_t j = 0; j < others_.size(); ++j) {
      if (input_pairs_[j] == i && others_[j].type.shape) shapes.push_back(*others_[j].type.shape);
    }
    const Tensor* data = given(i);
    const std::vector<int64_t>* sizes = nullptr;
    for (const auto& [name, shape] : options_.shapes) {
      if (name == inputs_[i].name) sizes = &shape;
    }
    core::require(data != nullptr || sizes != nullptr || !shapes.empty(), "nothing says what shape the input '{}' has",
                  inputs_[i].name);
    const size_t rank = data != nullptr ? data->dims().size() : sizes != nullptr ? sizes->size() : shapes[0].size();
    std::vector<Declared> result(rank);
    for (size_t d = 0; d < rank; ++d) {
      if (data != nullptr) result[d].number = data->dims()[d];
      if (sizes != nullptr && (*sizes)[d] >= 0 && data == nullptr) result[d].number = (*sizes)[d];
    }
    for (const std::vector<Dim>& shape : shapes) {
      core::require(shape.size() == rank, "the input '{}' has {} dimensions, and {}", inputs_[i].name, shape.size(),
                    rank);
      for (size_t d = 0; d < rank; ++d) declare(shape[d], result[d]);
    }
    const auto& known = hints_[i].shape;
    if (known && known->size() == rank) {
      for (size_t d = 0; d < rank; ++d) {
        const core::Dim& dim = (*known)[d];
        declare(dim.is_constant() ? Dim(*dim.constant()) : Dim(dim.text()), result[d]);
      }
    }
    return result;
  }

  /// All open sizes, where each is declared first, and those that are not open.
  void find_open_sizes() {
    std::map<std::string, SizePlace> names;
    SizesByName fixed;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      dims_.push_back(declared_of(i));
      for (size_t d = 0; d < dims_[i].size(); ++d) {
        for (const std::string& name : dims_[i][d].names) {
          names.try_emplace(name, SizePlace{d, dims_[i].size()});
          if (dims_[i][d].number) fixed.try_emplace(name, *dims_[i][d].number);
        }
        has_open_sizes_ = has_open_sizes_ || !dims_[i][d].number;
      }
    }
    for (const auto& dims : dims_) {  // what is made of other names follows from them
      for (const Declared& dim : dims) {
        for (const core::Dim& expression : dim.expressions) {
          const std::set<std::string> used = names_in(expression);
          const bool is_composed = std::all_of(used.begin(), used.end(), [&](const auto& name) {
            return names.contains(name) && std::find(dim.names.begin(), dim.names.end(), name) == dim.names.end();
          });
          if (is_composed && !dim.number)
            std::for_each(dim.names.begin(), dim.names.end(), [&](auto& n) { names.erase(n); });
        }
      }
    }
    choices_ = size_choices(names, needs_, fixed);
  }

  int64_t size_of(const Declared& dim, size_t place, size_t rank, SizesByName& sizes, const SizeRule& rule) const {
    std::optional<int64_t> size = dim.number;
    for (const std::string& name : dim.names) {
      if (const auto at = sizes.find(name); at != sizes.end() && !size) size = at->second;
    }
    for (const core::Dim& expression : dim.expressions) {
      const auto value = value_of(expression, sizes);
      if (!size && value && *value >= 0) size = value;
    }
    if (!size) size = rule(place, rank);
    for (const std::string& name : dim.names) sizes.try_emplace(name, *size);
    return *size;
  }

  const Tensor* given(size_t i) const {
    const auto at = std::find_if(options_.inputs.begin(), options_.inputs.end(),
                                 [&](const auto& given) { return given.first == inputs_[i].name; });
    return at == options_.inputs.end() ? nullptr : &at->second;
  }

  using Shapes = std::vector<std::vector<int64_t>>;

  Shapes shapes_of(const SizeChoice& choice) const {
    SizesByName sizes = choice.sizes;
    Shapes shapes;
    for (const std::vector<Declared>& dims : dims_) {
      std::vector<int64_t>& shape = shapes.emplace_back();
      for (size_t d = 0; d < dims.size(); ++d) shape.push_back(size_of(dims[d], d, dims.size(), sizes, choice.rule));
    }
    return shapes;
  }

  /// How long a sequence is: the largest size that is open in an input of several dimensions.
  int64_t length_of(const Shapes& shapes) const {
    int64_t length = 1;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (hints_[i].is_length || shapes[i].size() < 2) continue;
      size_t place = 1;
      for (size_t d = shapes[i].size() - 1; d > 0; --d) {
        if (!dims_[i][d].number) place = d;
      }
      length = std::max(length, shapes[i][place]);
    }
    return length;
  }

  static bool is_too_large(const Shapes& shapes) {
    constexpr int64_t kLargestInput = int64_t{1} << 24;
    return std::any_of(shapes.begin(), shapes.end(),
                       [](const std::vector<int64_t>& shape) { return core::count_of(shape) > kLargestInput; });
  }

  std::vector<Tensor> feeds(int number, const Shapes& shapes, bool is_cautious) const {
    std::vector<Tensor> result;
    const int64_t length = length_of(shapes);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (const Tensor* data = given(i)) {
        result.push_back(converted(*data, inputs_[i].type.dtype));
        continue;
      }
      DType dtype = inputs_[i].type.dtype;
      for (size_t j = 0; j < others_.size(); ++j) {
        if (input_pairs_[j] == i && dtype == DType::Undefined) dtype = others_[j].type.dtype;
      }
      if (dtype == DType::Undefined) dtype = DType::Float32;
      const uint64_t seed = options_.seed + static_cast<uint64_t>(number) * 1000 + i;
      result.push_back(random_tensor(dtype, shapes[i], hints_[i], {number, seed, length, is_cautious}));
    }
    return result;
  }

  std::vector<Tensor> feeds_of_other(const std::vector<Tensor>& feeds) const {
    std::vector<Tensor> mine;
    for (size_t j = 0; j < others_.size(); ++j)
      mine.push_back(converted(feeds[input_pairs_[j]], others_[j].type.dtype));
    return mine;
  }

  std::vector<Tensor> run_other(const std::vector<Tensor>& feeds) {
    const std::vector<Tensor> mine = feeds_of_other(feeds);
    return callers([&] { return b_.run(mine); });
  }

  void run_both() {
    first_ = callers([&] { return a_.run(feeds_); });
    second_ = run_other(feeds_);
  }

  /// Settles on the first sizes with which both can run; then, with integers that are all 1.
  void find_sizes() {
    std::exception_ptr problem;
    for (const bool is_cautious : {false, true}) {
      std::set<Shapes> seen;
      for (const SizeChoice& choice : choices_) {
        const Shapes shapes = shapes_of(choice);
        if ((!seen.empty() && is_too_large(shapes)) || !seen.insert(shapes).second) continue;
        try {
          feeds_ = feeds(0, shapes, is_cautious);
          run_both();
          shapes_ = shapes;
          is_cautious_ = is_cautious;
          return;
        } catch (const CallersException&) {
          if (!problem) problem = std::current_exception();
        }
        if (!has_open_sizes_) break;
      }
      if (!has_open_sizes_ && is_cautious) break;
    }
    std::rethrow_exception(problem);
  }

  void compare(int draw) {
    if (draw == 0) {
      find_sizes();
    } else {
      feeds_ = feeds(draw, shapes_, is_cautious_);
      run_both();
    }
    core::require(first_.size() == outputs_.size() && second_.size() == output_pairs_.size(),
                  "a model gives {} and {} outputs, and says that it gives {} and {}", first_.size(), second_.size(),
                  outputs_.size(), output_pairs_.size());
    if (draw == 0) {
      for (size_t i = 0; i < feeds_.size(); ++i) {
        const std::span<const int64_t> dims = feeds_[i].dims();
        result_.inputs.emplace_back(inputs_[i].name,
                                    text_of(Type::tensor(feeds_[i].dtype(), {dims.begin(), dims.end()})));
      }
    }
    std::vector<Tensor> near;
    for (size_t j = 0; j < second_.size(); ++j) {
      const size_t i = output_pairs_[j];
      OutputComparison found = compared(outputs_[i], first_[i], second_[j], nullptr, rounding_, options_);
      if (!found.is_same && found.why.empty() && !options_.rtol && !options_.atol) {
        if (near.empty()) near = run_near();
        found = compared(outputs_[i], first_[i], second_[j], &near.at(i), rounding_, options_);
      }
      keep_worst(j, std::move(found));
    }
  }

  std::vector<Tensor> run_near() {
    std::vector<Tensor> off;
    for (const Tensor& feed : feeds_) off.push_back(perturbed(feed));
    return callers([&] { return a_.run(off); });
  }

  void keep_worst(size_t j, OutputComparison found) {
    if (j == result_.outputs.size()) {
      result_.outputs.push_back(std::move(found));
      return;
    }
    OutputComparison& kept = result_.outputs[j];
    const bool is_worse = found.is_same == kept.is_same ? found.max_rel > kept.max_rel : !found.is_same;
    if (is_worse) kept = std::move(found);
  }

  Runner &a_, &b_;
  const VerifyOptions& options_;
  const core::Graph& graph_;
  Rounding rounding_;
  std::vector<Runner::Value> inputs_, others_;
  std::vector<std::string> outputs_;
  std::vector<size_t> input_pairs_, output_pairs_;
  std::vector<InputHint> hints_;  // of the inputs of the first
  std::vector<SizeNeed> needs_;
  std::vector<std::vector<Declared>> dims_;
  std::vector<SizeChoice> choices_;
  bool has_open_sizes_ = false;
  Shapes shapes_;
  bool is_cautious_ = false;
  std::vector<Tensor> feeds_, first_, second_;
  VerifyResult result_;
};

std::string line_of(const OutputComparison& output) {
  if (!output.why.empty() && output.why != kHidden)
    return fmt::format("{}  {}  {}  DIFFERS", output.name, output.type, output.why);
  std::string line = fmt::format("{}  {}  max abs {:.3g}  mse {:.2g}  max rel {:.3g}  cosine {:.8f}", output.name,
                                 output.type, output.max_abs, output.mse, output.max_rel, output.cosine);
  if (!output.is_same)
    line += fmt::format("  DIFFERS in {} of {} (rtol {:.2g}, atol {:.2g})", output.wrong, output.elements, output.rtol,
                        output.atol);
  if (output.why == kHidden) line += ", and no output shows it";
  return line;
}

}  // namespace

VerifyResult verify(Runner& reference, Runner& other, const Model& model, const VerifyOptions& options) {
  return translated([&] { return Verification(reference, other, Access::content(model), options).run(nullptr); });
}

VerifyResult verify(Runner& reference, Runner& other, const Model& model, Coverage& coverage,
                    const VerifyOptions& options) {
  coverage = {};
  return translated([&] { return Verification(reference, other, Access::content(model), options).run(&coverage); });
}

std::string VerifyResult::first_difference() const {
  const auto at = std::find_if(outputs.begin(), outputs.end(), [](const auto& output) { return !output.is_same; });
  if (at != outputs.end()) return line_of(*at);
  const LayerComparison* hidden = hidden_layer();
  return hidden != nullptr ? line_of(*hidden) : std::string();
}

const LayerComparison* VerifyResult::hidden_layer() const {
  const auto at = std::find_if(layers.begin(), layers.end(), [](const auto& layer) { return layer.why == kHidden; });
  return at == layers.end() ? nullptr : &*at;
}

const LayerComparison* VerifyResult::first_layer() const {
  const auto at = std::find_if(layers.begin(), layers.end(), [](const auto& layer) { return !layer.is_same; });
  return at == layers.end() ? nullptr : &*at;
}

std::string VerifyResult::text() const {
  std::string text;
  for (const auto& [name, type] : inputs) text += fmt::format("input    {}  {}\n", name, type);
  for (const OutputComparison& output : outputs) text += "output   " + line_of(output) + "\n";
  if (!layers.empty()) {
    const auto wrong = std::count_if(layers.begin(), layers.end(), [](const auto& layer) { return !layer.is_same; });
    text += fmt::format("layers   {} compared, {} differ\n", layers.size(), wrong);
  }
  if (const LayerComparison* layer = hidden_layer() != nullptr ? hidden_layer() : first_layer())
    text += fmt::format("first layer that differs: {} = {}\n         {}\n", layer->name, layer->counterpart,
                        line_of(*layer));
  return text + (is_same ? "THE SAME\n" : "DIFFERENT\n");
}

}  // namespace tonnx::v1
