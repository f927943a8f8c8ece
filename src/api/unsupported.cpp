// unsupported.cpp - what keeps a model from becoming something else, known before any of it is written.
#include <algorithm>
#include <set>

#include "api/internal.h"
#include "convert/opset.h"
#include "ir/clone.h"
#include "passes/dialects/to_code.h"

namespace tonnx::v1 {
namespace {

/// Adds a node to the entry of its operator, version and reason.
void add(std::vector<UnsupportedOp>& ops, UnsupportedOp op) {
  const auto at = std::find_if(ops.begin(), ops.end(), [&](const UnsupportedOp& each) {
    return each.domain == op.domain && each.op == op.op && each.version == op.version && each.why == op.why;
  });
  if (at == ops.end()) {
    ops.push_back(std::move(op));
  } else {
    at->places.insert(at->places.end(), op.places.begin(), op.places.end());
  }
}

/// `aten::add.Tensor` as a domain and an operator.
UnsupportedOp entry_of(const std::string& target, std::vector<std::string> places, std::string why) {
  const size_t colons = target.find("::");
  if (colons == std::string::npos) return {{}, target, 0, std::move(places), std::move(why)};
  return {target.substr(0, colons), target.substr(colons + 2), 0, std::move(places), std::move(why)};
}

std::vector<UnsupportedOp> obstacles_to(core::Model& model, int64_t opset) {
  std::vector<UnsupportedOp> result;
  for (core::OpsetObstacle& each : core::find_opset_obstacles(model, opset))
    add(result, {{}, each.op, each.version, {each.node}, each.why});
  return result;
}

/// What a step refuses that knows no more of it than a text: the nodes are what was being done.
std::vector<UnsupportedOp> entries_of(const core::Error& e) {
  if (e.kind() != core::ErrorKind::Unsupported) throw core::Error(e);
  std::vector<std::string> places;
  if (!e.frames().empty()) places.push_back(e.frames().front());
  return {{{}, {}, 0, std::move(places), e.text()}};
}

std::vector<UnsupportedOp> not_written(core::Compilation& compilation) {
  std::vector<UnsupportedOp> result;
  const core::Model copy = core::clone(compilation.model());
  for (core::UnwrittenOp& op : core::find_unwritten(*copy.graph, compilation.options().allow_ops))
    result.push_back(entry_of(op.target, std::move(op.places),
                              op.can_be_allowed ? "it is not known; allow_ops has the code call it" : ""));
  if (result.empty()) compilation.bring_to(core::Dialect::Code);
  return result;
}

std::vector<UnsupportedOp> not_raised(core::Compilation& compilation) {
  std::vector<UnsupportedOp> result;
  for (core::UnsupportedAten& op :
       core::find_unsupported_aten(*compilation.graph(), compilation.options().custom.get()))
    result.push_back(entry_of(op.target, std::move(op.paths), std::move(op.reason)));
  if (!result.empty()) return result;
  compilation.bring_to(core::Dialect::Onnx);
  return obstacles_to(compilation.model(), core::export_options(compilation.options()).raising.opset);
}

}  // namespace

std::vector<UnsupportedOp> unsupported_in(const Model::Content& content, const core::LoweringOptions& options) {
  const ModelBudget budget(content);
  core::Program program = copy_of(content);
  std::vector<UnsupportedOp> result;
  for (core::UnsupportedOp& op : core::find_unsupported(program.model, options))
    result.push_back({op.domain, op.op, op.version, std::move(op.nodes), op.reason});
  return result;
}

std::vector<UnsupportedOp> Model::unsupported(Format target, const WriteOptions& options) const {
  return translated([&]() -> std::vector<UnsupportedOp> {
    const core::ConvertOptions inner = core_of(options);
    const core::Route way = core::route(core_of(content_->format), name_for(target), inner);
    if (content_->is_onnx() && way.target != core::Format::Onnx)
      return unsupported_in(*content_, core::lowering_options(inner));
    if (content_->is_onnx() && !inner.opset) return {};
    const ModelBudget budget(*content_);
    Conversion conversion(*content_, inner);
    try {
      if (content_->is_onnx()) return obstacles_to(conversion.program.model, *inner.opset);
      conversion.compilation.bring_to(core::Dialect::Exported);
      return way.target == core::Format::Onnx ? not_raised(conversion.compilation)
                                              : not_written(conversion.compilation);
    } catch (const core::Error& e) {
      return entries_of(e);
    }
  });
}

namespace {

/// `1 node of 1 operator cannot be converted:`
[[noreturn]] void fail_check(size_t nodes, size_t operators, const std::string& list) {
  throw core::Error(core::ErrorKind::Unsupported,
                    fmt::format("{} node{} of {} operator{} cannot be converted:{}", nodes, nodes == 1 ? "" : "s",
                                operators, operators == 1 ? "" : "s", list));
}

void count(const core::Graph& graph, size_t& nodes, std::set<std::string>& operators) {
  for (const core::Node& node : graph) {
    ++nodes;
    operators.insert(core::label_of(node));
    for (const core::GraphPtr& subgraph : core::subgraphs_of(node)) count(*subgraph, nodes, operators);
  }
}

Model::Counts counts_of(const core::Graph& graph) {
  Model::Counts counts;
  std::set<std::string> operators;
  count(graph, counts.nodes, operators);
  counts.operators = operators.size();
  return counts;
}

}  // namespace

Model::Counts Model::require_supported(Format target, const WriteOptions& options) const {
  return translated([&] {
    const core::ConvertOptions inner = core_of(options);
    const core::Route way = core::route(core_of(content_->format), name_for(target), inner);
    const ModelBudget budget(*content_);
    Conversion conversion(*content_, inner);
    core::Compilation& compilation = conversion.compilation;
    core::Program& program = conversion.program;
    size_t nodes = 0;
    Counts counts;
    if (!content_->is_onnx()) {
      compilation.bring_to(core::Dialect::Exported);
      counts = counts_of(*compilation.graph());
      if (way.target != core::Format::Onnx) {
        compilation.bring_to(core::Dialect::Code);
        return counts;
      }
      const auto unsupported = core::find_unsupported_aten(*compilation.graph(), inner.custom.get());
      for (const core::UnsupportedAten& op : unsupported) nodes += op.paths.size();
      if (nodes > 0) fail_check(nodes, unsupported.size(), core::describe(unsupported));
      compilation.bring_to(core::Dialect::Stored);
    } else if (way.target == core::Format::Onnx) {
      if (inner.opset) core::change_opset(program.model, *inner.opset);
    } else {
      constexpr size_t kAll = size_t{1} << 20;
      const auto unsupported = core::find_unsupported(program.model, core::lowering_options(inner));
      for (const core::UnsupportedOp& op : unsupported) nodes += op.nodes.size();
      if (nodes > 0) fail_check(nodes, unsupported.size(), core::describe(unsupported, kAll));
    }
    return content_->is_onnx() ? counts_of(*program.model.graph) : counts;
  });
}

}  // namespace tonnx::v1
