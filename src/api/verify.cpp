// verify.cpp - runs two models on the same inputs, and compares what they give.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "api/verify_numbers.h"
#include "base/join.h"

namespace tonnx::v1 {

Runner::~Runner() = default;

namespace {

/// `gpu_0/data_0` is `gpu_0_data_0` in PyTorch.
std::string identifier(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return result;
}

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

/// Sizes of images and of sequences, in the order in which they are tried until both models can run.
struct Guess {
  int64_t image, sequence;
};
constexpr Guess kGuesses[] = {{64, 8}, {224, 64}, {256, 512}, {512, 16000}, {1, 1}, {2, 2}, {32, 32}, {128, 128}};

int64_t usual(size_t place, size_t rank, const Guess& guess) {
  if (place == 0 && rank > 1) return 1;  // the batch
  return rank >= 4 && place >= 2 ? guess.image : guess.sequence;
}

class Verification {
 public:
  Verification(Runner& a, Runner& b, const core::Model& model, const VerifyOptions& options)
      : a_(a), b_(b), options_(options), rounding_(rounding_of(model)) {
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
  }

  VerifyResult run() {
    const bool is_random = options_.inputs.size() < inputs_.size();
    const int draws = is_random ? std::max(options_.draws, 1) : 1;
    for (int draw = 0; draw < draws; ++draw) compare(draw);
    result_.draws = draws;
    for (const OutputComparison& output : result_.outputs) result_.is_same = result_.is_same && output.is_same;
    return std::move(result_);
  }

 private:
  void require_input(const std::string& name) const {
    const bool is_one =
        std::any_of(inputs_.begin(), inputs_.end(), [&](const auto& each) { return each.name == name; });
    core::require(is_one, "the model has no input '{}'", name);
  }

  /// What is declared of a size by either model, by the shapes that are given, and by the names of sizes.
  std::vector<int64_t> shape_of(size_t i, const Guess& guess, std::map<std::string, int64_t>& sizes) const {
    std::vector<const std::vector<Dim>*> declared;
    if (inputs_[i].type.shape) declared.push_back(&*inputs_[i].type.shape);
    for (size_t j = 0; j < others_.size(); ++j) {
      if (input_pairs_[j] == i && others_[j].type.shape) declared.push_back(&*others_[j].type.shape);
    }
    const std::vector<int64_t>* given = nullptr;
    for (const auto& [name, shape] : options_.shapes) {
      if (name == inputs_[i].name) given = &shape;
    }
    core::require(given != nullptr || !declared.empty(), "nothing says what shape the input '{}' has", inputs_[i].name);
    const size_t rank = given != nullptr ? given->size() : declared[0]->size();
    std::vector<int64_t> result;
    for (size_t d = 0; d < rank; ++d) {
      int64_t size = given != nullptr ? (*given)[d] : -1;
      std::vector<std::string> names;
      for (const auto* shape : declared) {
        core::require(shape->size() == rank, "the input '{}' has {} dimensions, and {}", inputs_[i].name, shape->size(),
                      rank);
        if ((*shape)[d].is_number() && size < 0) size = (*shape)[d].number;
        if (!(*shape)[d].is_number() && !(*shape)[d].text.empty()) names.push_back((*shape)[d].text);
      }
      for (const std::string& name : names) {
        if (const auto at = sizes.find(name); at != sizes.end() && size < 0) size = at->second;
      }
      if (size < 0) size = usual(d, rank, guess);
      for (const std::string& name : names) sizes.try_emplace(name, size);
      result.push_back(size);
    }
    return result;
  }

  std::vector<Tensor> feeds(int draw, const Guess& guess) const {
    std::vector<Tensor> result;
    std::map<std::string, int64_t> sizes;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto at = std::find_if(options_.inputs.begin(), options_.inputs.end(),
                                   [&](const auto& given) { return given.first == inputs_[i].name; });
      if (at != options_.inputs.end()) {
        result.push_back(converted(at->second, inputs_[i].type.dtype));
        continue;
      }
      DType dtype = inputs_[i].type.dtype;
      for (size_t j = 0; j < others_.size(); ++j) {
        if (input_pairs_[j] == i && dtype == DType::Undefined) dtype = others_[j].type.dtype;
      }
      if (dtype == DType::Undefined) dtype = DType::Float32;
      const uint64_t seed = options_.seed + static_cast<uint64_t>(draw) * 1000 + i;
      result.push_back(random_tensor(dtype, shape_of(i, guess, sizes), draw, seed));
    }
    return result;
  }

  std::vector<Tensor> run_other(const std::vector<Tensor>& feeds) {
    std::vector<Tensor> mine;
    for (size_t j = 0; j < others_.size(); ++j)
      mine.push_back(converted(feeds[input_pairs_[j]], others_[j].type.dtype));
    return callers([&] { return b_.run(mine); });
  }

  bool has_open_sizes() const {
    return std::any_of(inputs_.begin(), inputs_.end(), [](const Runner::Value& value) {
      return !value.type.shape || std::any_of(value.type.shape->begin(), value.type.shape->end(),
                                              [](const Dim& dim) { return !dim.is_number(); });
    });
  }

  /// Runs both, with other sizes where one of them cannot run with these.
  void run_both(int draw) {
    while (true) {
      try {
        feeds_ = feeds(draw, kGuesses[guess_]);
        first_ = callers([&] { return a_.run(feeds_); });
        second_ = run_other(feeds_);
        return;
      } catch (const CallersException&) {
        if (draw > 0 || !has_open_sizes() || guess_ + 1 == std::size(kGuesses)) throw;
        ++guess_;
      }
    }
  }

  void compare(int draw) {
    run_both(draw);
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
  Rounding rounding_;
  std::vector<Runner::Value> inputs_, others_;
  std::vector<std::string> outputs_;
  std::vector<size_t> input_pairs_, output_pairs_;
  size_t guess_ = 0;
  std::vector<Tensor> feeds_, first_, second_;
  VerifyResult result_;
};

std::string line_of(const OutputComparison& output) {
  if (!output.why.empty()) return fmt::format("{}  {}  {}  DIFFERS", output.name, output.type, output.why);
  std::string line = fmt::format("{}  {}  max abs {:.3g}  mse {:.2g}  max rel {:.3g}  cosine {:.8f}", output.name,
                                 output.type, output.max_abs, output.mse, output.max_rel, output.cosine);
  if (!output.is_same)
    line += fmt::format("  DIFFERS in {} of {} (rtol {:.2g}, atol {:.2g})", output.wrong, output.elements, output.rtol,
                        output.atol);
  return line;
}

}  // namespace

VerifyResult verify(Runner& reference, Runner& other, const Model& model, const VerifyOptions& options) {
  return translated([&] { return Verification(reference, other, Access::content(model).model(), options).run(); });
}

std::string VerifyResult::first_difference() const {
  const auto at = std::find_if(outputs.begin(), outputs.end(), [](const auto& output) { return !output.is_same; });
  return at == outputs.end() ? std::string() : line_of(*at);
}

std::string VerifyResult::text() const {
  std::string text;
  for (const auto& [name, type] : inputs) text += fmt::format("input    {}  {}\n", name, type);
  for (const OutputComparison& output : outputs) text += "output   " + line_of(output) + "\n";
  return text + (is_same ? "THE SAME\n" : "DIFFERENT\n");
}

}  // namespace tonnx::v1
