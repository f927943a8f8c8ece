// compilation.cpp - the table of edges between dialects, and the path that a conversion takes through it.
#include "convert/compilation.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/error.h"
#include "convert/edges.h"
#include "convert/graph_steps.h"
#include "convert/inference.h"
#include "convert/opset.h"
#include "convert/weights.h"
#include "convert/write_torch.h"
#include "formats/torchscript/torchscript.h"
#include "modules/outline.h"
#include "passes/dialects/to_code.h"
#include "passes/dialects/to_exported.h"
#include "passes/pass_table.h"

namespace tonnx {

struct Compilation::Edge {
  Dialect from, to;
  void (Compilation::*run)() = nullptr;
  std::optional<Phase> passes;              // that belong to it
  void (Compilation::*finish)() = nullptr;  // behind the passes
};

// of two paths the shorter one is taken
const Compilation::Edge Compilation::kEdges[] = {
    {Dialect::Script, Dialect::Exported, &Compilation::make_graph_functional, {}},
    {Dialect::Stored, Dialect::Onnx, &Compilation::upgrade, {}},
    {Dialect::Exported, Dialect::Onnx, &Compilation::raise_graph, {}},
    {Dialect::Onnx, Dialect::Stored, &Compilation::store_model, {}},
    {Dialect::Onnx, Dialect::Code, &Compilation::lower_graph, Phase::Code},
    {Dialect::Exported, Dialect::Code, &Compilation::write_as_code, Phase::Code, &Compilation::name_outputs},
    {Dialect::Code, Dialect::Python, nullptr, Phase::Python},
    {Dialect::Code, Dialect::Exported, &Compilation::export_code, {}},
};

namespace {

/// The dialects that a format is written from, in the order in which they are reached.
std::vector<Dialect> dialects_for(Format format) {
  switch (format) {
    case Format::Onnx: return {Dialect::Stored};
    case Format::Pt2: return {Dialect::Code, Dialect::Exported};
    case Format::TorchScript: return {Dialect::Code};
    default: return {Dialect::Python};
  }
}

}  // namespace

Compilation::Compilation(Model& model, Dialect dialect, ConvertOptions options, std::vector<std::string> output_names)
    : source_(&model),
      graph_(model.graph),
      dialect_(dialect),
      options_(std::move(options)),
      lowering_(lowering_options(options_)),
      output_names_(std::move(output_names)) {
  if (output_names_.empty()) {
    for (const Value* output : graph_->outputs()) output_names_.push_back(output->name);
  }
}

std::vector<const Compilation::Edge*> Compilation::path(Dialect from, Dialect to) {
  std::map<Dialect, const Edge*> last;  // by which each dialect is reached
  std::deque<Dialect> open{from};
  while (!open.empty() && !last.contains(to)) {
    const Dialect at = open.front();
    open.pop_front();
    for (const Edge& edge : kEdges) {
      if (edge.from == at && edge.to != from && last.try_emplace(edge.to, &edge).second) open.push_back(edge.to);
    }
  }
  ensure(last.contains(to), "no edges lead to the dialect");
  std::vector<const Edge*> result;
  for (Dialect at = to; at != from; at = last.at(at)->from) result.insert(result.begin(), last.at(at));
  return result;
}

void Compilation::bring_to(Dialect dialect) {
  if (dialect == dialect_) return;
  for (const Edge* edge : path(dialect_, dialect)) step(*edge);
}

void Compilation::bring_to_plain_code() {
  if (dialect_ == Dialect::Code || dialect_ == Dialect::Python) return;
  for (const Edge* edge : path(dialect_, Dialect::Code)) step(*edge, edge->to != Dialect::Code);
}

void Compilation::step(const Edge& edge, bool runs_passes) {
  if (edge.run != nullptr) (this->*edge.run)();
  dialect_ = edge.to;
  if (edge.passes && runs_passes) run_passes(*graph_, *edge.passes);
  if (edge.finish != nullptr) (this->*edge.finish)();
  check();
}

void Compilation::check() const {
  expect_dialect(*graph_, dialect_);
  ensure(dialect_ != Dialect::Onnx || made_ || source_->functions.empty(), "a function was not inlined");
}

void Compilation::apply_options() {
  if (std::exchange(has_options_, true)) return;
  if (!options_.weights.empty())
    replace_weights(*source_, dialect_, read_weights(options_.weights, options_.part), options_.weights, options_);
  if (dialect_ != Dialect::Stored) return;
  set_input_shapes(*source_, options_.input_shapes);
  set_dynamic_dims(*source_, options_);
  graph_ = source_->graph;
}

void Compilation::make_graph_functional() { make_functional(*graph_, options_.rolls_loops); }

void Compilation::upgrade() { prepare(*source_, lowering_); }

void Compilation::raise_graph() {
  for (const Value* value : graph_->initializers()) weights_.insert(value->name);
  made_ = raise_program(*source_, output_names_, export_options(options_));
  graph_ = made_->graph;
}

void Compilation::store_model() { store(model(), export_options(options_), weights_); }

void Compilation::lower_graph() { graph_ = lower(model(), lowering_); }

void Compilation::write_as_code() {
  fold_program(*graph_);
  to_code(*graph_, options_.allow_ops);
}

void Compilation::name_outputs() {
  for (size_t i = 0; i < graph_->outputs().size(); ++i) {
    Value* output = graph_->outputs()[i];
    if (output->producer != nullptr && output->name != output_names_[i])
      output->name = graph_->unique_name(output_names_[i]);
  }
}

void Compilation::export_code() { state_ = state_for_program(*graph_); }

PythonModule Compilation::python(const PythonOptions& options) {
  bring_to(Dialect::Python);
  return write_python(*graph_, model(), options);
}

ModuleTree Compilation::modules() {
  bring_to(Dialect::Python);
  return module_tree_of(*graph_, options_.flat ? TreeNames::Flat : TreeNames::Nested);
}

void Compilation::write_onnx_file(const std::string& target) {
  if (!made_ && options_.opset) change_opset(*source_, *options_.opset);
  write_onnx(model(), target, onnx_options(options_));
}

void Compilation::write_pt2_file(const std::string& target) {
  Pt2Options pt2;
  for (const Value* output : model().graph->outputs()) pt2.output_names.push_back(output->name);
  for (const DynamicDim& dim : options_.dynamic) pt2.ranges[dim.name] = {dim.low, dim.high};
  pt2.progress = options_.progress;
  pt2.memory = options_.memory;
  in_context([&] { return "writing " + target; },
             [&] {
               bring_to(Dialect::Exported);
               write_pt2(*graph_, state_, target, pt2);
             });
}

void Compilation::write(const std::string& target) {
  const auto format = find_format(target);
  ensure(format.has_value(), "the format of the target is known");
  apply_options();
  bring_to(dialects_for(*format).front());
  switch (*format) {
    case Format::Onnx: return write_onnx_file(target);
    case Format::Pt2: return write_pt2_file(target);
    case Format::TorchScript: return write_torchscript_file(*graph_, output_names_, target, options_);
    default:
      return write_python_files(python(file_options(target, options_.flat)), target, options_.progress,
                                options_.memory);
  }
}

Dialect dialect_of(Format format) { return format == Format::Onnx ? Dialect::Stored : Dialect::Script; }

Source read_source(const std::string& path, Format format, const ConvertOptions& options) {
  Source source{{}, dialect_of(format)};
  if (format == Format::Onnx) {
    source.program.model = read_onnx(path);
  } else if (format == Format::Pt2) {
    source.program = read_pt2(path);
  } else {
    source.program = read_torchscript(path, {options.input_shapes, options.input_types});
    make_higher_order(*source.program.model.graph);
  }
  return source;
}

void convert_file(const std::string& source, const std::string& target, const ConvertOptions& options) {
  const BudgetScope scope(options.limits);
  in_context([&] { return "converting " + source; },
             [&] {
               const Format format = route(source, target, options).source;
               if (is_weights_file(source)) return convert_weights(source, target, options.part, options.progress);
               Source read = read_source(source, format, options);
               Compilation(read.program, read.dialect, options).write(target);
             });
}

}  // namespace tonnx
