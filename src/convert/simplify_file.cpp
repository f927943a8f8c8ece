// simplify_file.cpp - simplification with a judge beside it, and how its result is written.
#include "base/error.h"
#include "base/temporary.h"
#include "convert/simplify.h"
#include "formats/onnx/onnx.h"
#include "ir/clone.h"
#include "passes/frame/rewriter.h"

namespace tonnx {
namespace {

/// Puts two models into files and asks the judge.
class Comparison {
 public:
  Comparison(const Model& source, const Judge& judge) : judge_(judge), source_(source.path) {
    if (!source_.empty()) return;
    source_ = folder_.file("source.onnx");
    write_onnx(source, source_);
  }

  std::string difference(const Model& result) const {
    const std::string path = folder_.file("result.onnx");
    write_onnx(result, path);
    return judge_(source_, path);
  }

 private:
  const Judge& judge_;
  TemporaryFolder folder_;
  std::string source_;
};

void forget_types(Graph& graph) {
  graph.value_declarations.clear();
  for (const Node& node : graph) {
    for (Value* output : node.outputs()) {
      if (output != nullptr && !is_graph_output(output)) output->type = {};
    }
    for (const GraphPtr& subgraph : subgraphs_of(node)) forget_types(*subgraph);
  }
}

/// About how many bytes the types of values between the nodes take in a file.
int64_t size_of_types(const Graph& graph) {
  constexpr size_t kFrame = 14, kSize = 6;
  size_t bytes = 0;
  for (const Node& node : graph) {
    for (const Value* output : node.outputs()) {
      if (output == nullptr || output->type.kind == Type::Kind::Unknown) continue;
      bytes += kFrame + output->name.size();
      if (!output->type.shape) continue;
      for (const Dim& dim : *output->type.shape) bytes += kSize + (dim.is_constant() ? 0 : dim.text().size());
    }
    for (const GraphPtr& subgraph : subgraphs_of(node)) bytes += static_cast<size_t>(size_of_types(*subgraph));
  }
  return static_cast<int64_t>(bytes);
}

/// Types of values between the nodes are told where they do not make the file larger than it was by more than a
/// hundredth.
void choose_declarations(Model& model, const SimplifyReport& report, const SimplifyOptions& options) {
  model.graph->value_declarations.clear();
  if (!has_room_for_types(model, report, options)) forget_types(*model.graph);
}

}  // namespace

bool has_room_for_types(const Model& model, const SimplifyReport& report, const SimplifyOptions& options) {
  return options.infers_shapes && size_of_types(*model.graph) <= report.room_for_types;
}

void write_simplified(Model& model, const std::string& target, const SimplifyReport& report,
                      const SimplifyFileOptions& options) {
  choose_declarations(model, report, options.simplify);
  write_onnx(model, target, {.external_data = options.external_data});
}

std::string simplified_bytes(Model& model, const SimplifyReport& report, const SimplifyFileOptions& options) {
  choose_declarations(model, report, options.simplify);
  return write_onnx_bytes(model);
}

SimplifyReport simplify_and_compare(Model& model, const SimplifyFileOptions& options) {
  if (!options.judge) return simplify(model, options.simplify);
  const Comparison comparison(model, options.judge);
  SimplifyOptions passes = options.simplify;
  std::vector<std::string> taken_back;
  SimplifyReport report;
  if (options.verifies_passes) {
    passes.is_right = [&](const Model& result, std::string_view) {
      const std::string answer = comparison.difference(result);
      return answer.empty() || answer.starts_with(kNotJudged);
    };
  }
  while (true) {
    Model before = clone(model);
    report = simplify(model, passes);
    if (report.guilty.empty()) break;
    taken_back.push_back(report.guilty);
    passes.skip.push_back(report.guilty);
    model = std::move(before);
  }
  report.taken_back = std::move(taken_back);
  std::string answer = comparison.difference(model);
  if (answer.starts_with(kNotJudged)) {
    report.not_judged = answer.substr(kNotJudged.size());
    return report;
  }
  report.checks = 1;
  report.difference = std::move(answer);
  report.is_right = report.difference.empty();
  return report;
}

}  // namespace tonnx
