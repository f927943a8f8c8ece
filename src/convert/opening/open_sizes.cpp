// open_sizes.cpp - makes fixed sizes of a model's inputs open, and everything in the model that follows from them.
#include "convert/opening/open_sizes.h"

#include <optional>

#include "base/error.h"
#include "base/temporary.h"
#include "convert/opening/opener.h"
#include "convert/opening/prove.h"
#include "convert/opening/sample_loop.h"
#include "formats/onnx/onnx.h"
#include "ir/clone.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// Compares what becomes of a model with the model.
class Proof {
 public:
  Proof(const Model& fixed, const OpeningRequest& request, const FixedTypes& types, const Judge& judge)
      : fixed_(fixed), request_(request), types_(types), judge_(judge) {}

  /// Empty where they agree, or nobody can tell.
  std::string difference(const Model& opened) {
    not_judged_.clear();
    std::string answer = compare_opened(fixed_, opened, request_, types_);
    if (judge_ && (answer.empty() || answer.starts_with(kNotJudged))) answer = asked(opened);
    if (!answer.starts_with(kNotJudged)) return answer;
    not_judged_ = answer.substr(kNotJudged.size());
    return "";
  }

  /// Why the last comparison was none; empty where it was one.
  const std::string& not_judged() const { return not_judged_; }

 private:
  std::string asked(const Model& opened) {
    if (!folder_) {
      folder_.emplace();
      source_ = folder_->file("fixed.onnx");
      write_onnx(fixed_, source_);
    }
    const std::string result = folder_->file("open.onnx");
    write_onnx(opened, result);
    return judge_(source_, result);
  }

  const Model& fixed_;
  const OpeningRequest& request_;
  const FixedTypes& types_;
  const Judge& judge_;
  std::optional<TemporaryFolder> folder_;
  std::string source_, not_judged_;
};

/// The text of an error, with what went on around it.
std::string in_one_line(std::string text) {
  for (size_t at = text.find("\n  "); at != std::string::npos; at = text.find("\n  ", at)) text.replace(at, 3, ", ");
  return text;
}

void warn(const OpeningOptions& options, const std::string& text) {
  if (options.warn) options.warn(text);
}

void say_not_judged(const Proof& proof, const OpeningOptions& options) {
  if (!proof.not_judged().empty())
    warn(options, fmt::format("the model with open sizes was not compared with the original: {}", proof.not_judged()));
}

}  // namespace

void open_sizes(Model& model, const std::vector<DynamicDim>& dims, const OpeningOptions& options) {
  constexpr int kMostAttempts = 100;
  const OpeningRequest request = read_request(model, dims);
  const std::vector<Type> declared = output_ranks(model);
  if (request.opened.empty()) {
    declare_open(model, request);
    return infer_outputs(model, declared);
  }
  inline_functions(model);
  const FixedTypes types(model);
  Proof proof(model, request, types, options.judge);
  Choices choices;
  std::optional<Error> reason;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Model opened = clone(model);
    try {
      declare_open(opened, request);
      forget_declared_shapes(opened);
      Opener(opened, types, choices, request.opened, request.samples).open();
      const std::string difference = proof.difference(opened);
      if (!difference.empty()) fail_unsupported("the model cannot be opened: {}", difference);
      say_not_judged(proof, options);
      model = std::move(opened);
      return declare_outputs(*model.graph, declared);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) throw;
      if (!reason) reason = e;
      if (!choices.advance()) break;
    }
  }
  std::optional<Model> loop = loop_over_samples(model, request, types);
  if (!loop || !proof.difference(*loop).empty()) throw *reason;
  warn(options, fmt::format("the model cannot compute several samples at once, so it runs once for each, in a Scan: {}",
                            in_one_line(reason->what())));
  say_not_judged(proof, options);
  model = std::move(*loop);
  declare_outputs(*model.graph, declared);
}

}  // namespace tonnx
